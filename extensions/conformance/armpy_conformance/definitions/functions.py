"""Operations as NumPy functions straight from their descriptions, in float64."""

from __future__ import annotations

import enum
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from armpy.ops import (
    Activation,
    ActivationFunction,
    BatchMatMul,
    BinaryOperation,
    BroadcastTo,
    ChannelShuffle,
    Comparison,
    ComparisonOperation,
    Concat,
    Convolution2d,
    DepthToSpace,
    DepthwiseConvolution2d,
    ElementwiseBinary,
    ElementwiseUnary,
    ExpandDims,
    FullyConnected,
    FusedActivation,
    L2Normalization,
    LogicalBinary,
    LogicalBinaryOperation,
    LogSoftmax,
    Operation,
    Padding,
    Pooling2d,
    PoolingAlgorithm,
    Prelu,
    Reduce,
    ReduceOperation,
    Reshape,
    ReverseV2,
    Select,
    Softmax,
    SpaceToDepth,
    Splitter,
    Squeeze,
    Stack,
    Tile,
    Transpose,
    TransposeConvolution2d,
    UnaryOperation,
    Unstack,
)
from armpy.types import DataLayout
from armpy_conformance.definitions.indexing import INDEXED_MOVEMENTS

Numbers: TypeAlias = npt.NDArray[Any]  # Any: float64, or a tensor's own elements
Definition: TypeAlias = Callable[[Any, Sequence[Any], Any], Sequence[Numbers]]
"""Computes outputs from an operation, its inputs and the outputs' infos; Any: of one kind."""

_erfc = np.vectorize(math.erfc, otypes=[np.float64])


