"""Operators that convolve quantised images."""

from __future__ import annotations

import numpy as np

from armpy.core.dataclass import dataclass
from armpy.graph import Value
from armpy.ops.activations import FusedActivation
from armpy.ops.convolution import Convolution2d, DepthwiseConvolution2d
from armpy.ops.elementwise import BinaryOperation
from armpy.ops.operation import Array
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType
from armpy_onnx.blocks import filled
from armpy_onnx.images import (
    WindowAttributes,
    channels_first,
    channels_last,
    lifted,
    spatial_sizes,
    spec_of_pads,
    window_attributes,
)
from armpy_onnx.node import Node, Operator, OperatorTable
from armpy_onnx.operators.convolution import check_groups
from armpy_onnx.operators.quantization import requantized
from armpy_onnx.quantized import (
    as_integers,
    as_quantized,
    binary,
    check_bytes,
    fused_activation,
    meets_halves,
    output_of_bytes,
    quantization_of,
    quantized_bias,
    quantized_weights,
    tensor_quantization,
)

_MOST_TAPS = 2**24 // 255**2
"""Products of bytes less their zero points whose sums float32 holds exactly."""


@dataclass(frozen=True, eq=False, slots=True)
class _Filters:
    """Constant weights of bytes, and the windows that they are for."""

    data: Array  # ndarray, int8 or uint8, shape (o, i / groups, h, w)
    quantization: Quantization
    windows: WindowAttributes
    groups: int


def _filters(node: Node, weights: int, quantization: Quantization) -> _Filters:
    check_bytes(node, 0, weights)
    value, data = node.value(weights), node.array(weights)
    sizes = spatial_sizes(node)
    if data.ndim != len(sizes) + 2:
        raise node.error(
            "the weights have the wrong rank", expected=f"{len(sizes) + 2}", actual=data.shape
        )
    windows = window_attributes(node, sizes, data.shape[2:])
    groups = check_groups(node, node.value(0), value)
    if len(sizes) > 2:
        raise node.error("convolutions of quantised volumes are not supported")
    return _Filters(
        data.reshape(*data.shape[:2], *lifted(data.shape[2:], 1)), quantization, windows, groups
    )


def _is_depthwise(image: Value, filters: _Filters) -> bool:
    """Return whether each channel is convolved alone."""
    return 1 < filters.groups == image.info.known_shape[1]


def _convolved(
    node: Node,
    image: Value,
    filters: _Filters,
    bias: Value | None,
    output: TensorInfo,
    activation: FusedActivation = FusedActivation.NONE,
) -> Value:
    """Convolve a quantised image, its channels after the batch.

    Notes
    -----
    bias int32 (o). The output is quantised, or int32 for plain sums. An image of float32 holds
    integers less their zero point, and so do the weights then and the output.
    """
    windows, data, of_image = filters.windows, filters.data, image.info
    is_depthwise = _is_depthwise(image, filters)
    perm, axis = ((1, 2, 3, 0), 3) if is_depthwise else ((0, 2, 3, 1), 0)
    quantization = filters.quantization
    if of_image.data_type is DataType.FLOAT32:
        less = np.array(quantization.zero_points, np.float32).reshape(-1, 1, 1, 1)
        weights = node.constant(np.ascontiguousarray((data - less).transpose(perm)))
    else:
        turned = Quantization(
            quantization.scales,
            quantization.zero_points,
            None if quantization.axis is None else axis,
        )
        plain = DataType.SIGNED8 if of_image.data_type is DataType.QASYMM_S8 else DataType.UNSIGNED8
        weights = quantized_weights(node, np.ascontiguousarray(data.transpose(perm)), turned, plain)
    make = DepthwiseConvolution2d if is_depthwise else Convolution2d
    operation = make(
        lifted(windows.stride, 1),  # type: ignore[arg-type]  # two of each
        lifted(windows.dilation, 1),  # type: ignore[arg-type]
        spec_of_pads(windows.pads),
        activation,
        rounds_once=output.data_type.is_quantized,
    )
    last = node.layer(operation, channels_last(node, image), weights, bias, output=output)
    return channels_first(node, last, len(windows.kernel))


