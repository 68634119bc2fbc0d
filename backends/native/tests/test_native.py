"""Libraries in C: the header, the sample of ``armpy new-backend``, and the kit on it."""

from __future__ import annotations

import ctypes
import gc
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from armpy import (
    IsolationLimits,
    Model,
    Network,
    Runtime,
    RuntimeOptions,
    TensorInfo,
    load,
)
from armpy.backend import PreparationRequest, ProgramFit
from armpy.errors import BackendUnavailableError, InvalidArgumentError, UnimplementedError
from armpy.graph import Graph, SubgraphView
from armpy.ops import (
    Activation,
    ActivationFunction,
    BinaryOperation,
    Cast,
    ElementwiseBinary,
    FullyConnected,
)
from armpy.plugins import CandidateKind, CandidateStatus
from armpy.types import DataType
from armpy_conformance import run_conformance
from armpy_testing.effort import part_of_kit
from armpy_testing.models.networks import placement_of

from .sample_library import (
    STRICT,
    build,
    expected,
    network,
    runtime_of,
    source,
)

pytest.importorskip("armpy_native")

from armpy_native import HEADER, backend, library, open_library


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("sample"), source())


def check_network(
    library: Path, layers_by_backend: dict[str, int], refusal: tuple[str, str]
) -> None:
    """Check the sample network's results, its placement, and one refusal by layer and text."""
    model = Model(network(), runtime_of(library))
    x = np.random.default_rng(0).normal(size=(2, 8)).astype(np.float32)
    for array in (x, 2 * x):
        np.testing.assert_allclose(model(array), expected(array), rtol=1e-5)
    placement = placement_of(model)
    assert placement.layers_by_backend == layers_by_backend
    assert refusal in {(one.layer, one.text) for one in placement.refusals}


@pytest.mark.parametrize(
    ("compiler", "standard", "header"),
    [
        ("cc", "c99", "armpy_backend.h"),
        ("c++", "c++17", "armpy_backend.h"),
        ("c++", "c++17", "armpy_backend.hpp"),
    ],
)
def test_the_headers_are_c99_and_cpp17(
    tmp_path: Path, compiler: str, standard: str, header: str
) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    file = tmp_path / ("header.c" if compiler == "cc" else "header.cpp")
    file.write_text(f'#include "{header}"\n', "utf-8")
    command = [compiler, f"-std={standard}", *STRICT, "-fsyntax-only", f"-I{HEADER.parent}"]
    done = subprocess.run([*command, str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ap_header", library.Header),
        ("ap_error", library.Error),
        ("ap_span", library.Span),
        ("ap_tensor", library.Tensor),
        ("ap_host", library.Host),
        ("ap_backend", library.Backend),
    ],
)
def test_structures_are_those_of_the_header(
    tmp_path: Path, name: str, kind: type[ctypes.Structure]
) -> None:
    members = [str(member[0]) for member in kind._fields_]
    prints = "".join(f'printf(" %zu", offsetof({name}, {member}));' for member in members)
    file = tmp_path / "probe.c"
    file.write_text(
        f'#include "armpy_backend.h"\n#include <stdio.h>\n'
        f'int main(void) {{ printf("%zu", sizeof({name})); {prints} return 0; }}\n',
        "utf-8",
    )
    program = tmp_path / "probe"
    subprocess.run(["cc", f"-I{HEADER.parent}", "-o", str(program), str(file)], check=True)
    numbers = subprocess.run([program], capture_output=True, text=True, check=True).stdout.split()
    offsets = [getattr(kind, member).offset for member in members]
    assert [int(number) for number in numbers] == [ctypes.sizeof(kind), *offsets]


