"""Which front-end takes a file, and the handling of its errors and results."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armpy
from armpy import Network, TensorInfo, ops
from armpy.backend import BackendOption
from armpy.core.installation import install_command
from armpy.errors import GraphValidationError, InvalidArgumentError, ParserError
from armpy.execution import Runtime, RuntimeOptions
from armpy.graph import Graph, Layer, Value
from armpy.plugins.front_ends.registry import FrontEnds
from armpy.plugins.hooks import (
    FrontEnd,
    FrontEndOptionError,
    Magic,
    ModelFile,
    ModelSignature,
    ParseSettings,
    hookimpl,
    open_model_file,
)
from armpy_testing.backends.fake_backends import FakeBackend, registry_of
from armpy_testing.models.networks import f32, floats

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite"
RELU = ops.Activation(ops.ActivationFunction.RELU)
Parser = Callable[[ModelFile, ParseSettings], Any]  # Any: also what no parser should return


class Plugin:
    """Registers front-ends."""

    def __init__(self, *front_ends: FrontEnd) -> None:
        self.front_ends = front_ends

    @hookimpl
    def armpy_register_front_end(self) -> tuple[FrontEnd, ...]:
        return self.front_ends


def relu_network(file: ModelFile, settings: ParseSettings) -> Network:
    """A network of one layer, named after the file."""
    net = Network(file.stem)
    net.output("y", net.add(RELU, net.input("x", f32(2))))
    return net


def named(name: str) -> Parser:
    """A parser whose network's output has a distinct name."""

    def parse(file: ModelFile, settings: ParseSettings) -> Network:
        net = Network(file.stem)
        net.output(name, net.add(RELU, net.input("x", f32(2))))
        return net

    return parse


def runtime_with(*front_ends: FrontEnd, **options: Any) -> Runtime:
    """A runtime whose registry has a plugin with these front-ends."""
    registry = registry_of(FakeBackend("A"))
    registry.plugins.register("acme", Plugin(*front_ends), "acme-plugin 2.0")
    return Runtime(RuntimeOptions(registry=registry, **options))


def load(
    front_end: FrontEnd,
    source: bytes | Path = b"TOY1",
    *,
    memory_limit_bytes: int = 1 << 20,
    **options: Any,
) -> armpy.Model:
    """Load something with one front-end."""
    runtime = runtime_with(front_end, memory_limit_bytes=memory_limit_bytes)
    return armpy.load(source, runtime=runtime, memory_limit_bytes=memory_limit_bytes, **options)


def toy(parse: Parser = relu_network, **fields: Any) -> FrontEnd:
    """A front-end for what begins with TOY1."""
    fields = {"suffixes": (".toy",), "magic": (Magic(b"TOY1"),), **fields}
    return FrontEnd("toy", "toy nets", parse, **fields)


def taken_by(runtime: Runtime, source: bytes | Path, **options: Any) -> str:
    """The name of the output of what a file is parsed to."""
    with armpy.load(source, runtime=runtime, **options) as model:
        return model.outputs[0].name


def test_contents_count_before_suffixes(tmp_path: Path) -> None:
    runtime = runtime_with(
        FrontEnd("a", "A", named("a"), suffixes=(".aa",), magic=(Magic(b"AAAA", 2),)),
        FrontEnd("b", "B", named("b"), suffixes=(".bb", ".tar.bb")),
        FrontEnd("c", "C", named("c"), recognizes=lambda data: bytes(data[-1:]) == b"C"),
        FrontEnd("d", "D", named("d"), suffixes=(".tar.bb.dd", ".dd"), magic=(Magic(b"..AAAA"),)),
    )
    for name, contents, expected in (
        ("x.bb", b"--AAAA", "a"),
        ("x.bb", b"..AAAA", "d"),  # the longest that fits
        ("x.bb", b"....AAAA", "b"),
        ("x.BB", b"", "b"),
        ("x.bb", b"...C", "c"),
        ("x.tar.bb.dd", b"...", "d"),
        ("x.aa", b"...", "a"),
    ):
        path = tmp_path / name
        path.write_bytes(contents)
        assert taken_by(runtime, path) == expected, (name, contents)
    assert taken_by(runtime, b"--AAAA") == "a"
    assert taken_by(runtime, b"?", front_end="b") == "b"
    with pytest.raises(InvalidArgumentError, match=r"no front-end 'e'.*tflite, a, b, c, d"):
        taken_by(runtime, b"?", front_end="e")


