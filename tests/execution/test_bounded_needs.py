"""What a layer's attributes say takes neither all memory nor all time, at load nor at run."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

import armpy
from armpy.errors import MemoryLimitError
from armpy.execution import Runtime, RuntimeOptions
from armpy.graph import Graph
from armpy.graph.network import Network
from armpy.model import Model
from armpy.ops import (
    Convolution2d,
    OneHot,
    Pad,
    Padding,
    PaddingMode,
    Pooling2d,
    PoolingAlgorithm,
    RoiAlign,
    TransposeConvolution2d,
    UnidirectionalSequenceRnn,
)
from armpy.ops.operation import Array, Operation
from armpy.tensor import TensorInfo
from armpy_testing.models.networks import f32, i32
from armpy_testing.models.tflite_writer import OptionValue, TfliteModel
from armpy_testing.preparations import watch_preparations

pytestmark = pytest.mark.slow

FAR = 10**8
LARGEST = 2**31 - 1
LIMIT_BYTES = 64 << 20
IMAGE = np.arange(200, dtype=np.float32).reshape(1, 10, 10, 2) % 37

CHILD = """
import resource, sys, time
import numpy as np
from tests.execution import test_bounded_needs as tests

with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (512 << 20),) * 2)
make, inputs, expected = tests.CASES[sys.argv[1]]
backends = sys.argv[2].split(",")
begin = time.process_time()
with tests.loaded(make(), backends) as model:
    found = model(*inputs)
