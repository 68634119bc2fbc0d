"""Transforms to frequencies, and weights for them."""

from __future__ import annotations

import numpy as np

from armpy.graph import Value
from armpy.ops.elementwise import BinaryOperation
from armpy.ops.operation import Array
from armpy.ops.spectral import Dft
from armpy.types import DataType
from armpy_onnx.blocks import binary, check_table, gathered, reshaped, transposed
from armpy_onnx.element_types import data_type_of
from armpy_onnx.node import Node, NodeData, Operator, OperatorTable
from armpy_onnx.operators.matrices import matrix_product

_LARGEST_MATRIX_BYTES = 16 << 20
"""Maximum size of matrices of cosines and sines; longer frames are transformed by `Dft`."""

_LARGEST_DFT_BYTES = 2 << 20
"""Maximum size of a matrix that stands for a `Dft`, whose products grow faster than the transform's
steps.
"""


def _dft(node: Node) -> Value:
    rank = node.rank(0)
    if node.version >= 20:
        axis = node.whole_number(2) if node.has(2) else -2
    else:
        axis = node.integer("axis", 1)
    length = node.whole_number(1) if node.has(1) else 0
    if node.has(1) and length < 1:
        raise node.error("the length is not positive", expected="1 or more", actual=length)
    operation = Dft(node.axis(axis, rank), length, node.flag("inverse"), node.flag("onesided"))
    value, size, parts = node.value(0), node.shape(0)[operation.axis], node.shape(0)[-1]
    is_plain = operation.axis < rank - 1 and type(size) is int and size > 0 and parts in (1, 2)
    # The small imaginary parts of an inverse transform would be lost in sums of float32.
    if is_plain and value.info.data_type is DataType.FLOAT32 and not operation.is_inverse:
        length = operation.resolved_length(size) or 0
        # What is cut off counts for nothing, and times 0 it may be NaN.
        if size <= length and 16 * size * length <= _LARGEST_DFT_BYTES:
            return _multiplied(node, operation, value)
    return node.layer(operation, value)


