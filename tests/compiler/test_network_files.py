"""Optimised networks as files: nothing is lost, and nothing in a file is trusted."""

from __future__ import annotations

import inspect
import json
import random
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from armpy_reference import ReferenceBackend

import armpy
from armpy import DataType, Network, OptimizedNetwork, Quantization, TensorInfo
from armpy.compiler import optimize_graph
from armpy.compiler.files.plain import PlainReader, plain
from armpy.core.field_types import field_types
from armpy.errors import ArmpyError, BackendError, ParserError, UnimplementedError
from armpy.graph import Graph
from armpy.model import Model
from armpy.ops import FullyConnected
from armpy.ops.operation import Operation
from armpy_testing.backends.fake_backends import (
    CompilingBackend,
    FakeBackend,
    runtime_of,
)
from armpy_testing.backends.vendor_extension import RecordsBackend, Reverse
from armpy_testing.models.control_flow import doubling, loop
from armpy_testing.models.mutations import mutated
from armpy_testing.models.networks import ADD, RELU, diamond, f32, floats, ints
from tests.support.prepared_fuzz import changed
from tests.support.prepared_layouts import (
    document,
    newest_layout,
    oldest_layout,
    read_document,
    read_plainly,
)

FUZZED = 300
"""Files that are damaged, of each kind."""


def mixed() -> Graph:
    """Quantised layers, constants of several types, a variable and two outputs."""
    scale = Quantization.per_tensor(0.5, -3)
    info = TensorInfo((1, 4), DataType.QASYMM_S8, scale)
    net = Network("mixed")
    x = net.input("x", info)
    weights = net.constant(
        np.arange(8, dtype=np.int8).reshape(2, 4),
        data_type=DataType.QSYMM_S8,
        quantization=Quantization.per_axis([0.25, 0.125], 0),
    )
    bias = net.constant(ints(3, -2), quantization=Quantization.per_axis([0.125, 0.0625], 0))
    dense = net.add_layer(
        FullyConnected(),
        [x, weights, bias],
        name="dense",
        outputs=[TensorInfo((1, 2), DataType.QASYMM_S8, scale)],
    )
    state = net.variable("state", f32(2), floats(1, 2), key=("resource", 1, None))
    total = net.add(ADD, state, net.input("more", f32(2)))
    net.assign(state, total)
    net.output("y", dense.output)
    net.output("total", total)
    return net.build()