np.testing.assert_allclose(found, expected, rtol=1e-6)
assert time.process_time() - begin < 10
"""


def _single(operation: Operation, infos: Sequence[TensorInfo], *constants: Array) -> Graph:
    """A layer on inputs and constants."""
    net = Network()
    inputs = [net.input(f"in{i}", info) for i, info in enumerate(infos)]
    layer = net.add_layer(operation, [*inputs, *map(net.constant, constants)])
    for index, value in enumerate(layer.outputs):
        net.output(f"out{index}", value)
    return net.build()


def loaded(graph: Graph | bytes, backends: Sequence[str]) -> Model:
    """A network under a small limit."""
    runtime = Runtime(RuntimeOptions(backends=backends, memory_limit_bytes=LIMIT_BYTES))
    if isinstance(graph, bytes):
        return armpy.load(graph, runtime=runtime, memory_limit_bytes=LIMIT_BYTES)
    return Model(graph, runtime)


def _pooling_file() -> bytes:
    """A file of some hundred bytes."""
    model = TfliteModel(description="")
    graph = model.subgraph()
    x, y = (graph.tensor(name, IMAGE.shape) for name in "xy")
    options: dict[str, OptionValue] = {"padding": "SAME", "stride_w": 1, "stride_h": 1}
    options |= {"filter_width": FAR, "filter_height": FAR}
    graph.operator("MAX_POOL_2D", [x], [y], options)
    graph.inputs(x)
    graph.outputs(y)
    return model.to_bytes()


def _pooling() -> Graph:
    """Means of windows that hold the whole image."""
    return _single(
        Pooling2d(PoolingAlgorithm.AVERAGE, (FAR, FAR), padding=Padding.SAME), [f32(1, 10, 10, 2)]
    )


def _dilated() -> Graph:
    """Of whose elements only the one in the middle meets the image."""
    operation = Convolution2d(dilation=(3 * FAR, 3 * FAR), padding=Padding.SAME)
    weights = np.arange(18, dtype=np.float32).reshape(1, 3, 3, 2)
    return _single(operation, [f32(1, 10, 10, 2)], weights)


def _spread(stride: int, sizes: tuple[int, int]) -> Callable[[], Graph]:
    """Input elements a stride apart in the output, each a window of 2 by 2 ones."""
    operation = TransposeConvolution2d((stride, stride), output_shape=(1, *sizes, 1))
    return lambda: _single(operation, [f32(1, 2, 2, 1)], np.ones((1, 2, 2, 1), np.float32))


def _spread_expected(stride: int, sizes: tuple[int, int]) -> Array:
    """The same by hand."""
    out: Array = np.zeros((1, *sizes, 1), np.float32)
    for y in range(2):
        for x in range(2):
            rows, columns = slice(y * stride, y * stride + 2), slice(x * stride, x * stride + 2)
            out[0, rows, columns, 0] += 1 + 2 * y + x
    return out


def _groups() -> Graph:
    """Very many groups of one filter."""
    weights = np.full((20_000, 1, 1, 1), 3, np.float32)
    return _single(Convolution2d(), [f32(1, 1, 1, 20_000)], weights)


FOUR = np.arange(1, 5, dtype=np.float32).reshape(1, 2, 2, 1)
CASES: dict[str, tuple[Callable[[], Graph | bytes], Sequence[Array], Array]] = {
    "pooling of a file": (
        _pooling_file,
        [IMAGE],
        np.broadcast_to(IMAGE.max(axis=(1, 2), keepdims=True), IMAGE.shape),
    ),
    "pooling": (
        _pooling,
        [IMAGE],
        np.broadcast_to(IMAGE.mean(axis=(1, 2), keepdims=True, dtype=np.float64), IMAGE.shape),
    ),
    "dilation": (
        _dilated,
        [IMAGE],
        IMAGE @ np.array([[8], [9]], np.float32),
    ),  # the middle tap's two
    "stride": (_spread(LARGEST, (8, 8)), [FOUR], _spread_expected(LARGEST, (8, 8))),
    "parts": (_spread(400, (800, 800)), [FOUR], _spread_expected(400, (800, 800))),
    "groups": (_groups, [np.ones((1, 1, 1, 20_000), np.float32)], np.full((1, 1, 1, 20_000), 3.0)),
    "nothing one-hot": (
        lambda: _single(
            OneHot(depth=LARGEST), [i32(0)], np.array(1, np.float32), np.array(0, np.float32)
        ),
        [np.zeros(0, np.int32)],
        np.zeros((0, LARGEST), np.float32),
    ),
}


def test_the_file_is_small() -> None:
    assert len(_pooling_file()) < 500


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backends", ["CpuRef", "NumbaAcc,CpuRef"])
@pytest.mark.parametrize("name", CASES)
def test_large_numbers_take_little_memory_and_time(name: str, backends: str) -> None:
    command = [sys.executable, "-c", CHILD, name, backends]
    root = Path(__file__).parents[2]
    process = subprocess.run(
        command, capture_output=True, text=True, cwd=root, timeout=120, check=False
    )
    assert process.returncode == 0, process.stderr[-2000:]


def _computed_weights() -> Graph:
    """Nothing can be taken off weights that are not there yet."""
    operation = Convolution2d(dilation=(FAR, FAR), padding=Padding.SAME)
    return _single(operation, [f32(1, 10, 10, 2), f32(1, 3, 3, 2)])


def _samples() -> Graph:
    """A region of 10^12 samples."""
    operation = RoiAlign((1, 1), 1.0, 1.0, 10**6, 10**6)
    return _single(operation, [f32(1, 4, 4, 1), f32(1, 4), i32(1)])


def _unbounded_output() -> Graph:
    """As large as the stride says."""
    operation = TransposeConvolution2d((10**6, 10**6), Padding.SAME)
    return _single(operation, [f32(1, 1, 1, 1)], np.ones((1, 3, 3, 1), np.float32))


@pytest.mark.parametrize("make", [_computed_weights, _samples, _unbounded_output])
def test_what_needs_too_much_is_refused_before_any_backend_is_asked(
    make: Callable[[], Graph], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Graph) -> None:
        raise AssertionError("backends would be asked")

    watch_preparations(monkeypatch, fail)
    with pytest.raises(MemoryLimitError, match=r"at most 67108864 bytes .*; got \d+ bytes"):
        loaded(make(), ["NumbaAcc", "CpuRef"])


def test_steps_over_nothing_are_not_taken() -> None:
    none = [f32(0, FAR, 2), f32(0, 2)]
    net = Network()
    data, state = (net.input(name, info) for name, info in zip("xh", none, strict=True))
    weights = [net.constant(np.zeros(shape, np.float32)) for shape in ((2, 2), (2, 2), (2,))]
    layer = net.add_layer(UnidirectionalSequenceRnn(), [data, *weights, state])
    (sequence,) = (value for value in layer.outputs if len(value.info.known_shape) == 3)
    net.output("y", sequence)
    with loaded(net.build(), ["CpuRef"]) as model:
        output = model(*(np.zeros(info.known_shape, np.float32) for info in none))
    assert np.asarray(output).shape == (0, FAR, 2)


def test_empty_outputs_take_no_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    def table(*sizes: object) -> None:
        raise AssertionError("a table of sizes was made")

    monkeypatch.setattr(np, "ix_", table)
    net = Network()
    pad = Pad(((0, 0), (1, 1), (0, 0)), padding_mode=PaddingMode.EDGE)
    net.output("y", net.add(pad, net.input("x", f32(0, FAR, 2))))
    with loaded(net.build(), ["CpuRef"]) as model:
        assert np.asarray(model(np.zeros((0, FAR, 2), np.float32))).shape == (0, FAR + 2, 2)