def test_no_plugin_takes_a_tflite_file(tmp_path: Path) -> None:
    head = DIGITS.read_bytes()[:16]
    runtime = runtime_with(
        FrontEnd("a", "A", named("a"), magic=(Magic(head),), recognizes=lambda data: True)
    )
    expected = taken_by(runtime_with(), DIGITS)
    assert taken_by(runtime, DIGITS) == expected
    copy = tmp_path / "digits.aa"
    copy.write_bytes(DIGITS.read_bytes())
    assert taken_by(runtime, copy) == expected
    assert taken_by(runtime, DIGITS.read_bytes()) == expected
    assert taken_by(runtime, DIGITS, front_end="a") == "a"  # the application's own wish


def test_a_front_end_that_cannot_say_what_it_recognises_stops_no_other() -> None:
    def fails(data: memoryview) -> bool:
        raise SystemExit(1)

    runtime = runtime_with(
        FrontEnd("a", "A", named("a"), recognizes=fails),
        FrontEnd("b", "B", named("b"), recognizes=lambda data: "yes"),  # type: ignore[arg-type,return-value]
        FrontEnd("c", "C", named("c"), recognizes=lambda data: True),
    )
    assert taken_by(runtime, b"?") == "c"
    ((_, hook, failure),) = runtime.registry.plugins.problems
    assert (hook, failure.reason) == ("armpy_register_front_end", "SystemExit: 1")


def raising(error: BaseException) -> Parser:
    """A parser that raises."""

    def parse(file: ModelFile, settings: ParseSettings) -> Network:
        raise error

    return parse


WHERE = "^model / front-end 'toy' of acme-plugin 2.0"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("oops"), r": the front-end raised ValueError\('oops'\)\.$"),
        (SystemExit(3), r": the front-end raised SystemExit\(3\)\.$"),
        (RecursionError("deep"), r": the front-end raised RecursionError\('deep'\)\.$"),
        (ParserError("bad line", where="line 3"), r" / line 3: bad line\.$"),
        (GraphValidationError("cycle"), r": cycle\.$"),
        (InvalidArgumentError("no", where="x"), r" / x: no\.$"),
    ],
)
def test_whatever_a_parser_raises_is_an_error_of_the_file_that_names_it(
    error: BaseException, text: str
) -> None:
    with pytest.raises(ParserError, match=WHERE + text):
        load(toy(raising(error)))


def network_with(name: str, info: TensorInfo) -> Network:
    """A network with one input."""
    net = Network()
    net.output("y", net.add(RELU, net.input(name, info)))
    return net


def unwritten() -> Graph:
    """A graph whose output is never written."""
    x, y = (Value(i, f32(2), n) for i, n in enumerate("xy"))
    return Graph((x,), (y,), ("y",), ())


def lying_attributes() -> Graph:
    """A graph whose layer's attribute is of the wrong type."""
    x, y = (Value(i, f32(2), n) for i, n in enumerate("xy"))
    operation = ops.Activation("RELU")  # type: ignore[arg-type]
    return Graph((x,), (y,), ("y",), (Layer(0, "l", operation, (x,), (y,)),))


