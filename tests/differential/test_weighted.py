"""Convolutions, matrix products and pooling against LiteRT's reference kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from armpy.ops import (
    BatchMatMul,
    Convolution2d,
    DepthwiseConvolution2d,
    FullyConnected,
    Pooling2d,
    PoolingAlgorithm,
    TransposeConvolution2d,
)
from armpy.ops.activations import FusedActivation
from armpy.ops.shapes import Padding
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType
from tests.differential.litert_oracle import litert_or_skip
from tests.differential.single_operator import (
    QUANTIZED_TYPES,
    Array,
    Operand,
    check_operator,
    integers,
)

litert_or_skip()

NUM_CASES = 40
F32, U8, S8, S16 = DataType.FLOAT32, *QUANTIZED_TYPES


@dataclass(frozen=True)
class Kind:
    """A combination of types that kernels tell apart."""

    data_type: DataType
    weights: DataType
    is_per_axis: bool = False
    bias: DataType = DataType.SIGNED32

    @property
    def is_dynamic(self) -> bool:
        """Whether float inputs meet quantised weights."""
        return self.data_type is F32 and self.weights is not F32


FLOAT = Kind(F32, F32, bias=F32)
UINT8 = Kind(U8, U8)
INT8 = Kind(S8, S8)
INT8_PER_AXIS = Kind(S8, DataType.QSYMM_S8, True)
INT16 = Kind(S16, DataType.QSYMM_S8, True, DataType.SIGNED64)
INT16_NARROW = Kind(S16, DataType.QSYMM_S8, True, DataType.SIGNED32)
DYNAMIC = Kind(F32, DataType.QSYMM_S8, bias=F32)
DYNAMIC_PER_AXIS = Kind(F32, DataType.QSYMM_S8, True, F32)
KINDS = (FLOAT, UINT8, INT8, INT8_PER_AXIS, INT16, INT16_NARROW)


def kind_name(kind: Kind) -> str:
    """Name of a kind in test ids."""
    names = [t.name for t in (kind.data_type, kind.weights, kind.bias)]
    return "-".join([*names, *(["per_axis"] if kind.is_per_axis else [])])


@pytest.fixture(name="rng")
def make_rng() -> np.random.Generator:
    """Random numbers that are the same in every run."""
    return np.random.default_rng(2024)


def quantization(rng: np.random.Generator, data_type: DataType, num_scales: int) -> Quantization:
    """A random one; several scales run along axis 0, to be changed by the caller."""
    scales = [float(np.float32(s)) for s in np.exp(rng.uniform(-6, 0, num_scales))]
    if num_scales > 1:
        return Quantization.per_axis(scales, 0)
    is_symmetric = data_type.is_symmetric
    zero_point = 0 if is_symmetric else int(rng.integers(*data_type.integer_range))
    return Quantization.per_tensor(scales[0], zero_point)


def elements(rng: np.random.Generator, info: TensorInfo) -> Array:
    """Elements over the whole range of the type, or small numbers."""
    if info.data_type is F32:
        return rng.normal(0, 0.3, info.known_shape).astype(np.float32)
    low, high = info.data_type.integer_range
    if info.data_type is DataType.QSYMM_S8:
        low = -high  # vector code of the kernels for float inputs is wrong for -128
    return rng.integers(low, high + 1, info.known_shape).astype(info.data_type.dtype)


def operands(
    rng: np.random.Generator,
    kind: Kind,
    shape: tuple[int, ...],
    weights_shape: tuple[int, ...],
    channel_axis: int,
    has_zero_point: bool = False,
) -> tuple[list[Operand], TensorInfo]:
    """Random input, weights and bias, and an output that its sums fit now and then."""
    channels = weights_shape[channel_axis]
    depth = int(np.prod(weights_shape)) // channels
    data, weights = TensorInfo(shape, kind.data_type), TensorInfo(weights_shape, kind.weights)
    bias = TensorInfo((channels,), kind.bias)
    output = TensorInfo(None, kind.data_type)
    if kind.weights.is_quantized:
        given = quantization(rng, kind.weights, channels if kind.is_per_axis else 1)
        zero_points = given.zero_points if kind.weights is U8 or has_zero_point else None
        axis = None if given.axis is None else channel_axis
        given = Quantization(given.scales, zero_points or (0,) * len(given.scales), axis)
        weights = TensorInfo(weights_shape, kind.weights, given)
    if kind.data_type.is_quantized:
        source = quantization(rng, kind.data_type, 1)
        data = TensorInfo(shape, kind.data_type, source)
        factors = weights.quantization or Quantization.per_tensor(1)
        products = np.float32(source.scale) * np.array(factors.scales, np.float32)
        axis = None if factors.axis is None else 0
        scales = tuple(map(float, products))
        bias = TensorInfo((channels,), kind.bias, Quantization(scales, (0,) * len(scales), axis))
        spread = (300 if kind.data_type is S16 else 1) * np.sqrt(depth) * 60 * rng.uniform(0.1, 3)
        factor = spread if kind.data_type is S16 or rng.integers(8) else 1 / rng.uniform(0.3, 8)
        scale = float(np.float32(products.max() * factor))
        zero_point = quantization(rng, kind.data_type, 1).zero_point
        output = TensorInfo(None, kind.data_type, Quantization.per_tensor(scale, zero_point))
    biases = (
        elements(rng, bias)
        if kind.bias is F32
        else rng.integers(-(1 << 12), 1 << 12, channels).astype(kind.bias.dtype)
    )
    made = [(data, elements(rng, data)), (weights, elements(rng, weights)), (bias, biases)]
    return made, output


def activation(rng: np.random.Generator) -> FusedActivation:
    """Any of them."""
    return list(FusedActivation)[int(rng.integers(4))]


_ACTIVATIONS = {
    FusedActivation.NONE: "NONE",
    FusedActivation.RELU: "RELU",
    FusedActivation.RELU1: "RELU_N1_TO_1",
    FusedActivation.RELU6: "RELU6",
}


def window_options(operation: Any) -> dict[str, Any]:
    """Options that all operators with windows share."""
    return {
        "padding": operation.padding.name,
        "stride_h": operation.stride[0],
        "stride_w": operation.stride[1],
        "fused_activation_function": _ACTIVATIONS[operation.activation],
    }


def bias_options(kind: Kind) -> dict[str, Any]:
    """What tells 16-bit kernels how wide the bias is."""
    return {"quantized_bias_type": "INT32"} if kind == INT16_NARROW else {}


def pair(rng: np.random.Generator, high: int) -> tuple[int, int]:
    """Two sizes from 1."""
    return int(rng.integers(1, high + 1)), int(rng.integers(1, high + 1))


def windows(
    rng: np.random.Generator, max_dilation: int = 3
) -> tuple[tuple[int, int], tuple[int, int], dict[str, Any]]:
    """Sizes of image and kernel that go together, and attributes."""
    kernel, dilation = pair(rng, 4), pair(rng, max_dilation)
    if rng.integers(4) == 0:
        kernel = (1, 1)
    stride = (1, 1) if max(dilation) > 1 else pair(rng, 3)
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    sizes = (extents[0] + int(rng.integers(0, 9)), extents[1] + int(rng.integers(0, 9)))
    attributes: dict[str, Any] = {
        "stride": stride,
        "padding": list(Padding)[int(rng.integers(2))],
        "activation": activation(rng),
    }
    if max_dilation > 1:
        attributes["dilation"] = dilation
    return sizes, kernel, attributes


@pytest.mark.parametrize("kind", [*KINDS, DYNAMIC, DYNAMIC_PER_AXIS], ids=kind_name)
def test_convolution_is_that_of_litert(rng: np.random.Generator, kind: Kind) -> None:
    for _ in range(NUM_CASES):
        sizes, kernel, attributes = windows(rng)
        groups = 1 if kind is DYNAMIC or rng.integers(3) else 2
        depth, filters = int(rng.integers(1, 9)), groups * int(rng.integers(1, 9))
        shape = (int(rng.integers(1, 3)), *sizes, depth * groups)
        made, output = operands(rng, kind, shape, (filters, *kernel, depth), 0)
        operation = Convolution2d(**attributes)
        options = {
            **window_options(operation),
            **bias_options(kind),
            "dilation_h_factor": operation.dilation[0],
            "dilation_w_factor": operation.dilation[1],
        }
        check_operator(operation, "CONV_2D", made, options=options, outputs=[output])


@pytest.mark.parametrize("kind", [*KINDS[:-1], DYNAMIC_PER_AXIS], ids=kind_name)
def test_depthwise_convolution_is_that_of_litert(rng: np.random.Generator, kind: Kind) -> None:
    for _ in range(NUM_CASES):
        sizes, kernel, attributes = windows(rng)
        depth, multiplier = int(rng.integers(1, 9)), int(rng.integers(1, 4))
        shape = (int(rng.integers(1, 3)), *sizes, depth)
        made, output = operands(rng, kind, shape, (1, *kernel, depth * multiplier), 3)
        operation = DepthwiseConvolution2d(**attributes)
        options = {
            **window_options(operation),
            "dilation_h_factor": operation.dilation[0],
            "dilation_w_factor": operation.dilation[1],
            "depth_multiplier": multiplier,
        }
        kept = made if rng.integers(3) else made[:2]
        check_operator(operation, "DEPTHWISE_CONV_2D", kept, options=options, outputs=[output])


@pytest.mark.parametrize("kind", KINDS[:-1], ids=kind_name)
def test_transpose_convolution_is_that_of_litert(rng: np.random.Generator, kind: Kind) -> None:
    for _ in range(NUM_CASES):
        (height, width), kernel, attributes = windows(rng, max_dilation=1)
        depth, filters = int(rng.integers(1, 9)), int(rng.integers(1, 9))
        shape = (int(rng.integers(1, 3)), height, width, depth)
        made, output = operands(rng, kind, shape, (filters, *kernel, depth), 0)
        operation = TransposeConvolution2d(**attributes)
        inferred = operation.infer([made[0][0], made[1][0]], [output])[0].known_shape
        # Both ends of what a convolution maps to the input's size.
        slack = [int(rng.integers(step)) for step in operation.stride]
        sign = -1 if operation.padding is Padding.SAME else 1
        rows, columns = (inferred[i + 1] + sign * slack[i] for i in range(2))
        target = (inferred[0], rows, columns, filters)
        in_order = [integers(target), made[1], made[0], *made[2:]]
        check_operator(
            operation,
            "TRANSPOSE_CONV",
            in_order,
            options=window_options(operation),
            outputs=[output],
            order=[2, 1, 3, 0],
            inputs={2},
        )


@pytest.mark.parametrize("kind", [*KINDS, DYNAMIC, DYNAMIC_PER_AXIS], ids=kind_name)
def test_fully_connected_is_that_of_litert(rng: np.random.Generator, kind: Kind) -> None:
    for _ in range(NUM_CASES * 2):
        depth, units = int(rng.integers(1, 40)), int(rng.integers(1, 30))
        outer = tuple(int(s) for s in rng.integers(1, 4, int(rng.integers(1, 4))))
        has_zero_point = kind is INT8 and bool(rng.integers(2))
        made, output = operands(rng, kind, (*outer, depth), (units, depth), 0, has_zero_point)
        operation = FullyConnected(activation(rng), bool(rng.integers(2)), bool(rng.integers(2)))
        options = {
            "fused_activation_function": _ACTIVATIONS[operation.activation],
            "keep_num_dims": operation.keep_num_dims,
            "asymmetric_quantize_inputs": operation.asymmetric_quantize_inputs,
            **bias_options(kind),
        }
        kept = made if rng.integers(3) else made[:2]
        check_operator(operation, "FULLY_CONNECTED", kept, options=options, outputs=[output])


@pytest.mark.parametrize("data_type", [F32, S8, S16])
def test_batch_mat_mul_is_that_of_litert(rng: np.random.Generator, data_type: DataType) -> None:
    for _ in range(NUM_CASES * 2):
        rows, depth, columns = (int(n) for n in rng.integers(1, 12, 3))
        batches = tuple(int(n) for n in rng.integers(1, 4, int(rng.integers(0, 3))))
        operation = BatchMatMul(bool(rng.integers(2)), bool(rng.integers(2)))
        x_shape = (depth, rows) if operation.transpose_x else (rows, depth)
        y_shape = (columns, depth) if operation.transpose_y else (depth, columns)
        outer = tuple(n if rng.integers(3) else 1 for n in batches)
        made, output = operands(
            rng, Kind(data_type, data_type), (*batches, *x_shape), (*outer, *y_shape), -1, True
        )
        check_operator(
            operation,
            "BATCH_MATMUL",
            made[:2],
            options={"adj_x": operation.transpose_x, "adj_y": operation.transpose_y},
            outputs=[output],
            inputs=(0, 1),
        )


@pytest.mark.parametrize("data_type", [F32, U8, S8, S16])
@pytest.mark.parametrize("algorithm", PoolingAlgorithm)
def test_pooling_is_that_of_litert(
    rng: np.random.Generator, algorithm: PoolingAlgorithm, data_type: DataType
) -> None:
    if algorithm is PoolingAlgorithm.L2 and data_type is not F32:
        pytest.skip("L2 pooling is for floats")
    for _ in range(NUM_CASES):
        sizes, kernel, attributes = windows(rng, max_dilation=1)
        scales = quantization(rng, data_type, 1) if data_type.is_quantized else None
        shape = (int(rng.integers(1, 3)), *sizes, int(rng.integers(1, 9)))
        info = TensorInfo(shape, data_type, scales)
        operation = Pooling2d(algorithm, kernel, **attributes)
        options = {
            **window_options(operation),
            "filter_height": kernel[0],
            "filter_width": kernel[1],
        }
        code = f"{algorithm.name}_POOL_2D"
        check_operator(operation, code, [(info, elements(rng, info))], options=options)