_BINARY: Mapping[BinaryOperation, Callable[[Numbers, Numbers], Numbers]] = {
    BinaryOperation.ADD: np.add,
    BinaryOperation.SUB: np.subtract,
    BinaryOperation.MUL: np.multiply,
    BinaryOperation.DIV: np.divide,
    BinaryOperation.MAXIMUM: np.maximum,
    BinaryOperation.MINIMUM: np.minimum,
    BinaryOperation.SQUARED_DIFFERENCE: lambda x, y: (x - y) ** 2,
    BinaryOperation.POWER: np.power,
    BinaryOperation.FLOOR_DIV: lambda x, y: np.floor(x / y),
    BinaryOperation.FLOOR_MOD: lambda x, y: x - np.floor(x / y) * y,
    BinaryOperation.TRUNC_MOD: lambda x, y: x - np.trunc(x / y) * y,
    BinaryOperation.ATAN2: lambda x, y: np.angle(y + 1j * x),
}
_UNARY: Mapping[UnaryOperation, Callable[[Numbers], Numbers]] = {
    UnaryOperation.ABS: np.abs,
    UnaryOperation.EXP: np.exp,
    UnaryOperation.SQRT: np.sqrt,
    UnaryOperation.RSQRT: lambda x: 1 / np.sqrt(x),
    UnaryOperation.NEG: np.negative,
    UnaryOperation.LOGICAL_NOT: np.logical_not,
    UnaryOperation.LOG: np.log,
    UnaryOperation.SIN: np.sin,
    UnaryOperation.COS: np.cos,
    UnaryOperation.CEIL: np.ceil,
    UnaryOperation.FLOOR: np.floor,
    UnaryOperation.ROUND: np.round,
    UnaryOperation.SQUARE: np.square,
    UnaryOperation.ERF: np.vectorize(math.erf, otypes=[np.float64]),
    UnaryOperation.RECIPROCAL: lambda x: 1 / x,
    UnaryOperation.SIGN: lambda x: np.where(x > 0, 1.0, np.where(x < 0, -1.0, x)),
    UnaryOperation.TAN: lambda x: np.sin(x) / np.cos(x),
    UnaryOperation.ASIN: np.arcsin,
    UnaryOperation.ACOS: np.arccos,
    UnaryOperation.ATAN: np.arctan,
    UnaryOperation.SINH: np.sinh,
    UnaryOperation.COSH: np.cosh,
    UnaryOperation.ASINH: np.arcsinh,
    UnaryOperation.ACOSH: np.arccosh,
    UnaryOperation.ATANH: np.arctanh,
}
_ACTIVATIONS: Mapping[ActivationFunction, Callable[[Activation, Numbers], Numbers]] = {
    ActivationFunction.SIGMOID: lambda _, x: 1 / (1 + np.exp(-x)),
    ActivationFunction.TANH: lambda op, x: op.a * np.tanh(op.b * x),
    ActivationFunction.LINEAR: lambda op, x: op.a * x + op.b,
    ActivationFunction.RELU: lambda _, x: np.maximum(x, 0),
    ActivationFunction.BOUNDED_RELU: lambda op, x: np.minimum(op.a, np.maximum(op.b, x)),
    ActivationFunction.SOFT_RELU: lambda _, x: np.logaddexp(0, x),
    ActivationFunction.LEAKY_RELU: lambda op, x: np.where(x > 0, x, op.a * x),
    ActivationFunction.ABS: lambda _, x: np.abs(x),
    ActivationFunction.SQRT: lambda _, x: np.sqrt(x),
    ActivationFunction.SQUARE: lambda _, x: np.square(x),
    ActivationFunction.ELU: lambda op, x: np.where(x > 0, x, op.a * np.expm1(x)),
    ActivationFunction.HARD_SWISH: lambda _, x: x * np.minimum(6, np.maximum(0, x + 3)) / 6,
    ActivationFunction.GELU: lambda op, x: x / 2 * _gelu_factor(op, x),
    ActivationFunction.MISH: lambda _, x: x * np.tanh(np.logaddexp(0, x)),
}
_COMPARISONS: Mapping[ComparisonOperation, Callable[[Numbers, Numbers], Numbers]] = {
    ComparisonOperation.EQUAL: np.equal,
    ComparisonOperation.NOT_EQUAL: np.not_equal,
    ComparisonOperation.GREATER: np.greater,
    ComparisonOperation.GREATER_OR_EQUAL: np.greater_equal,
    ComparisonOperation.LESS: np.less,
    ComparisonOperation.LESS_OR_EQUAL: np.less_equal,
}
_LOGIC: Mapping[LogicalBinaryOperation, Callable[[Numbers, Numbers], Numbers]] = {
    LogicalBinaryOperation.LOGICAL_AND: np.logical_and,
    LogicalBinaryOperation.LOGICAL_OR: np.logical_or,
    LogicalBinaryOperation.LOGICAL_XOR: np.not_equal,
}
_REDUCTIONS: Mapping[ReduceOperation, Any] = {  # Any: functions with keywords
    ReduceOperation.SUM: np.sum,
    ReduceOperation.MEAN: np.mean,
    ReduceOperation.PROD: np.prod,
    ReduceOperation.MAX: np.max,
    ReduceOperation.MIN: np.min,
    ReduceOperation.ANY: np.any,
    ReduceOperation.ALL: np.all,
}
TABLES: Mapping[type[enum.Enum], tuple[str, Mapping[Any, Any]]] = {  # Any: as in each table
    BinaryOperation: ("_BINARY", _BINARY),
    UnaryOperation: ("_UNARY", _UNARY),
    ActivationFunction: ("_ACTIVATIONS", _ACTIVATIONS),
    ComparisonOperation: ("_COMPARISONS", _COMPARISONS),
    LogicalBinaryOperation: ("_LOGIC", _LOGIC),
    ReduceOperation: ("_REDUCTIONS", _REDUCTIONS),
}
"""Name and content of the table of each kind of function."""

_BOUNDS: Mapping[FusedActivation, tuple[float, float]] = {
    FusedActivation.NONE: (-math.inf, math.inf),
    FusedActivation.RELU: (0, math.inf),
    FusedActivation.RELU1: (-1, 1),
    FusedActivation.RELU6: (0, 6),
}