def with_variable() -> Network:
    """A network with a state of 4000 bytes."""
    net = Network()
    state = net.variable("s", f32(1000))
    net.assign(state, state)
    net.output("y", net.add(RELU, net.input("x", f32(1))))
    return net


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (None, r": the parser's answer has the wrong type. Expected Network or Graph; got None\."),
        (Network(), ": the network has no output|/ network: the network has no output"),
        (unwritten(), ": a graph output is never written"),
        (lying_attributes(), "function"),
        (Graph((), "no", (), 3), "the front-end raised|graph"),  # type: ignore[arg-type]
        (network_with("x", f32(1001)), ": tensor 'x': larger than the memory limit.*; got 4004"),
        (with_variable(), ": tensor 's': larger than the memory limit|variables together"),
        (network_with(3, f32(1)), ": a name is not text. Got 3"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_sound_network_is_refused(answer: object, text: str) -> None:
    limit_bytes = 3999
    with pytest.raises(ParserError, match=f"{WHERE}.*({text})"):
        load(toy(lambda file, settings: answer), memory_limit_bytes=limit_bytes)


def test_shapes_that_a_graph_claims_are_inferred_again() -> None:
    x, y = Value(0, f32(2), "x"), Value(1, f32(1000), "y")
    graph = Graph((x,), (y,), ("y",), (Layer(0, "l", RELU, (x,), (y,)),))
    with load(toy(lambda file, settings: graph)) as model:
        np.testing.assert_array_equal(model(floats(-1, 2)), [0, 2])


def test_a_parser_is_given_bytes_path_limit_and_options(tmp_path: Path) -> None:
    path = tmp_path / "model.toy"
    path.write_bytes(b"TOY1 and more")
    seen: list[tuple[ModelFile, ParseSettings]] = []

    def parse(file: ModelFile, settings: ParseSettings) -> Network:
        seen.append((file, settings))
        return relu_network(file, settings)

    options = (BackendOption("depth", 2, "How deep.", minimum=1), BackendOption("name", "n", ""))
    front_end = toy(parse, options=options)
    load(front_end, path, memory_limit_bytes=1234, front_end_options={"depth": 3}).close()
    ((file, settings),) = seen
    assert bytes(file.data) == b"TOY1 and more"
    assert (file.path, file.label, file.stem) == (path, str(path), "model")
    assert (settings.memory_limit_bytes, settings.signature) == (1234, None)
    assert dict(settings.options) == {"depth": 3, "name": "n"}
    with pytest.raises(InvalidArgumentError, match=r"'toy': .*'depth'.*at least 1; got 0"):
        load(front_end, path, front_end_options={"depth": 0})
    with pytest.raises(
        InvalidArgumentError, match=r"the front-end has no option 'dept'.*Did you mean 'depth'"
    ):
        load(front_end, path, front_end_options={"dept": 0})
    with pytest.raises(InvalidArgumentError, match="front-end 'tflite': the front-end has no opt"):
        armpy.load(DIGITS, front_end_options={"depth": 0})


def test_what_a_parser_needs_and_is_not_installed_is_named_with_its_cure() -> None:
    front_end = toy(requires=("acme_onnx", "json"), install="pip install 'armpy[onnx]'")
    text = ": the front-end needs acme_onnx, which is not installed. Run: pip install 'armpy[onnx]'"
    with pytest.raises(ParserError, match=WHERE + re.escape(text)):
        load(front_end)


def two_signatures(file: ModelFile, settings: ParseSettings) -> Network:
    """A network whose variable counts calls; each signature sees the same one."""
    net = Network(file.stem)
    x = net.input("x", f32(1))
    count = net.variable("count", f32(1), key="count")
    total = net.add(ops.ElementwiseBinary(ops.BinaryOperation.ADD), count, x)
    net.assign(count, total)
    net.output({None: "main", "a": "sum_a", "b": "sum_b"}[settings.signature], total)
    return net


def test_signatures_of_a_plugins_format_share_their_variables() -> None:
    names = [ModelSignature("a", ("x",), ("sum_a",)), ModelSignature("b", ("x",), ("sum_b",))]
    front_end = toy(two_signatures, signatures=lambda file: names)
    with load(front_end, signature="a") as model:
        assert model.signatures == ("a", "b")
        assert model.run({"x": floats(2)})["sum_a"] == 2
        assert model.signature("b").run({"x": floats(3)})["sum_b"] == 5
    with pytest.raises(ParserError, match=r"the model has no signature 'c'\. Expected 'a', 'b'"):
        load(front_end, signature="c")
    with pytest.raises(ParserError, match=r"no signature 'c'\. Expected none"):
        load(toy(), signature="c")


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (3, "the answer has the wrong type. Expected a list of ModelSignature; got 3"),
        (["a"], "a signature has the wrong type"),
        ([ModelSignature("a", 3, ())], r"the front-end raised TypeError"),  # type: ignore[arg-type]
        ([ModelSignature("a", (), ())] * 2, "two signatures have one name"),
    ],
)
def test_nonsense_for_signatures_is_an_error_that_names_the_front_end(
    answer: Any, text: str
) -> None:
    model = load(toy(signatures=lambda file: answer))
    with pytest.raises(ParserError, match=f"{WHERE}: {text}"):
        _ = model.signatures
    model.close()


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"name": "Toy"}, "its name cannot be used. Expected lower case"),
        ({"suffixes": ".toy"}, "its suffixes cannot be used. Expected a tuple of str"),
        ({"suffixes": (".Toy",)}, "its suffixes cannot be used"),
        ({"magic": (b"TOY1",)}, "its magic cannot be used. Expected a tuple of Magic"),
        ({"options": ("depth",)}, "its options cannot be used. Expected a tuple of BackendOption"),
        ({"describe": 3}, "its describe cannot be used"),
        ({"install": None}, "its install cannot be used. Expected text"),
    ],
)
def test_a_front_end_that_cannot_be_used_says_why(fields: Mapping[str, Any], text: str) -> None:
    arguments: dict[str, Any] = {"name": "toy", "title": "toy", "parse": relu_network, **fields}
    with pytest.raises(InvalidArgumentError, match=f"FrontEnd: {re.escape(text)}"):
        FrontEnd(**arguments)


