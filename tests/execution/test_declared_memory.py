"""Tensors lie as a backend's handle factory declares: aligned, and with padding after them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armpy
from armpy.backend import (
    MOST_ALIGNMENT_BYTES,
    ExternalMemory,
    MemorySource,
)
from armpy.backend.memory.memory import empty_tensor
from armpy.compiler.memory.plan import MemoryPlan, plan_memory
from armpy.errors import (
    BackendError,
    InvalidArgumentError,
    MemoryImportError,
    ParserError,
)
from armpy.execution import NetworkProperties
from armpy.graph import Graph
from armpy.graph.network import Network
from armpy.model import Model
from armpy.ops import If, NonZero
from armpy.ops.operation import Array
from armpy.plugins.proxy.memory import HandleFactoryProxy
from armpy_testing.backends.fake_backends import runtime_of
from armpy_testing.backends.vector_backend import GARBAGE, VectorBackend, VectorFactory
from armpy_testing.models.control_flow import BOOL
from armpy_testing.models.networks import ADD, MUL, RELU, f32, floats, placement_of
from armpy_testing.systems import NEEDS_SHARED_MEMORY

X = floats(-3, -1, 0, 2, 4, 7, 9)


def odd(width: int = 7) -> Graph:
    """``y = relu(x + c) * x``, of tensors that fill no vector; ``s`` is the sum as well."""
    net = Network()
    x = net.input("x", f32(width))
    c = net.constant(np.arange(width, dtype=np.float32))
    s = net.add(ADD, x, c, name="s")
    r = net.add(RELU, s, name="r")
    net.output("y", net.add(MUL, r, x, name="y"))
    net.output("s", s)
    return net.build()


def wanted(x: Array) -> tuple[Array, Array]:
    s = x + np.arange(x.size, dtype=np.float32)
    return np.maximum(s, 0) * x, s


def check(model: Model, x: Array = X) -> None:
    for array in (x, x - 2):
        before = array.copy()
        y, s = model(array)
        np.testing.assert_array_equal(y, wanted(array)[0])
        np.testing.assert_array_equal(s, wanted(array)[1])
        np.testing.assert_array_equal(array, before)


def lying(array: Array, alignment_bytes: int, beyond_bytes: int, padding_bytes: int = 64) -> Array:
    """A copy that begins some bytes after a multiple, with garbage around it."""
    raw = np.full(
        array.nbytes + 2 * alignment_bytes + beyond_bytes + padding_bytes, GARBAGE, np.uint8
    )
    start = -raw.ctypes.data % alignment_bytes + beyond_bytes
    view: Array = raw[start : start + array.nbytes].view(array.dtype)
    view[...] = array
    return view


def test_padding_that_is_written_harms_no_neighbour() -> None:
    """Outputs and inputs that lie side by side in one array of the caller's."""
    simd = VectorBackend(4, 64)
    model = Model(odd(), runtime_of(simd))
    whole = np.arange(40, dtype=np.float32)
    x, y, s = whole[3:10], whole[11:18], whole[18:25]
    right = wanted(x)
    model.run({"x": x}, {"y": y, "s": s})
    np.testing.assert_array_equal(y, right[0])
    np.testing.assert_array_equal(s, right[1])
    rest = [*range(11), *range(25, 40)]
    np.testing.assert_array_equal(whole[rest], np.array(rest, np.float32))
    bound = model.bind({"x": x}, {"y": y, "s": s})
    bound()
    np.testing.assert_array_equal(whole[rest], np.array(rest, np.float32))


@pytest.mark.parametrize("declared", [(256, 1), (1, 128), (64, 64)])
def test_tensors_of_unknown_shapes_lie_as_declared(declared: tuple[int, int]) -> None:
    net = Network()
    x = net.input("x", f32(7))
    places = net.add(NonZero(), net.add(RELU, x, name="r"), name="found")
    net.output("places", places)
    simd = VectorBackend(*declared)
    model = Model(net, runtime_of(simd))
    array = lying(X, 256, 4)
    np.testing.assert_array_equal(model(array), [[3, 4, 5, 6]])
    layers = placement_of(model).layers
    assert {layer.backend for layer in layers if layer.operation != "MemCopy"} == {"Simd"}
    assert simd.seen
    assert simd.misplaced == []


def test_tensors_of_control_flow_lie_as_declared() -> None:
    then, other, net = Network(), Network(), Network()
    a = then.input("a", f32(7))
    then.output("y", then.add(ADD, a, then.constant(np.float32(1))))
    b = other.input("b", f32(7))
    other.output("y", other.add(RELU, b))
    condition, x = net.input("condition", BOOL), net.input("x", f32(7))
    net.output("y", net.add(If(then.build(), other.build()), condition, x))
    simd = VectorBackend(512, 32)
    model = Model(net, runtime_of(simd))
    for decision, right in ((True, X + 1), (False, np.maximum(X, 0))):
        np.testing.assert_array_equal(model(np.array([decision]), lying(X, 512, 4)), right)
    assert simd.seen
    assert simd.misplaced == []


# Plans


def test_an_arena_of_another_network_is_only_taken_where_it_is_aligned() -> None:
    plain, strict = VectorBackend(), VectorBackend(MOST_ALIGNMENT_BYTES)
    for _ in range(8):
        check(Model(odd(), runtime_of(plain)))
        check(Model(odd(), runtime_of(strict)))
    assert strict.misplaced == []