@pytest.mark.slow
def test_the_sample_exports_one_function(sample: Path) -> None:
    if shutil.which("nm") is None:
        pytest.skip("nm is not installed")
    command = ["nm", "-D", "--defined-only", str(sample)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert [line.split()[-1] for line in done.stdout.splitlines()] == ["armpy_backend_v1"]


def test_layers_run_in_the_library_and_others_elsewhere_with_the_reason(sample: Path) -> None:
    refusal = "tanh", "the operator is not Add, Mul, Relu or FullyConnected"
    check_network(sample, {"AcmeNpu": 3, "CpuRef": 1}, refusal)


def test_a_device_is_opened_for_its_description_and_for_the_runtime(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    old = "    (*device)->host = host;\n"
    assert source().count(old) == 1
    text = source().replace(old, f'{old}    host->log(NULL, 20, "opened");\n')
    path = build(tmp_path, text)
    with caplog.at_level("INFO", logger="armpy.native"), runtime_of(path) as runtime:
        Model(network(), runtime)
        assert caplog.messages == ["opened"] * 2
        with runtime_of(path) as another:
            Model(network(), another)
        assert caplog.messages == ["opened"] * 2


def test_an_isolated_library_logs_in_the_application_and_is_closed_with_the_runtime(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tmp_path.chmod(0o700)
    text = source()
    for line, word in (
        ("    (*device)->host = host;\n", "opened"),
        ("static void close_device(ap_device *device)\n{\n", "closed"),
    ):
        assert text.count(line) == 1
        device = "device" if word == "closed" else "(*device)"
        text = text.replace(line, f'{line}    {device}->host->log(NULL, 20, "{word}");\n')
    build(tmp_path, text, "Acme_Npu_backend.so")
    options = RuntimeOptions(
        ["AcmeNpu", "CpuRef"],
        dynamic_backends_path=tmp_path,
        isolation={"AcmeNpu": "process"},
        isolation_limits=IsolationLimits(keep_spare=False),
    )
    with caplog.at_level("INFO", logger="armpy.plugins.isolation"), Runtime(options) as runtime:
        Model(network(), runtime)
    # For its description, and for the runtime.
    lines = [text for text in caplog.messages if text.startswith("armpy.native")]
    assert lines == ["armpy.native: opened", "armpy.native: closed"] * 2


def test_a_part_that_does_not_compile_is_halved_down_to_the_layer(tmp_path: Path) -> None:
    old = "        if (reason) {\n            release(made);"
    new = "        if (!reason && operator_code(&from, operator_) == ADD)\n"
    new += '            reason = "no memory on the chip";\n'
    assert source().count(old) == 1
    path = build(tmp_path, source().replace(old, new + old))
    check_network(path, {"AcmeNpu": 2, "CpuRef": 2}, ("add", "no memory on the chip"))


@pytest.mark.slow
def test_one_question_to_the_library_is_about_all_layers_of_a_network(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    net = Network("kinds")
    x = net.input("x", TensorInfo((2, 4), DataType.FLOAT32))
    y = net.add(FullyConnected(), x, net.constant(np.ones((4, 4), np.float32)), name="dense")
    y = net.add(Activation(ActivationFunction.SOFT_RELU), y, name="not in the format")
    y = net.add(Activation(ActivationFunction.TANH, 1.0, 1.0), y, name="tanh")
    net.output("y", net.add(ElementwiseBinary(BinaryOperation.MUL), y, x, name="product"))
    short = net.input("short", TensorInfo((2,), DataType.BFLOAT16))
    widened = net.add(Cast(), short, name="short", output=TensorInfo((2,), DataType.FLOAT32))
    net.output("z", widened)
    layers = net.build().layers
    old = "    (void)device, (void)error;\n    model from"
    assert old in source()
    text = source().replace(old, f'    device->host->log(NULL, 20, "asked");\n{old}')
    support = open_library(str(build(tmp_path, text)))().get_layer_support(PreparationRequest())
    with caplog.at_level("INFO", logger="armpy.native"):
        answers = support.are_layers_supported(layers)
    assert caplog.messages == ["asked"]
    assert [answer.text for answer in answers] == [
        "",
        "the .tflite format has no such SOFT_RELU",
        "the operator is not Add, Mul, Relu or FullyConnected",
        "",
        "the format has no type BFLOAT16",
    ]
    alone = [support.is_layer_supported(x.operation, x.input_infos, x.output_infos) for x in layers]
    assert [answer.text for answer in alone] == [answer.text for answer in answers]


def wide_network() -> Graph:
    """A fully connected layer with 256 KiB of weights."""
    net = Network("wide")
    x = net.input("x", TensorInfo((1, 256), DataType.FLOAT32))
    weights = net.constant(np.linspace(-1, 1, 256 * 256, dtype=np.float32).reshape(256, 256))
    net.output("y", net.add(FullyConnected(), x, weights))
    return net.build()


def test_weights_are_used_where_they_lie(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    old = "    (void)device;\n    model from = read_model(graph, constants"
    assert old in source()
    new = (
        "    char line[64];\n    for (uint64_t i = 0; i < num_constants; i++)\n"
        "        if (constants[i].data) {\n"
        '            snprintf(line, sizeof line, "at %p", constants[i].data);\n'
        "            device->host->log(NULL, 20, line);\n        }\n"
    )
    path = build(tmp_path, source().replace(old, new + old.partition("\n")[2]))
    graph = wide_network()
    (weights,) = [value.data for value in graph.values() if value.data is not None]
    x = np.ones((1, 256), np.float32)
    with (
        caplog.at_level("INFO", logger="armpy.native"),
        runtime_of(path) as runtime,
        Model(graph, runtime) as model,
    ):
        np.testing.assert_allclose(model(x), x @ weights.T, rtol=1e-4, atol=1e-4)
        saved = tmp_path / "saved.armpy"
        model.save(saved)
        assert caplog.messages == [f"at {library.address_of(weights):#x}"]
        caplog.clear()
        with load(saved, runtime=runtime) as again:
            np.testing.assert_allclose(again(x), x @ weights.T, rtol=1e-4, atol=1e-4)
    (message,) = caplog.messages
    assert int(message.removeprefix("at "), 16) % 64 == 0
    assert saved.stat().st_size < 1.2 * weights.nbytes  # in the graph and the program, stored once


@pytest.mark.slow
@pytest.mark.parametrize(("size", "minor"), [(104, 0), (112, 1)])
def test_an_older_library_is_used_by_its_own_table(tmp_path: Path, size: int, minor: int) -> None:
    old = source().replace(
        "{sizeof(ap_backend), AP_VERSION_MAJOR, AP_VERSION_MINOR}", f"{{{size}, 1, {minor}}}"
    )
    # What follows its table in memory is not a function.
    for name in ("start", "wait") if minor else ("compile_shared", "start", "wait"):
        member = "    compile_shared,\n" if name == "compile_shared" else f"NULL, /* {name} */"
        assert old.count(member) == 1
        old = old.replace(member, "(void *)16,")
    x = np.ones((1, 256), np.float32)
    with Model(wide_network(), runtime_of(build(tmp_path, old, "libold.so", "-w"))) as model:
        with Model(wide_network()) as reference:
            np.testing.assert_allclose(model(x), reference(x), rtol=1e-4, atol=1e-4)
        assert model.placement is not None
        assert model.placement.layers_by_backend == {"AcmeNpu": 1}


def test_a_bound_execution_reads_and_writes_its_arrays(sample: Path) -> None:
    model = Model(network(), runtime_of(sample))
    x, y = np.zeros((2, 8), np.float32), np.empty((2, 4), np.float32)
    execution = model.bind({"x": x}, {"y": y})
    for number in range(3):
        x[:] = number
        execution()
        np.testing.assert_allclose(y, expected(x), rtol=1e-5)


@pytest.mark.slow
def test_it_runs_in_a_process_of_its_own(sample: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = sample.parent / "plugins"
    folder.mkdir(mode=0o700, exist_ok=True)
    shutil.copy(sample, folder / "Acme_Npu_backend.so")
    options = RuntimeOptions(
        backends=["AcmeNpu", "CpuRef"],
        dynamic_backends_path=folder,
        isolation={"AcmeNpu": "process"},
    )
    x = np.ones((2, 8), np.float32)
    with Runtime(options) as runtime:
        model = Model(network(), runtime)
        np.testing.assert_allclose(model(x), expected(x), rtol=1e-5)
        assert "AcmeNpu 3" in str(model.placement)


def test_a_library_in_a_directory_is_found(sample: Path) -> None:
    folder = sample.parent / "found"
    folder.mkdir(mode=0o700)
    shutil.copy(sample, folder / "Acme_Npu_backend.so")
    with Runtime(RuntimeOptions(dynamic_backends_path=folder)) as runtime:
        candidates = [c for c in runtime.registry.candidates if c.kind is CandidateKind.DIRECTORY]
        assert [one.status for one in candidates] == [CandidateStatus.REGISTERED]
        assert "AcmeNpu" in {one.get_id() for one in runtime.registry.available()}


def test_a_relative_path_begins_beside_the_calling_module(sample: Path) -> None:
    module = sample.parent / "acme_npu.py"
    module.write_text(f"from armpy_native import backend\nAcmeNpu = backend({sample.name!r})\n")
    names: dict[str, object] = {"__file__": str(module), "__name__": "acme_npu"}
    exec(compile(module.read_text(), str(module), "exec"), names)
    made = names["AcmeNpu"]
    assert isinstance(made, type)
    assert made().get_id() == "AcmeNpu"


def test_options_reach_the_library_as_json_and_others_are_refused(sample: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"AcmeNpu / options: .*not a JSON object"):
        runtime_of(sample, backend_options={"AcmeNpu": {"options": "[1]"}})
    with runtime_of(sample, backend_options={"AcmeNpu": {"options": '{"clock": "high"}'}}):
        pass


def test_what_is_no_library_of_version_1_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BackendUnavailableError, match=r"cannot be loaded.*libnothing\.so"):
        backend("libnothing.so")
    empty = build(tmp_path, "int answer(void);\nint answer(void) { return 42; }\n", "libempty.so")
    with pytest.raises(BackendUnavailableError, match="exports armpy_backend_v1"):
        open_library(str(empty))


@pytest.mark.slow
def test_a_device_is_closed_after_its_programs(tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    text = source()
    functions = {
        "close_device(ap_device *device)": "close",
        "release(ap_program *program)": "release",
    }
    for head, word in functions.items():
        note = f'FILE *f = fopen("{notes}", "a"); fputs("{word}\\n", f); fclose(f);'
        text = text.replace(f"static void {head}\n{{", f"static void {head}\n{{\n    {note}", 1)
    runtime = runtime_of(build(tmp_path, text, "libacme.so", "-w"))
    model = Model(network(), runtime)
    model(np.ones((2, 8), np.float32))
    notes.write_text("")  # of questions that have been answered
    model.close()
    runtime.close()
    del model, runtime
    gc.collect()
    assert notes.read_text().split() == ["release", "close"]


def test_a_type_that_the_header_lacks_is_named(sample: Path) -> None:
    made = open_library(str(sample))()
    graph = network()
    engine = made.get_engine()
    part = SubgraphView.of(graph, graph.layers[:3])
    program = engine.compile(made.convert(part), engine.describe({}))
    with pytest.raises(UnimplementedError, match=r"armpy_backend\.h has no type complex64"):
        program.execute([np.ones((2, 8), np.complex64)], [np.empty((2, 4), np.float32)])


@pytest.mark.slow
def test_another_build_of_the_same_version_uses_no_kept_program(
    sample: Path, tmp_path: Path
) -> None:
    other = build(tmp_path, source() + "int another_build(void) { return 1; }\n")
    kept = open_library(str(sample))().get_engine().describe({})
    programs = open_library(str(other))().get_engine()
    assert programs.describe({})["version"] == kept["version"]
    check = programs.check(kept, {})
    assert check.fit is ProgramFit.REBUILD
    assert "it was made for contents" in check.reason
    assert programs.check(programs.describe({}), {}).fit is ProgramFit.ACCEPTED


@pytest.mark.slow
@pytest.mark.parametrize(
    ("style", "isolation"),
    [("c", None), ("c", {"AcmeNpu": "process"}), ("cpp", None)],
    ids=["in-process", "isolated", "cpp"],
)
def test_the_library_keeps_to_the_contract_and_agrees_with_the_reference(
    style: str, isolation: dict[str, str] | None, tmp_path: Path
) -> None:
    tmp_path.chmod(0o700)
    build(tmp_path, source(style), "Acme_Npu_backend.so", style=style)
    options = RuntimeOptions(dynamic_backends_path=tmp_path, isolation=isolation)
    # In the second part are rules that make the backend again.
    parts = ("FullyConnected/", "contract/parts-that-cannot")
    result = run_conformance("AcmeNpu", runtime_options=options, filter=part_of_kit(*parts))
    assert result.is_passed, (result.shortcomings, result.problems)