def _gelu_factor(operation: Activation, x: Numbers) -> Numbers:
    """Twice the probability that a standard normal variable is below x, or nearly so."""
    if operation.approximate:
        return np.asarray(1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return np.asarray(_erfc(-x / math.sqrt(2)))


def clamped(operation: Any, values: Numbers) -> tuple[Numbers]:  # Any: with an activation
    """The only output, after the operation's fused activation."""
    return (np.clip(values, *_BOUNDS[operation.activation]),)


def _binary(
    operation: ElementwiseBinary, inputs: Sequence[Numbers], outputs: object
) -> Sequence[Numbers]:
    return clamped(operation, _BINARY[operation.operation](*inputs))


def _softmax(
    operation: Softmax | LogSoftmax, inputs: Sequence[Numbers], outputs: object
) -> Sequence[Numbers]:
    scaled = operation.beta * inputs[0]
    shifted = scaled - scaled.max(axis=operation.axis, keepdims=True)
    logarithms = shifted - np.log(np.exp(shifted).sum(axis=operation.axis, keepdims=True))
    return (logarithms if isinstance(operation, LogSoftmax) else np.exp(logarithms),)


def _unit(
    operation: L2Normalization, inputs: Sequence[Numbers], outputs: object
) -> Sequence[Numbers]:
    squares = np.sum(inputs[0] ** 2, axis=operation.axis, keepdims=True)
    return (inputs[0] / np.sqrt(np.maximum(squares, operation.epsilon)),)


def _reduced(operation: Reduce, inputs: Sequence[Numbers], outputs: object) -> Sequence[Numbers]:
    rank = inputs[0].ndim
    axes = range(rank) if operation.axes is None else {axis % rank for axis in operation.axes}
    function = _REDUCTIONS[operation.operation]
    lowest = {ReduceOperation.MAX: -np.inf, ReduceOperation.MIN: np.inf}
    options = {"initial": lowest[operation.operation]} if operation.operation in lowest else {}
    reduced = function(inputs[0], axis=tuple(axes), keepdims=operation.keep_dims, **options)
    if operation.zero_absorbs:
        has_zero = np.any(inputs[0] == 0, axis=tuple(axes), keepdims=operation.keep_dims)
        reduced = np.where(has_zero, 0, reduced)
    return (reduced,)


def padding_of(
    operation: Any, size: int, extent: int, axis: int
) -> tuple[int, int]:  # Any: windows
    """Elements added before and after an axis: SAME gives as many windows as strides fit."""
    if operation.padding is Padding.VALID:
        return 0, 0
    if operation.padding is not Padding.SAME:
        before, after = operation.padding[axis]
        return before, after
    stride = operation.stride[axis]
    total = max((math.ceil(size / stride) - 1) * stride + extent - size, 0)
    return total // 2, total - total // 2


def _windows(operation: Any, image: Numbers, kernel: Sequence[int], fill: float) -> Numbers:
    """Every window of an NHWC image, shape (n, oh, ow, kh, kw, c); Any: with windows."""
    dilation = getattr(operation, "dilation", (1, 1))
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    around = [
        padding_of(operation, image.shape[1 + axis], extent, axis)
        for axis, extent in enumerate(extents)
    ]
    padded = np.pad(image, ((0, 0), *around, (0, 0)), constant_values=fill)
    views = np.lib.stride_tricks.sliding_window_view(padded, tuple(extents), axis=(1, 2))
    (down, right), (apart_y, apart_x) = operation.stride, dilation
    return np.moveaxis(views[:, ::down, ::right, :, ::apart_y, ::apart_x], 3, 5)


def _nhwc(operation: Any, image: Numbers) -> Numbers:  # Any: an operation with a layout
    """An image with the channels last."""
    is_first = operation.data_layout is DataLayout.NCHW
    return image.transpose(0, 2, 3, 1) if is_first else image


def _as_given(operation: Any, image: Numbers) -> Numbers:  # Any: an operation with a layout
    """An NHWC image in the operation's layout."""
    is_first = operation.data_layout is DataLayout.NCHW
    return image.transpose(0, 3, 1, 2) if is_first else image


def bias_of(inputs: Sequence[Numbers | None]) -> Numbers:
    """The bias, or 0."""
    bias = inputs[2] if len(inputs) > 2 else None
    return np.zeros(1) if bias is None else bias


def _convolved(
    operation: Convolution2d, inputs: Sequence[Numbers], outputs: object
) -> Sequence[Numbers]:
    image, weights = _nhwc(operation, inputs[0]), inputs[1]
    windows = _windows(operation, image, weights.shape[1:3], 0)
    groups = image.shape[3] // weights.shape[3]
    parts = zip(np.split(windows, groups, axis=5), np.split(weights, groups), strict=True)
    sums = [np.einsum("nyxhwi,ohwi->nyxo", part, filters, optimize=True) for part, filters in parts]
    return clamped(operation, _as_given(operation, np.concatenate(sums, axis=3) + bias_of(inputs)))


def _convolved_apart(
    operation: DepthwiseConvolution2d, inputs: Sequence[Numbers], outputs: object
) -> Sequence[Numbers]:
    image, weights = _nhwc(operation, inputs[0]), inputs[1]
    spread = np.repeat(image, weights.shape[3] // image.shape[3], axis=3)
    windows = _windows(operation, spread, weights.shape[1:3], 0)
    sums = np.einsum("nyxhwo,hwo->nyxo", windows, weights[0])
    return clamped(operation, _as_given(operation, sums + bias_of(inputs)))


def _spread(
    operation: TransposeConvolution2d, inputs: Sequence[Numbers], outputs: Sequence[Any]
) -> Sequence[Numbers]:
    image, weights = _nhwc(operation, inputs[0]), inputs[1]
    filters, height, width, _ = weights.shape
    (down, right), shape = operation.stride, outputs[0].known_shape
    is_first = operation.data_layout is DataLayout.NCHW
    out_height, out_width = shape[2:] if is_first else shape[1:3]
    sizes = ((out_height, height), (out_width, width))
    top, left = (padding_of(operation, *size, axis)[0] for axis, size in enumerate(sizes))
    sums = np.zeros((len(image), out_height, out_width, filters))
    for y, x, ky, kx in itertools.product(*map(range, (*image.shape[1:3], height, width))):
        row, column = y * down + ky - top, x * right + kx - left
        if 0 <= row < out_height and 0 <= column < out_width:
            sums[:, row, column] += image[:, y, x] @ weights[:, ky, kx].T
    return clamped(operation, _as_given(operation, sums + bias_of(inputs)))


def summarized(
    algorithm: PoolingAlgorithm, windows: Numbers, inside: Numbers, axes: int | tuple[int, ...]
) -> Numbers:
    """Pool windows along some axes; `inside` is 0 in the padding, otherwise 1."""
    if algorithm is PoolingAlgorithm.MAX:
        return np.asarray(windows.max(axis=axes))
    counts = np.maximum(inside.sum(axis=axes), 1)
    if algorithm is PoolingAlgorithm.AVERAGE:
        return np.asarray(windows.sum(axis=axes) / counts)
    return np.asarray(np.sqrt((windows**2).sum(axis=axes) / counts))


def _pooled(operation: Pooling2d, inputs: Sequence[Numbers], outputs: object) -> Sequence[Numbers]:
    image = _nhwc(operation, inputs[0])
    is_max, axes = operation.algorithm is PoolingAlgorithm.MAX, (3, 4)
    windows, inside = (
        _windows(operation, array, operation.pool_size, fill)
        for array, fill in ((image, -np.inf if is_max else 0), (np.ones_like(image), 0))
    )
    pooled = summarized(operation.algorithm, windows, inside, axes)
    return clamped(operation, _as_given(operation, pooled))


def _product(
    operation: BatchMatMul, inputs: Sequence[Numbers], outputs: object
) -> Sequence[Numbers]:
    x, y = inputs
    return (
        (x.swapaxes(-1, -2) if operation.transpose_x else x)
        @ (y.swapaxes(-1, -2) if operation.transpose_y else y),
    )


def _blocks_to_space(
    operation: DepthToSpace, inputs: Sequence[Numbers], outputs: object
) -> Sequence[Numbers]:
    image, size = _nhwc(operation, inputs[0]), operation.block_size
    n, h, w, c = image.shape
    blocks = image.reshape(n, h, w, size, size, c // size**2).transpose(0, 1, 3, 2, 4, 5)
    return (_as_given(operation, blocks.reshape(n, h * size, w * size, -1)),)


def _space_to_blocks(
    operation: SpaceToDepth, inputs: Sequence[Numbers], outputs: object
) -> Sequence[Numbers]:
    image, size = _nhwc(operation, inputs[0]), operation.block_size
    n, h, w, c = image.shape
    blocks = image.reshape(n, h // size, size, w // size, size, c).transpose(0, 1, 3, 2, 4, 5)
    return (_as_given(operation, blocks.reshape(n, h // size, w // size, -1)),)


def _shuffled(
    operation: ChannelShuffle, inputs: Sequence[Numbers], outputs: object
) -> Sequence[Numbers]:
    last = np.moveaxis(inputs[0], operation.axis, -1)
    dealt = last.reshape(*last.shape[:-1], operation.num_groups, -1).swapaxes(-1, -2)
    return (np.moveaxis(dealt.reshape(last.shape), -1, operation.axis),)


def _split(operation: Splitter, inputs: Sequence[Numbers], outputs: Sequence[Any]) -> list[Numbers]:
    axis = operation.axis or 0
    ends = np.cumsum([info.known_shape[axis] for info in outputs])
    return np.split(inputs[0], ends[:-1], axis=axis)


def _unstacked(operation: Unstack, inputs: Sequence[Numbers], outputs: object) -> list[Numbers]:
    return list(np.moveaxis(inputs[0], operation.axis, 0))


def _reshaped(operation: object, inputs: Sequence[Numbers], outputs: object) -> Sequence[Numbers]:
    return (inputs[0],)  # gets the output's shape


FUNCTIONS: Mapping[type[Operation], Definition] = {
    ElementwiseBinary: _binary,
    ElementwiseUnary: lambda op, inputs, _: (_UNARY[op.operation](*inputs),),
    Activation: lambda op, inputs, _: (_ACTIVATIONS[op.function](op, *inputs),),
    Comparison: lambda op, inputs, _: (_COMPARISONS[op.operation](*inputs),),
    Prelu: lambda _, inputs, __: (np.where(inputs[0] < 0, inputs[0] * inputs[1], inputs[0]),),
    Softmax: _softmax,
    LogSoftmax: _softmax,
    L2Normalization: _unit,
    Reduce: _reduced,
    Convolution2d: _convolved,
    DepthwiseConvolution2d: _convolved_apart,
    TransposeConvolution2d: _spread,
    Pooling2d: _pooled,
    BatchMatMul: _product,
    FullyConnected: lambda op, inputs, _: clamped(
        op, inputs[0].reshape(-1, inputs[1].shape[1]) @ inputs[1].T + bias_of(inputs)
    ),
}
MOVEMENTS: Mapping[type[Operation], Definition] = {
    **dict.fromkeys((Reshape, ExpandDims, Squeeze), _reshaped),
    Transpose: lambda op, inputs, _: (inputs[0].transpose(op.perm),),
    Tile: lambda op, inputs, _: (np.tile(inputs[0], op.multiples),),
    BroadcastTo: lambda _, inputs, outputs: (np.broadcast_to(inputs[0], outputs[0].known_shape),),
    ReverseV2: lambda op, inputs, _: (np.flip(inputs[0], op.axes),),
    ChannelShuffle: _shuffled,
    Concat: lambda op, inputs, _: (np.concatenate(inputs, axis=op.axis),),
    Stack: lambda op, inputs, _: (np.stack(inputs, axis=op.axis),),
    Splitter: _split,
    Unstack: _unstacked,
    Select: lambda _, inputs, __: (np.asarray(np.where(*inputs)),),
    LogicalBinary: lambda op, inputs, _: (_LOGIC[op.operation](*inputs),),
    DepthToSpace: _blocks_to_space,
    SpaceToDepth: _space_to_blocks,
    **INDEXED_MOVEMENTS,
}
"""Definitions for elements of any type."""
