"""Weighted and windowed operations on tensors with dimensions of 0: sums of nothing are 0."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest

from armpy import Network, Runtime, RuntimeOptions, ops
from armpy.errors import LayerValidationError
from armpy.ops.operation import Array, Operation
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType

CASES: dict[str, tuple[Operation, list[tuple[int, ...]], tuple[int, ...]]] = {
    "convolution": (ops.Convolution2d(), [(2, 4, 4, 0), (3, 3, 3, 0)], (2, 2, 2, 3)),
    "points": (ops.Convolution2d(), [(2, 4, 4, 0), (3, 1, 1, 0)], (2, 4, 4, 3)),
    "no filters": (ops.Convolution2d(), [(2, 4, 4, 3), (0, 3, 3, 3)], (2, 2, 2, 0)),
    "no images": (ops.Convolution2d(), [(0, 4, 4, 3), (2, 3, 3, 3)], (0, 2, 2, 2)),
    "depthwise": (ops.DepthwiseConvolution2d(), [(2, 4, 4, 0), (1, 3, 3, 0)], (2, 2, 2, 0)),
    "volume": (ops.Convolution3d(), [(1, 4, 4, 4, 0), (2, 3, 3, 3, 0)], (1, 2, 2, 2, 2)),
    "transposed": (ops.TransposeConvolution2d(), [(2, 2, 2, 0), (3, 3, 3, 0)], (2, 4, 4, 3)),
    "transposed, no filters": (
        ops.TransposeConvolution2d(),
        [(2, 2, 2, 3), (0, 3, 3, 3)],
        (2, 4, 4, 0),
    ),
    "transposed volume": (
        ops.TransposeConvolution3d(),
        [(1, 2, 2, 2, 0), (3, 3, 3, 3, 0)],
        (1, 4, 4, 4, 3),
    ),
    "no units": (ops.FullyConnected(), [(2, 3), (0, 3)], (2, 0)),
    "no vectors": (ops.FullyConnected(), [(0, 3), (2, 3)], (0, 2)),
    "no depth": (ops.FullyConnected(), [(2, 0), (3, 0)], (2, 3)),
    "no depth of matrices": (ops.BatchMatMul(), [(2, 3, 0), (2, 0, 4)], (2, 3, 4)),
    "no columns": (ops.BatchMatMul(), [(2, 3, 5), (2, 5, 0)], (2, 3, 0)),
    "pooling": (ops.Pooling2d(pool_size=(2, 2)), [(2, 4, 4, 0)], (2, 3, 3, 0)),
    "resize": (ops.Resize((3, 3)), [(0, 0, 4, 2)], (0, 3, 3, 2)),
}
REAL = TensorInfo(None, DataType.FLOAT32)
QUANTIZED = TensorInfo(None, DataType.QASYMM_S8, quantization=Quantization.per_tensor(0.5, 0))


def run(
    operation: Operation, shapes: Sequence[tuple[int, ...]], info: TensorInfo, constant: bool
) -> Array:
    """The output for inputs of ones, on NumbaAcc where it takes the layer."""
    network, feeds = Network(), {}
    values = []
    for number, shape in enumerate(shapes):
        ones = np.ones(shape, info.data_type.dtype)
        if number and constant:
            value = network.constant(ones, data_type=info.data_type, quantization=info.quantization)
        else:
            value = network.input(f"x{number}", info.with_shape(shape))
            feeds[f"x{number}"] = ones
        values.append(value)
    network.output("y", network.add(operation, *values, output=info))
    outputs = []
    for backends in (["CpuRef"], ["NumbaAcc", "CpuRef"]):
        with Runtime(RuntimeOptions(backends=backends)) as runtime:
            loaded = runtime.load_network(network)
            outputs.append(runtime.enqueue_workload(loaded, feeds)["y"])
    np.testing.assert_array_equal(outputs[1], outputs[0])
    return outputs[0]


@pytest.mark.parametrize("info", [REAL, QUANTIZED], ids=lambda info: info.data_type.name)
@pytest.mark.parametrize("constant", [False, True], ids=["computed weights", "constant weights"])
@pytest.mark.parametrize("name", CASES)
def test_sums_of_nothing_are_0(name: str, constant: bool, info: TensorInfo) -> None:
    operation, shapes, expected = CASES[name]
    output = run(operation, shapes, info, constant)
    np.testing.assert_array_equal(output, np.zeros(expected, info.data_type.dtype))


@pytest.mark.parametrize("sizes", [*itertools.product((0, 2), (0, 3), (0, 4), (0, 5))], ids=str)
def test_attention_of_nothing_gives_0_or_the_mean(sizes: tuple[int, ...]) -> None:
    """Without elements, all scores are 0, so that the weights of all values are equal."""
    queries, keys, size, value_size = sizes
    shapes = [(1, 2, queries, size), (1, 2, keys, size), (1, 2, keys, value_size)]
    output = run(ops.Attention(), shapes, REAL, constant=False)
    expected = np.full((1, 2, queries, value_size), 1 if keys else 0, np.float32)
    np.testing.assert_allclose(output, expected, rtol=1e-6)


def test_images_without_pixels_are_not_enlarged() -> None:
    with pytest.raises(LayerValidationError, match=r"no pixels.*got \(2, 0, 4, 3\)"):
        run(ops.Resize((3, 3)), [(2, 0, 4, 3)], REAL, constant=False)


def test_filters_deeper_than_no_channels_are_refused() -> None:
    with pytest.raises(LayerValidationError, match=r"divisor of 0 .*got 3"):
        run(ops.Convolution2d(), [(2, 4, 4, 0), (2, 3, 3, 3)], REAL, constant=False)