def test_a_program_that_was_made_for_less_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a file that was compiled before the backend declared more."""

    def planned(*args: Any) -> MemoryPlan:
        return plan_memory(*args[:4])  # without the factories

    monkeypatch.setattr("armpy.compiler.optimize.plan_memory", planned)
    simd = VectorBackend(1024)
    model = Model(odd(), runtime_of(simd))
    said = "the memory plan does not match .* declarations. Expected tensors at multiples of 1024"
    with pytest.raises(BackendError, match=said):
        model(X)
    assert simd.seen == []


# Imports


def test_aligned_memory_is_imported_and_used_where_it_lies() -> None:
    simd = VectorBackend(128, 32)
    with Model(odd(8), runtime_of(simd)) as model:
        x = np.arange(8, dtype=np.float32)
        memory = lying(x, 128, 0)
        tensor = model.import_inputs({"x": memory})["x"]
        simd.seen.clear()
        np.testing.assert_array_equal(model(tensor)[0], wanted(x)[0])
        assert memory.ctypes.data in simd.seen
        assert simd.misplaced == []


def test_memory_without_room_for_the_padding_is_not_imported() -> None:
    with Model(odd(), runtime_of(VectorBackend(4, 64))) as model:
        with pytest.raises(MemoryImportError, match="has 28 bytes, and 'test/vectors' needs 64"):
            model.import_inputs({"x": X.copy()})
        padded = np.full(64, GARBAGE, np.uint8)
        tensor = model.import_inputs({"x": ExternalMemory.of_array(padded)})["x"]
        padded[:28] = X.view(np.uint8)
        np.testing.assert_array_equal(model(tensor)[0], wanted(X)[0])


@NEEDS_SHARED_MEMORY
@pytest.mark.parametrize("source", [MemorySource.MALLOC, MemorySource.SHARED_MEMORY])
def test_memory_of_a_call_that_lies_elsewhere_is_copied_and_the_log_says_why(
    source: MemorySource, caplog: pytest.LogCaptureFixture
) -> None:
    simd = VectorBackend(64, 16)
    properties = NetworkProperties(input_source=source, output_source=source)
    with Model(odd(8), runtime_of(simd), properties=properties) as model:
        for beyond in (0, 4):
            x = np.arange(8, dtype=np.float32)
            arguments: list[Array | ExternalMemory]
            if source is MemorySource.MALLOC:
                arguments = [lying(x, 64, beyond), lying(x, 64, beyond)]
            else:
                shared = [ExternalMemory.shared(64) for _ in range(2)]
                about = [
                    (memory.source, 32, None, memory.file_descriptor, beyond) for memory in shared
                ]
                arguments = [ExternalMemory(*fields) for fields in about]
                arguments[0].map().view(np.float32)[...] = x  # type: ignore[union-attr]  # as above
            caplog.clear()
            with caplog.at_level("INFO", "armpy.execution"):
                model.run({"x": arguments[0]}, {"y": arguments[1]})
            y = np.asarray(arguments[1]).view(np.float32)
            np.testing.assert_array_equal(y, wanted(x)[0])
            assert ("begins 4 bytes after a multiple of 64" in caplog.text) == bool(beyond)
            assert simd.misplaced == []


@NEEDS_SHARED_MEMORY
def test_imported_tensors_overlap_with_their_padding() -> None:
    with Model(odd(), runtime_of(VectorBackend(4, 64))) as model:
        whole = ExternalMemory.shared(128)
        about = whole.source, 64, None, whole.file_descriptor
        first = model.import_inputs({"x": ExternalMemory(*about, 0)})["x"]
        other = model.import_outputs({"y": ExternalMemory(*about, 32)})["y"]
        with pytest.raises(InvalidArgumentError, match="overlap"):
            model.run({"x": first}, {"y": other})


def test_memory_for_a_tensor_keeps_its_padding() -> None:
    tensor = empty_tensor(f32(7), 256, 1024)
    assert tensor.shape == (7,)
    assert tensor.dtype == np.float32
    assert tensor.ctypes.data % 256 == 0
    assert empty_tensor(f32(), 1, 64).shape == ()


# What is refused

WRONG = [0, -64, 3, 48, 2 * MOST_ALIGNMENT_BYTES, True, 64.0, "64", None]


@pytest.mark.parametrize("number", WRONG)
@pytest.mark.parametrize("name", ["alignment_bytes", "padding_bytes"])
def test_what_cannot_be_kept_to_is_refused(name: str, number: object) -> None:
    with pytest.raises(BackendError) as caught:
        HandleFactoryProxy("Simd", VectorFactory(**{name: number}))
    assert caught.value.where == f"Simd / {name}"
    if isinstance(number, int):
        assert "test/vectors" in str(caught.value)
        assert "a power of two from 1 to 4096" in caught.value.expected
        assert caught.value.actual == repr(number)


def test_a_backend_that_declares_nonsense_is_left_out_with_the_reason() -> None:
    model = Model(odd(), runtime_of(VectorBackend(48)))
    check(model)
    assert {layer.backend for layer in placement_of(model).layers} == {"CpuRef"}
    assert any("alignment_bytes" in refusal.text for refusal in placement_of(model).refusals)


# Memory that compiled programs need counts like any other


DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite"


def load(**options: object) -> armpy.Model:
    chosen = armpy.RuntimeOptions(backends=["NumbaAcc"], **options)  # type: ignore[arg-type]
    return armpy.load(DIGITS, runtime=armpy.Runtime(chosen))


@pytest.mark.slow
def test_a_program_s_memory_is_in_the_placement_report() -> None:
    placement = load().placement
    assert placement is not None
    assert placement.arena_bytes["NumbaAcc"] == placement.peak_bytes > 1000


def test_a_program_s_memory_counts_towards_the_limit() -> None:
    with pytest.raises(ParserError, match="at most 1000 bytes"):
        load(memory_limit_bytes=1000)