def _q_linear_conv(node: Node) -> Value:
    of_x, of_y = tensor_quantization(node, 1, 2), tensor_quantization(node, 6, 7)
    of_weights = quantization_of(node, 4, 5, node.rank(3), 0)
    if of_weights is None:
        raise node.error(
            "the weights' scales or zero points are not supported",
            expected="constants, with scales above 0",
        )
    filters = _filters(node, 3, of_weights)
    if of_weights.axis is not None and len(of_weights.scales) != len(filters.data):
        raise node.error(
            "the number of scales is wrong",
            expected=f"{len(filters.data)}",
            actual=len(of_weights.scales),
        )
    bias = quantized_bias(node, 8, of_x.scale, of_weights)
    has_points = of_weights.axis is not None and any(of_weights.zero_points)
    activation = fused_activation(node)
    output = output_of_bytes(node, 6, node.type(0))
    factors = np.float32(of_x.scale) * np.array(of_weights.scales, np.float32)
    factors /= np.float32(of_y.scale)
    if node.type(7) is node.type(0) and not has_points and not meets_halves(factors):
        image = as_quantized(node, node.value(0), of_x)
        return as_integers(node, _convolved(node, image, filters, bias, output, activation))
    # No layer takes these types, zero points or halves.
    sums = _sums(node, filters, of_x.zero_point, bias)
    of_channels = factors.reshape(-1, *(1,) * (node.rank(0) - 2))
    return requantized(node, sums, of_channels, activation, output)


def _sums(node: Node, filters: _Filters, point: int, bias: Value | None) -> Value:
    """Sums of products less the zero points, which may differ from filter to filter."""
    image = as_quantized(node, node.value(0), Quantization.per_tensor(1.0, point))
    return _sums_of(node, image, filters, bias)


def _sums_of(node: Node, image: Value, filters: _Filters, bias: Value | None) -> Value:
    """Sums of an image that carries its zero point."""
    output = TensorInfo(None, DataType.SIGNED32)
    points = filters.quantization.zero_points
    plain = Quantization.per_tensor(1.0, points[0])
    if len(set(points)) == 1:
        same = _Filters(filters.data, plain, filters.windows, filters.groups)
        return _convolved(node, image, same, bias, output)
    # Bytes less zero points of bytes take 9 bits: the part beyond 8 is a convolution of its own.
    less = np.array(points).reshape(-1, 1, 1, 1)
    wide = filters.data.astype(np.int16) - less
    near = np.clip(wide, -128, 127)
    parts: list[Value] = []
    for data in (near, wide - near):
        zero = Quantization.per_tensor(1.0)
        part = _Filters(data.astype(np.int8), zero, filters.windows, filters.groups)
        parts.append(_convolved(node, image, part, None if parts else bias, output))
    return binary(node, BinaryOperation.ADD, *parts)


def _conv_integer(node: Node) -> Value:
    points = node.elements(3)
    numbers = (0,) if points is None else node.data.whole(points, "a zero point")
    scales = (1.0,) * len(numbers)
    filters = _filters(node, 1, Quantization(scales, numbers, 0 if len(numbers) > 1 else None))
    if len(numbers) not in (1, len(filters.data)):
        raise node.error(
            "the number of the weights' zero points is wrong",
            expected=f"1 or {len(filters.data)}",
            actual=len(numbers),
        )
    point = node.input(2)
    if _is_depthwise(node.value(0), filters) and filters.data[0].size <= _MOST_TAPS:
        image = node.cast(node.value(0), DataType.FLOAT32)
        if point is not None:
            image = binary(node, BinaryOperation.SUB, image, node.cast(point, DataType.FLOAT32))
        real = _convolved(node, image, filters, None, TensorInfo(None, DataType.FLOAT32))
        return node.cast(real, DataType.SIGNED32)
    if point is None or point.data is not None:
        known = 0 if point is None else node.whole_number(2)
        return _sums(node, filters, known, None)
    # Padding is the zero point, too: its addend is that of an image of ones without padding.
    none = Quantization.per_tensor(1.0)
    value = node.value(0)
    sums = _sums_of(node, as_quantized(node, value, none), filters, None)
    ones = filled(node, value, (1, *value.info.known_shape[1:]), 1)
    of_ones = _sums_of(node, as_quantized(node, ones, none), filters, None)
    moved = binary(node, BinaryOperation.MUL, node.cast(point, DataType.SIGNED32), of_ones)
    return binary(node, BinaryOperation.SUB, sums, moved)


OPERATORS: OperatorTable = {
    "ConvInteger": Operator(_conv_integer, (1, 3), (DataType.SIGNED32,)),
    "QLinearConv": Operator(_q_linear_conv, (1, 2, 3, 4, 5, 6, 7, 8), (7,)),
    "armpy.QLinearConv": Operator(_q_linear_conv, (1, 2, 3, 4, 5, 6, 7, 8), (7,)),
}