@pytest.mark.parametrize(("pattern", "offset"), [(b"", 0), ("TOY", 0), (b"T", -1), (b"T", 1.0)])
def test_a_magic_number_has_bytes_and_a_place(pattern: Any, offset: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="its magic cannot be used"):
        Magic(pattern, offset)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ((BackendOption("a", 5, "", maximum=3),), "the option 'a' cannot have this value"),
        ((BackendOption("a", 5, ""), BackendOption("a", 6, "")), "two options have one name"),
    ],
)
def test_a_front_end_whose_options_cannot_be_used_is_left_out(
    options: tuple[BackendOption, ...], text: str
) -> None:
    runtime = runtime_with(toy(options=options))
    with pytest.raises(ParserError, match=f"Left out is .*{text}"):
        taken_by(runtime, b"TOY1")


def test_what_a_parser_does_to_its_options_is_not_done_to_the_next_signature() -> None:
    seen: list[object] = []

    def parse(file: ModelFile, settings: ParseSettings) -> Network:
        options: Any = settings.options  # Any: not to be changed
        seen.append(options["depth"])
        options["depth"] = 9
        return relu_network(file, settings)

    names = [ModelSignature(name, ("x",), ("y",)) for name in "ab"]
    front_end = toy(parse, options=(BackendOption("depth", 2, ""),), signatures=lambda file: names)
    with load(front_end, signature="a") as model:
        model.signature("b")
    assert seen == [2, 2]


@pytest.mark.parametrize(
    "answer",
    [
        {"name": "x"},
        armpy.ModelMetadata(3),  # type: ignore[arg-type]
        armpy.ModelMetadata(files="abc"),  # type: ignore[arg-type]
        armpy.ModelMetadata(inputs={"x": armpy.ModelMetadata()}),  # type: ignore[dict-item]
        armpy.ModelMetadata(inputs={"x": armpy.TensorMetadata(mean=("1",))}),  # type: ignore[arg-type]
        armpy.ModelMetadata(properties=()),  # type: ignore[arg-type]
    ],
)
def test_metadata_of_wrong_types_are_the_plugins_fault(answer: Any) -> None:
    front_end = FrontEnd("toy", "toy", relu_network, metadata=lambda file, signature: answer)
    with (
        armpy.load(b"x", runtime=runtime_with(front_end), front_end="toy") as model,
        pytest.raises(ParserError, match=r"'toy' of acme-plugin.*wrong type"),
    ):
        _ = model.metadata


def test_a_tflite_file_is_read_without_asking_plugins() -> None:
    asked: list[str] = []

    class Asked:
        @hookimpl
        def armpy_register_front_end(self) -> FrontEnd:
            asked.append("front-end")
            return toy()

    registry = registry_of(FakeBackend("A"))
    registry.plugins.register("acme", Asked())
    runtime = Runtime(RuntimeOptions(registry=registry))
    for options in ({}, {"front_end": "tflite"}):
        armpy.load(DIGITS, runtime=runtime, **options).close()  # type: ignore[arg-type]
    assert asked == []
    taken_by(runtime, b"TOY1")
    assert asked == ["front-end"]


@pytest.mark.parametrize("how", ["suffix", "name", "bytes"])
def test_a_format_of_an_extension_names_the_package_to_install(how: str, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(b"\x08\x07\x12\x00")
    runtime = runtime_with(toy())
    command = "un: " + re.escape(install_command({"armpy-onnx": "extensions/onnx"}))
    source = path.read_bytes() if how == "bytes" else path
    name = "onnx" if how == "name" else None
    with pytest.raises((ParserError, InvalidArgumentError), match=command):
        armpy.load(source, runtime=runtime, front_end=name)


def test_a_wrong_option_stays_an_error_of_the_argument() -> None:
    error = FrontEndOptionError("the size cannot be used", where="option 'depth'")
    with pytest.raises(InvalidArgumentError, match=f"{WHERE} / option 'depth': the size"):
        load(toy(raising(error)))


@pytest.mark.parametrize("notes", [False, True])
def test_other_files_are_all_known_where_a_front_end_notes_them(
    notes: bool, tmp_path: Path
) -> None:
    path = tmp_path / "model.toy"
    path.write_bytes(b"TOY1")
    with load(toy(notes_other_files=notes), path) as model:
        assert model.provenance.is_one_file is notes


def test_other_files_get_new_names_where_a_front_end_can_rename_them(tmp_path: Path) -> None:
    def rename(file: ModelFile, names: Mapping[Path, str]) -> bytes:
        return bytes(file.data) + b" ".join(name.encode() for name in names.values())

    path = tmp_path / "model.toy"
    path.write_bytes(b"TOY1 ")
    file = open_model_file(path)
    chosen = FrontEnds(runtime_with(toy(rename_other_files=rename)).registry.plugins).choose(file)
    assert chosen.rename_other_files(file, {tmp_path / "w.bin": "w.0"}) == b"TOY1 w.0"
    other = FrontEnds(runtime_with(toy()).registry.plugins).choose(file)
    with pytest.raises(ParserError, match="cannot rename the other files"):
        other.rename_other_files(file, {})
