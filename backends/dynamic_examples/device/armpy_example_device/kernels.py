"""The device's computations, tile by tile; NumPy stands in for it.

Notes
-----
A kernel is a generator that stops after every tile, where the device looks whether to go on.
It computes with real numbers: quantised elements are decoded before and encoded after.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from armpy.errors import UnimplementedError
from armpy.ops import (
    Activation,
    ActivationFunction,
    BinaryOperation,
    Convolution2d,
    ElementwiseBinary,
    FullyConnected,
    Pooling2d,
    PoolingAlgorithm,
    Reshape,
    Softmax,
)
from armpy.ops.operation import Array, Operation
from armpy.ops.shapes import resolve_padding
from armpy.tensor import TensorInfo

Reals: TypeAlias = Array
"""Floats: of 32 bits as they are stored, or of 64 bits decoded."""
Tensor: TypeAlias = tuple[TensorInfo, Array]
"""A tensor and its stored elements."""
Tiles: TypeAlias = Iterator[None]
Bounds: TypeAlias = tuple[float | None, float | None]
Part: TypeAlias = slice | tuple[int, slice]

TILE_ELEMENTS = 1 << 15

BINARY_FUNCTIONS: dict[BinaryOperation, np.ufunc] = {
    BinaryOperation.ADD: np.add,
    BinaryOperation.SUB: np.subtract,
    BinaryOperation.MUL: np.multiply,
}
ACTIVATIONS: dict[ActivationFunction, Callable[[Activation, Reals], Reals]] = {
    ActivationFunction.RELU: lambda _, x: np.maximum(x, 0),
    ActivationFunction.BOUNDED_RELU: lambda op, x: np.clip(x, op.b, op.a),
    ActivationFunction.SIGMOID: lambda _, x: 1 / (1 + np.exp(-x)),
    ActivationFunction.TANH: lambda op, x: op.a * np.tanh(op.b * x),
}


def kernel(operation: Operation, inputs: Sequence[Tensor | None], output: Tensor) -> Tiles:
    """The tiles of an operation; the output is written completely when they are through."""
    tensors = [tensor for tensor in inputs if tensor is not None]
    match operation:
        case ElementwiseBinary():
            return _binary(operation, tensors[0], tensors[1], output)
        case Activation():
            return _activation(operation, tensors[0], output)
        case Softmax():
            return _softmax(operation, tensors[0], output)
        case Reshape():
            return _reshape(tensors[0], output)
        case FullyConnected():
            return _fully_connected(operation, tensors, output)
        case Convolution2d():
            return _convolution(operation, tensors, output)
        case Pooling2d():
            return _pooling(operation, tensors[0], output)
    raise UnimplementedError("the device has no kernel for it", where=operation.name)


def decoded(info: TensorInfo, elements: Array) -> Reals:
    """The real numbers that stored elements stand for."""
    if info.quantization is None:
        return elements
    scales = np.array(info.quantization.scales)
    axis = info.quantization.axis
    if axis is not None:
        scales = scales.reshape([-1 if i == axis else 1 for i in range(elements.ndim)])
    return np.asarray((elements.astype(np.float64) - info.zero_point) * scales)


def store(output: Tensor, where: Part, values: Reals, bounds: Bounds = (None, None)) -> None:
    """Write real numbers to a part of a tensor, clamped and encoded as it wants them."""
    info, elements = output
    low, high = bounds
    if low is not None or high is not None:
        values = np.clip(values, low, high)
    if info.quantization is not None:
        lowest, highest = info.data_type.integer_range
        steps = np.floor(values / info.scale + 0.5) + info.zero_point
        values = np.clip(steps, lowest, highest)
    elements[where] = values


def _parts(count: int, size_each: int = 1) -> Iterator[slice]:
    """Slices of about a tile's size."""
    step = max(TILE_ELEMENTS // max(size_each, 1), 1)
    return (slice(first, first + step) for first in range(0, count, step))


def _flat(output: Tensor) -> Tensor:
    """The same elements in one row."""
    return output[0], output[1].reshape(-1)


def _binary(operation: ElementwiseBinary, lhs: Tensor, rhs: Tensor, output: Tensor) -> Tiles:
    """Two tensors, broadcast."""
    shape, flat = output[1].shape, _flat(output)
    left, right = (np.broadcast_to(x[1], shape).reshape(-1) for x in (lhs, rhs))
    function = BINARY_FUNCTIONS[operation.operation]
    for part in _parts(left.size):
        values = function(decoded(lhs[0], left[part]), decoded(rhs[0], right[part]))
        store(flat, part, values, operation.activation.bounds)
        yield


def _activation(operation: Activation, source: Tensor, output: Tensor) -> Tiles:
    """One function of each element."""
    elements, flat = source[1].reshape(-1), _flat(output)
    for part in _parts(elements.size):
        values = decoded(source[0], elements[part])
        store(flat, part, ACTIVATIONS[operation.function](operation, values))
        yield


def _softmax(operation: Softmax, source: Tensor, output: Tensor) -> Tiles:
    """Exponentials along the last axis, divided by their sum."""
    depth = source[1].shape[-1]
    if not depth:
        return
    rows, targets = source[1].reshape(-1, depth), (output[0], output[1].reshape(-1, depth))
    for part in _parts(len(rows), depth):
        x = decoded(source[0], rows[part])
        powers = np.exp(operation.beta * (x - x.max(-1, keepdims=True)))
        store(targets, part, powers / powers.sum(-1, keepdims=True))
        yield


def _reshape(source: Tensor, output: Tensor) -> Tiles:
    """The elements as they are stored."""
    elements, target = source[1].reshape(-1), output[1].reshape(-1)
    for part in _parts(elements.size):
        target[part] = elements[part]
        yield


def _weights(tensors: Sequence[Tensor]) -> tuple[Reals, Reals]:
    """Weights as real numbers, shape (units, ...), and the bias, shape (units,) or ()."""
    source, weights = tensors[0][0], tensors[1][0]
    matrix = decoded(*tensors[1])
    if len(tensors) < 3:
        return matrix, np.zeros((), matrix.dtype)
    bias = tensors[2][1]
    if weights.quantization is not None:  # of int32, with the scale that products have
        return matrix, bias * (source.scale * np.array(weights.quantization.scales))
    return matrix, bias


def _fully_connected(operation: FullyConnected, tensors: Sequence[Tensor], output: Tensor) -> Tiles:
    """Vectors times a matrix."""
    matrix, bias = _weights(tensors)
    units, depth = matrix.shape
    rows, targets = tensors[0][1].reshape(-1, depth), (output[0], output[1].reshape(-1, units))
    yield
    for row in range(len(rows)):
        vector = decoded(tensors[0][0], rows[row])
        for part in _parts(units, depth):
            sums = matrix[part] @ vector + (bias[part] if bias.ndim and bias.size > 1 else bias)
            store(targets, (row, part), sums, operation.activation.bounds)
            yield


def _convolution(operation: Convolution2d, tensors: Sequence[Tensor], output: Tensor) -> Tiles:
    """Windows times filters, some rows of windows at a time."""
    filters, bias = _weights(tensors)
    kernel_size = filters.shape[1:3]
    matrix = filters.transpose(0, 3, 1, 2).reshape(len(filters), -1).T
    source = decoded(*tensors[0])
    windows = _windows(operation, source, kernel_size, operation.dilation, 0.0)
    yield
    for image, out in zip(windows, output[1], strict=True):
        for part in _parts(len(image), image[0].size if len(image) else 1):
            rows = image[part].reshape(-1, len(matrix))
            sums = rows @ matrix + bias
            shape = out[part].shape
            store((output[0], out), part, sums.reshape(shape), operation.activation.bounds)
            yield


def _pooling(operation: Pooling2d, source: Tensor, output: Tensor) -> Tiles:
    """The largest element of each window or their mean; padding does not count."""
    values = decoded(*source)
    takes_largest = operation.algorithm is PoolingAlgorithm.MAX
    windows = _windows(
        operation, values, operation.pool_size, (1, 1), -np.inf if takes_largest else 0.0
    )
    ones = np.ones((1, *values.shape[1:3], 1))
    counts = _windows(operation, ones, operation.pool_size, (1, 1), 0.0).sum((-2, -1))[0]
    yield
    for image, out in zip(windows, output[1], strict=True):
        for part in _parts(len(image), image[0].size if len(image) else 1):
            window = image[part]
            result = window.max((-2, -1)) if takes_largest else window.sum((-2, -1)) / counts[part]
            store((output[0], out), part, result, operation.activation.bounds)
            yield


def _windows(
    operation: Convolution2d | Pooling2d,
    images: Reals,
    size: Sequence[int],
    dilation: Sequence[int],
    padding_value: float,
) -> Reals:
    """Every window of images, shape (n, oh, ow, c, kh, kw), as a view."""
    stride = operation.stride
    pairs = [
        resolve_padding(operation.padding, images.shape[1 + i], size[i], stride[i], dilation[i], i)
        for i in range(2)
    ]
    padded = np.pad(images, [(0, 0), *pairs, (0, 0)], constant_values=padding_value)
    extent = [(size[i] - 1) * dilation[i] + 1 for i in range(2)]
    windows = sliding_window_view(padded, extent, axis=(1, 2))
    return windows[:, :: stride[0], :: stride[1], :, :: dilation[0], :: dilation[1]]