def _multiplied(node: Node, operation: Dft, value: Value) -> Value:
    """A transform as a product with a matrix of the transforms of single elements."""
    axis, rank = operation.axis, len(value.info.known_shape)
    order = [*range(axis), *range(axis + 1, rank - 1), axis, rank - 1]
    turned = transposed(node, value, order)
    *others, size, parts = turned.info.known_shape
    numbers: Array = np.eye(size * parts).reshape(-1, size, parts)
    numbers = numbers[..., 0] + 1j * numbers[..., -1] * (parts == 2)
    length = operation.resolved_length(size)
    spectrum = np.fft.fft(numbers, length, 1)
    spectrum = spectrum[:, : (length or 0) // 2 + 1] if operation.is_onesided else spectrum
    results = np.stack((spectrum.real, spectrum.imag), axis=-1)
    rows = reshaped(node, turned, (*others, size * parts))
    matrix = node.like(value, results.reshape(size * parts, -1))
    product = matrix_product(node, rows, matrix)
    product = reshaped(node, product, (*others, *results.shape[1:]))
    return transposed(node, product, [order.index(at) for at in range(rank)])


def _stft(node: Node) -> Value:
    signal, shape = node.value(0), node.shape(0)
    if len(shape) not in (2, 3) or (len(shape) == 3 and shape[2] not in (1, 2)):
        raise node.error(
            "the signal has the wrong shape", expected="(batch, length, 1 or 2)", actual=shape
        )
    window, step = node.input(2), node.whole_number(1)
    length = node.whole_number(3) if node.has(3) else 0
    if window is not None:
        if node.rank(2) != 1:
            raise node.error("the window is not a vector", actual=node.shape(2))
        length = length or window.info.known_shape[0]
    length = length or shape[1]
    if step < 1:
        raise node.error("the step is not positive", expected="1 or more", actual=step)
    if not 1 <= length <= shape[1]:
        raise node.error(
            "the frame's length is out of range",
            expected=f"1 to {shape[1]}, the signal's length",
            actual=length,
        )
    if window is not None and window.info.known_shape != (length,):
        raise node.error(
            "the window does not have the frame's length",
            expected=f"({length})",
            actual=window.info.known_shape,
        )
    parts = shape[2] if len(shape) == 3 else 1
    count = 1 + (shape[1] - length) // step
    check_table(node, (count, length))
    places = step * np.arange(count)[:, np.newaxis] + np.arange(length)
    plain = reshaped(node, signal, (*shape[:2], parts))
    frames = gathered(node, plain, node.constant(places.astype(np.int64)), axis=1)
    if parts == 1:
        one_sided = node.flag("onesided", True)
        bins = length // 2 + 1 if one_sided else length
        real = reshaped(node, frames, (shape[0], count, length))
        if 8 * bins * length <= _LARGEST_MATRIX_BYTES:
            return _by_matrix(node, real, window, bins)
    if window is not None:
        column = reshaped(node, window, (length, 1))
        frames = binary(node, BinaryOperation.MUL, frames, column)
    return node.layer(Dft(2, is_onesided=node.flag("onesided", True)), frames)


def _by_matrix(node: Node, frames: Value, window: Value | None, bins: int) -> Value:
    """Frequencies of real frames, as a product with cosines and sines."""
    batch, count, length = frames.info.known_shape
    turns = np.outer(np.arange(bins), np.arange(length)) % length
    angles = 2 * np.pi / length * turns
    rows = np.stack((np.cos(angles), -np.sin(angles)), axis=1).reshape(2 * bins, length)
    if window is not None and window.data is not None and window.data.dtype.kind == "f":
        rows, window = rows * window.data, None
    weights = node.like(frames, rows)
    if window is not None:
        weights = binary(node, BinaryOperation.MUL, weights, window)
    product = matrix_product(node, frames, weights, transpose_y=True)
    return reshaped(node, product, (batch, count, bins, 2))


def _mel_weight_matrix(node: Node) -> Value:
    """Triangles over the frequencies, each from the middle of the last to that of the next."""
    count, length, rate = (node.whole_number(index) for index in range(3))
    low, high = (float(node.number(index)) for index in (3, 4))
    bins = length // 2 + 1
    if count < 1 or length < 1 or rate < 1:
        raise node.error(
            "the number of bins, the length or the sample rate is not positive",
            expected="1 or more",
            actual=f"{count}, {length} and {rate}",
        )
    if not 0 <= low < high:
        raise node.error(
            "the edges are negative or in the wrong order",
            expected="the lower one first",
            actual=f"{low:g} and {high:g}",
        )
    check_table(node, (bins, count))
    edges = 2595 * np.log10(1 + np.array([low, high]) / 700)
    mels = edges[0] + np.arange(count + 2) * (edges[1] - edges[0]) / (count + 2)
    points = (length + 1) * 700 * (10 ** (mels / 2595) - 1) // rate
    if points.max() > bins:
        raise node.error(
            "the upper edge is above half of the sample rate",
            expected=f"at most {rate / 2:g}",
            actual=f"{high:g}",
        )
    left, middle, right = points[:-2], points[1:-1], points[2:]
    at = np.arange(bins)[:, np.newaxis]
    rising = np.where(middle > left, (at - left) / (middle - left), 1.0)
    falling = (right - at) / (right - middle)
    rises = (at >= left) & (at <= middle)
    falls = (at >= middle) & (at < right)
    matrix = np.where(falls, falling, np.where(rises, rising, 0.0))
    return node.cast(node.constant(matrix, DataType.FLOAT64), _mel_type(node.data, ()))


def _mel_type(data: NodeData, _: object) -> DataType:
    return data_type_of(int(data.attribute("output_datatype", 1)), data.label)


OPERATORS: OperatorTable = {
    "DFT": Operator(_dft, decides=(1, 2), rounds_once=True),
    "STFT": Operator(_stft, decides=(1, 3), rounds_once=True),
    "MelWeightMatrix": Operator(_mel_weight_matrix, decides=(0, 1, 2, 3, 4), types=(_mel_type,)),
}