GRAPHS: dict[str, Callable[[], Graph]] = {
    "plain": diamond,
    "mixed": mixed,
    "loop": lambda: loop(3),
    "choices": lambda: doubling(5),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "network.armpy"


def optimized(graph: Graph) -> OptimizedNetwork:
    return armpy.optimize(graph, [ReferenceBackend()])


def parts(path: Path) -> tuple[Any, bytes]:
    """Record and constants of a file, read as the documentation describes it."""
    sections = read_plainly(path.read_bytes()).sections
    assert list(sections) == ["model", "constants"]
    return read_document(sections["model"]), sections["constants"]


def write(path: Path, record: object, data: bytes = b"", *, raw: bytes | None = None) -> None:
    """A file with a sound header and manifest around whatever is in it."""
    text = document(record) if raw is None else raw
    path.write_bytes(newest_layout({"model": text, "constants": data}))


@pytest.mark.parametrize("name", GRAPHS)
def test_nothing_that_can_be_seen_is_lost(name: str, path: Path) -> None:
    network = optimized(GRAPHS[name]())
    network.save(path)
    again = OptimizedNetwork.load(path)
    assert str(again) == str(network)
    assert again.to_dot() == network.to_dot()
    assert again.placement == network.placement
    for first, other in ((again.source, network.source), (again.graph, network.graph)):
        assert [(v.id, v.name, v.info) for v in first.values()] == [
            (v.id, v.name, v.info) for v in other.values()
        ]
        assert [v.key for v in first.variables] == [v.key for v in other.variables]
        for value, original in zip(first.values(), other.values(), strict=True):
            if original.data is not None:
                assert value.data is not None
                np.testing.assert_array_equal(value.data, original.data, strict=True)
                assert not value.data.flags.writeable
                assert not value.data.size or value.data.ctypes.data % 64 == 0
    assert again.assignment == network.assignment
    assert again.backend_ids == network.backend_ids
    assert again.origins == network.origins
    assert list(again.memory.tensors.values()) == list(network.memory.tensors.values())
    assert again.memory.arenas == network.memory.arenas
    again.save(path.with_suffix(".again"))
    assert path.with_suffix(".again").read_bytes() == path.read_bytes()


def test_a_refusal_is_read_with_its_answer_and_without_its_error(path: Path) -> None:
    faults = {"is_layer_supported": ValueError("oops")}
    network = optimize_graph(diamond(), [FakeBackend("Odd", faults=faults), ReferenceBackend()])
    network.save(path)
    again = OptimizedNetwork.load(path).placement
    assert again.refusals == network.placement.refusals
    assert all(refusal.support.error is not None for refusal in network.placement.refusals)
    assert [refusal.support.error for refusal in again.refusals] == [None] * 4


def operations() -> dict[str, Operation]:
    """Every operation with each form of attributes that the conformance kit has."""
    cases = pytest.importorskip(
        "armpy_conformance.cases", reason="armpy-conformance is not installed"
    )
    by_text = {repr(case.operation): case.operation for case in cases.operation_cases()}
    for name in armpy.ops.__all__:
        kind = getattr(armpy.ops, name)
        is_whole = isinstance(kind, type) and issubclass(kind, Operation)
        if is_whole and not inspect.isabstract(kind):
            with suppress(TypeError):  # for want of an attribute
                by_text.setdefault(repr(kind()), kind())
    assert len({type(operation) for operation in by_text.values()}) > 70
    return by_text


@pytest.mark.slow
def test_every_operations_attributes_are_read_as_they_were_written() -> None:
    reader = PlainReader()
    for operation in operations().values():
        text = json.loads(json.dumps(plain(operation.attributes()), allow_nan=False))
        kinds = field_types(type(operation))
        read = {name: reader.value(kinds[name], text[name], name) for name in kinds}
        again = type(operation)(**read)
        assert again == operation
        assert list(map(type, read.values())) == [
            type(getattr(again, name)) for name in operation.attributes()
        ]


def test_operations_of_vendors_are_not_saved(path: Path) -> None:
    net = Network()
    net.output(
        "y",
        net.add(
            Reverse(b""),
            net.input("x", TensorInfo((3,), DataType.QASYMM_U8, Quantization.per_tensor(1))),
        ),
    )
    network = armpy.optimize(net.build(), [RecordsBackend()])
    with pytest.raises(
        UnimplementedError, match=r"^Reverse '.*only armpy's own operations"
    ) as caught:
        network.save(path)
    assert not caught.value.fix  # sizes would not help
    assert not path.exists()


def test_what_becomes_layers_with_its_sizes_is_not_saved_without(path: Path) -> None:
    inputs = pytest.importorskip("armpy_onnx.inputs")
    net = Network()
    x = net.input("x", TensorInfo((None,), DataType.FLOAT32))
    net.output("y", net.add(RELU, net.add(inputs.TiedDimensions(("x",), (("n",),)), x)))
    model = Model(net)
    model(np.zeros(3, np.float32))
    with pytest.raises(UnimplementedError, match="the front-end option 'dimensions'") as caught:
        model.save(path)
    assert caught.value.actual.endswith("TiedDimensions")
    assert not path.exists()


def test_keys_that_are_only_equal_to_themselves_are_not_saved(path: Path) -> None:
    net = Network()
    state = net.variable("state", f32(2), key=object())
    net.assign(state, net.add(RELU, state))
    net.output("y", state)
    with pytest.raises(UnimplementedError, match=r"^variable 'state': the key"):
        optimized(net.build()).save(path)


def damaged(contents: bytes, offset: int, new: bytes) -> bytes:
    return contents[:offset] + new + contents[offset + len(new) :]


@pytest.mark.parametrize(
    ("damage", "text"),
    [
        (lambda c: b"", "not a compiled model"),
        (lambda c: c[:7], "not a compiled model"),
        (lambda c: damaged(c, 0, b"ARMPYnet"), "not a compiled model"),
        (lambda c: damaged(c, 8, b"\x05"), "Expected version 4; got version 5"),
        (lambda c: damaged(c, 8, b"\x01"), "Expected version 4; got version 1"),
        (lambda c: damaged(c, 12, b"\x01"), "wrong header"),
        (lambda c: damaged(c, 16, b"\xff" * 8), "wrong header"),
        (lambda c: damaged(c, 16, b"\xff"), "manifest's checksum"),
        (lambda c: damaged(c, 24, b"\xff" * 8), "not whole"),
        (lambda c: damaged(c, 32, b"?"), "manifest's checksum"),
        (lambda c: damaged(c, 160, b"?"), "wrong header"),
        (lambda c: damaged(c, 255, b"?"), "wrong header"),
        (lambda c: c[:63], "not whole"),
        (lambda c: c[:255], "not whole"),
        (lambda c: c[:-1], "not whole"),
        (lambda c: c + b"\0", "not whole"),
        (lambda c: damaged(c, 270, b"?"), "manifest's checksum"),
        (lambda c: damaged(c, place_of(c, "model"), b"?"), "checksum of section 'model'"),
        (lambda c: damaged(c, place_of(c, "constants"), b"?"), "checksum of section 'constants'"),
        (lambda c: damaged(c, place_of(c, "constants") - 1, b"?"), "between its sections"),
        (lambda c: damaged(c, len(c) - 1, b"\x01"), "checksum of section 'constants'"),
    ],
)
def test_damage_is_found(damage: Callable[[bytes], bytes], text: str, path: Path) -> None:
    optimized(mixed()).save(path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ParserError, match=f"{path.name}.*{text}"):
        OptimizedNetwork.load(path)


def place_of(contents: bytes, name: str) -> int:
    """Where a section begins."""
    return read_plainly(contents).offsets[name]


def test_the_oldest_layout_is_refused_with_its_version(path: Path) -> None:
    path.write_bytes(oldest_layout({"graphs": []}, b"constants"))
    expected = "version that is not read. Expected version 4; got version 1. Make it again"
    with pytest.raises(ParserError, match=expected):
        OptimizedNetwork.load(path)


def at(record: Any, *keys: str | int) -> Any:
    """What lies at a place of a record; the source's graph comes first."""
    for key in keys:
        record = record[key]
    return record


Place = tuple[str | int, ...]
SOURCE = ("graphs", 0)  # and the executed one: CpuRef takes layers as they are
LAYER = (*SOURCE, "layers", 0)
INITIAL = ("arrays", 2)  # of the variable: weights and bias come before


@pytest.mark.parametrize(
    ("place", "value", "text"),
    [
        (("more",), 1, "Expected an object with arrays, graphs, loaded, plan"),
        (("graphs",), [], "Expected a number below 0"),
        (("graphs",), 5, "Expected list; got 5"),
        ((*LAYER, "operation"), "Operation", "the operation cannot be|other attributes"),
        ((*LAYER, "operation"), "os.system", "there is no operation 'os.system'"),
        ((*LAYER, "operation"), "Network", "there is no operation 'Network'"),
        ((*LAYER, "operation"), "__class__", "there is no operation '__class__'"),
        ((*LAYER, "operation"), "PreCompiled", "other attributes"),
        ((*LAYER, "attributes", "activation"), "__class__", "activation: .*Expected one of NONE"),
        ((*LAYER, "attributes", "activation"), 5, r"activation: .*FusedActivation"),
        ((*LAYER, "inputs", 0), 99, "Expected a number below"),
        ((*LAYER, "inputs", 0), -1, "Expected a number below"),
        ((*LAYER, "inputs", 0), True, "Expected"),
        ((*LAYER, "inputs"), [], "the layer cannot be"),
        ((*LAYER, "outputs", 0), 0, "the layer cannot be|not those of its operation|twice"),
        ((*SOURCE, "values", 0, "info", "shape"), [2**70, 1], "values.*shape"),
        ((*SOURCE, "values", 0, "info", "shape"), [-1, 4], "this cannot be"),
        ((*SOURCE, "values", 0, "info", "data_type"), "FLOAT99", "Expected one of FLOAT32|one of"),
        ((*SOURCE, "values", 0, "info", "quantization", "scales"), ["nan"], "scale"),
        ((*SOURCE, "values", 0, "id"), 1, "value ids repeat"),
        ((*INITIAL, "size"), 4, "do not lie in the file"),
        ((*INITIAL, "begin"), -64, "do not lie in the file"),
        ((*INITIAL, "begin"), 2**40, "do not lie in the file"),
        ((*INITIAL, "begin"), 1, "do not lie in the file"),
        ((*INITIAL, "section"), "none", "no section 'none'"),
        ((*INITIAL, "view"), 5, "recipe: .*Expected an object"),
        ((*SOURCE, "variables", 0, "initial"), 99, "Expected a number below"),
        (("loaded",), 99, "Expected a number below"),
        (("plan",), None, "no optimised network"),
        (("plan", "source"), 99, "Expected a number below"),
        (("plan", "executed"), -1, "Expected a number below"),
        ((*SOURCE, "variables", 0, "key"), {"a": 1}, "Expected text, integers"),
        ((*SOURCE, "output_names"), ["y", "y"], "output names repeat"),
        ((*SOURCE, "default_shapes"), [None], "default shapes differ"),
        (
            (
                "plan",
                "assignment",
            ),
            [],
            "not every layer has one backend",
        ),
        (("plan", "backend_ids", 0, 1), 5, "Expected str; got 5"),
        (
            (
                "plan",
                "model_options",
            ),
            {"A": {"b": None}},
            "model_options.A.b",
        ),
        (("plan", "placement", "fallbacks"), 1.5, "Expected int; got 1.5"),
        (
            (
                "plan",
                "tensors",
            ),
            [{"value": 0, "arena": 7, "offset_bytes": 0, "lifetime": [0, 0]}],
            "below",
        ),
    ],
)
def test_each_field_is_checked(place: Place, value: object, text: str, path: Path) -> None:
    optimized(mixed()).save(path)
    record, data = parts(path)
    at(record, *place[:-1])[place[-1]] = value
    write(path, record, data)
    with pytest.raises(ParserError, match=text):
        OptimizedNetwork.load(path)


@pytest.mark.slow
def test_a_text_that_is_too_large_when_inflated_is_not_inflated(path: Path) -> None:
    write(path, None, raw=zlib.compress(b" " * (1 << 26) + b"{}"))
    with pytest.raises(ParserError, match="one compressed text"):
        OptimizedNetwork.load(path)


def test_what_was_compiled_is_not_the_network_that_is_loaded(path: Path) -> None:
    armpy.optimize(diamond(), runtime_of(CompilingBackend())).save(path)
    record, data = parts(path)
    record["loaded"] = record["plan"]["executed"]
    write(path, record, data)
    with pytest.raises(ParserError, match="the compiled parts cannot be loaded"):
        OptimizedNetwork.load(path)


def test_a_truth_value_is_0_or_1(path: Path) -> None:
    net = Network()
    net.output("y", net.input("x", f32(1)))
    net.output("z", net.constant(np.array([True, False])))
    optimized(net.build()).save(path)
    record, data = parts(path)
    write(path, record, damaged(data, data.index(1), b"\x02"))
    with pytest.raises(ParserError, match="neither 0 nor 1"):
        OptimizedNetwork.load(path)


@pytest.mark.slow
@pytest.mark.parametrize("name", GRAPHS)
def test_whatever_is_in_a_file_is_a_network_or_a_parser_error(name: str, path: Path) -> None:
    optimized(GRAPHS[name]()).save(path)
    record, data = parts(path)
    runtime = runtime_of(memory_limit_bytes=1 << 20)
    outcomes = {"read": 0, "refused": 0}
    for number in range(FUZZED):
        write(path, changed(record, random.Random(number)), data)
        try:
            network = OptimizedNetwork.load(path)
            outcomes["read"] += 1
        except ParserError:
            outcomes["refused"] += 1
            continue
        assert str(network)
        assert network.to_dot()
        try:
            model = Model(network, runtime)
            inputs = [np.ones(i.info.known_shape, i.data_type.dtype) for i in model.inputs]
            model(*inputs)
        except BackendError:
            raise
        except ArmpyError:
            continue
        finally:
            runtime.free_working_memory()
    assert min(outcomes.values()) > FUZZED // 30


@pytest.mark.slow
def test_damaged_bytes_are_a_parser_error(path: Path) -> None:
    network = optimized(mixed())
    network.save(path)
    sound = path.read_bytes()
    for number in range(FUZZED):
        contents = mutated([sound], number)
        path.write_bytes(contents)
        if contents[:64] + contents[160:] == sound[:64] + sound[160:]:  # but for who has signed it
            assert str(OptimizedNetwork.load(path)) == str(network)
            continue
        with pytest.raises(ParserError):
            OptimizedNetwork.load(path)
