"""Operators that summarise windows of images."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from armpy.core.numerics.rounding import Int64Array
from armpy.graph import Value
from armpy.ops.dense import BatchMatMul
from armpy.ops.elementwise import BinaryOperation, UnaryOperation
from armpy.ops.movement import Pad
from armpy.ops.pooling import MaxPoolWithIndices, Pooling2d, Pooling3d, PoolingAlgorithm
from armpy.ops.reduction import ReduceOperation
from armpy.tensor import Quantization
from armpy.types import DataType
from armpy_onnx.blocks import binary, check_table, counted, reduced, reshaped, scaled, unary
from armpy_onnx.images import (
    Pads,
    WindowAttributes,
    channels_first,
    channels_last,
    lifted,
    lifted_pads,
    spatial_sizes,
    spec_of_pads,
    window_attributes,
)
from armpy_onnx.node import Node, Operator, OperatorTable
from armpy_onnx.quantized import BYTES, as_integers, as_quantized


def _max_pool(node: Node) -> Value | Sequence[Value]:
    sizes = spatial_sizes(node)
    windows = _windows(node, sizes)
    if node.data.num_outputs > 1:
        return _with_indices(node, windows, sizes)
    value = node.value(0)
    # The order of bytes is that of the values they stand for, for which there are kernels.
    is_named = value.info.data_type in BYTES and len(sizes) < 3 and max(windows.dilation) == 1
    if is_named:
        value = as_quantized(node, value, Quantization.per_tensor(1.0))
    image = channels_last(node, value)
    largest = channels_first(node, _pooled(node, image, PoolingAlgorithm.MAX, windows), len(sizes))
    return as_integers(node, largest) if is_named else largest


def _with_indices(
    node: Node, windows: WindowAttributes, sizes: Sequence[int]
) -> tuple[Value, Value]:
    """The largest elements, and where they are in the whole tensor."""
    operation = MaxPoolWithIndices(
        lifted(windows.kernel, 1),
        lifted(windows.stride, 1),
        lifted(windows.dilation, 1),
        lifted_pads(windows.pads),
    )
    values = node.layers(operation, [channels_last(node, node.value(0))])
    largest, places = (channels_first(node, value, len(sizes)) for value in values)
    if node.flag("storage_order"):
        places = _columns_first(node, places, sizes)
    batch, channels = node.shape(0)[:2]
    images = counted(node, batch * channels)
    firsts = reshaped(node, images, (batch, channels, *(1,) * len(sizes)))
    firsts = scaled(node, firsts, math.prod(sizes))
    return largest, binary(node, BinaryOperation.ADD, places, firsts)


def _columns_first(node: Node, places: Value, sizes: Sequence[int]) -> Value:
    """Positions that are counted along the last axis first, counted along the first one first."""
    total, rest, pitch = None, places, math.prod(sizes)
    for size in reversed(sizes):
        pitch //= size
        along = binary(node, BinaryOperation.FLOOR_MOD, rest, size)
        rest = binary(node, BinaryOperation.FLOOR_DIV, rest, size)
        part = scaled(node, along, pitch)
        total = part if total is None else binary(node, BinaryOperation.ADD, total, part)
    assert total is not None  # an image has axes
    return total


def _average_pool(node: Node) -> Value:
    sizes = spatial_sizes(node)
    image = channels_last(node, node.value(0))
    counts_padding = node.flag("count_include_pad")
    windows = _windows(node, sizes)
    pads = window_attributes(node, sizes).pads
    if counts_padding and _is_mostly_padding(windows, sizes):
        sums = _sums(node, image, windows)
        shares = np.ones(())
        for axis, (before, after) in enumerate(pads):
            ends = -before, sizes[axis] + after
            shares = shares[..., None] / _meetings(windows, sizes, axis, ends)
        means = binary(node, BinaryOperation.MUL, sums, shares[..., None])
        return channels_first(node, means, len(sizes))
    if counts_padding:
        image = padded(node, image, pads)
        rest = ((a[0] - b[0], a[1] - b[1]) for a, b in zip(windows.pads, pads, strict=True))
        windows = windows.with_pads(tuple(rest))
    result = _pooled(node, image, PoolingAlgorithm.AVERAGE, windows)
    return channels_first(node, result, len(sizes))


def _lp_pool(node: Node) -> Value:
    sizes = spatial_sizes(node)
    windows = _windows(node, sizes)
    order = _order(node)
    image = _powers(node, channels_last(node, node.value(0)), order)
    sums = _sums(node, image, windows)
    return channels_first(node, _root(node, sums, order), len(sizes))


def _sums(node: Node, image: Value, windows: WindowAttributes) -> Value:
    """Sums of the elements in windows of an image that has its channels last."""
    around = WindowAttributes(
        lifted(windows.kernel, 1),
        lifted(windows.stride, 1),
        lifted(windows.dilation, 1),
        lifted_pads(windows.pads),
    )
    if _is_mostly_padding(around, image.info.known_shape[1:-1]):
        for axis in range(len(around.kernel)):
            image = _summed_along(node, image, around, axis)
        return image
    image = padded(node, image, windows.pads)
    unpadded = windows.with_pads(((0, 0),) * len(windows.pads))
    means = _pooled(node, image, PoolingAlgorithm.AVERAGE, unpadded)
    return scaled(node, means, math.prod(windows.kernel))


def _is_mostly_padding(windows: WindowAttributes, sizes: Sequence[int]) -> bool:
    """Return whether there is more padding than image, too much to make a padded image."""
    return any(sum(pair) > size for pair, size in zip(windows.pads, sizes, strict=True))


def _summed_along(node: Node, image: Value, windows: WindowAttributes, axis: int) -> Value:
    """Sums of windows along one axis: a product with a matrix of zeros and ones."""
    shape = image.info.known_shape
    size = shape[axis + 1]
    sizes = shape[1:-1]
    count = windows.counts(sizes)[axis]
    check_table(node, (count, size))
    offsets = np.arange(size) - _starts(windows, sizes, axis)[:, None]
    gap, extent = windows.dilation[axis], windows.extents[axis]
    matrix = (offsets >= 0) & (offsets < extent) & (offsets % gap == 0)
    rows = reshaped(node, image, (math.prod(shape[: axis + 1]), size, math.prod(shape[axis + 2 :])))
    product = node.layer(BatchMatMul(), node.like(image, matrix[None]), rows)
    return reshaped(node, product, (*shape[: axis + 1], count, *shape[axis + 2 :]))


def _starts(windows: WindowAttributes, sizes: Sequence[int], axis: int) -> Int64Array:
    """Return where windows along an axis begin, counted from the image's first element."""
    numbers = np.arange(windows.counts(sizes)[axis], dtype=np.int64)
    return numbers * windows.stride[axis] - windows.pads[axis][0]


def _meetings(
    windows: WindowAttributes, sizes: Sequence[int], axis: int, ends: tuple[int, int]
) -> Int64Array:
    """Return how many elements of each window along an axis lie in a range."""
    starts, gap = _starts(windows, sizes, axis), windows.dilation[axis]
    first = np.maximum(-((starts - ends[0]) // gap), 0)
    last = np.minimum((ends[1] - 1 - starts) // gap, windows.kernel[axis] - 1)
    counts: Int64Array = np.maximum(last - first + 1, 1)
    return counts


def _windows(node: Node, sizes: Sequence[int]) -> WindowAttributes:
    """Windows with what ``ceil_mode`` adds."""
    windows = window_attributes(node, sizes)
    return windows.rounded_up(sizes) if node.flag("ceil_mode") else windows


def padded(node: Node, image: Value, pads: Pads) -> Value:
    """An image that has its channels last with zeros around it."""
    if not any(map(any, pads)):
        return image
    return node.layer(Pad(((0, 0), *lifted_pads(pads), (0, 0))), image)


def _pooled(
    node: Node, image: Value, algorithm: PoolingAlgorithm, windows: WindowAttributes
) -> Value:
    """Pool an image that has its channels last."""
    data_type = image.info.data_type
    if data_type in BYTES:  # whose numbers float32 holds
        wide = _pooled(node, node.cast(image, DataType.FLOAT32), algorithm, windows)
        return node.cast(wide, data_type)
    kernel, stride, pads = (
        lifted(windows.kernel, 1),
        lifted(windows.stride, 1),
        lifted_pads(windows.pads),
    )
    # The numbers of axes are those of the windows.
    if max(windows.dilation) > 1:
        shape = image.info.known_shape
        plane = len(kernel) == 2
        volume = reshaped(node, image, (shape[0], 1, *shape[1:])) if plane else image
        gaps = lifted(windows.dilation, 1)
        size, step, gap = (((1,) * plane + numbers) for numbers in (kernel, stride, gaps))
        around = spec_of_pads(((0, 0), *pads) if plane else pads)
        pooled = node.layer(Pooling3d(algorithm, size, step, gap, around), volume)  # type: ignore[arg-type]
        pooled_shape = pooled.info.known_shape
        return reshaped(node, pooled, (pooled_shape[0], *pooled_shape[2:])) if plane else pooled
    if len(kernel) == 2:
        padding = spec_of_pads(windows.pads)
        return node.layer(Pooling2d(algorithm, kernel, stride, padding), image)  # type: ignore[arg-type]
    # The largest of the largest, and the mean of means over equally many elements each.
    n, d, h, w, c = image.info.known_shape
    slices = reshaped(node, image, (n * d, h, w, c))
    around = spec_of_pads(pads[1:])
    slices = node.layer(Pooling2d(algorithm, kernel[1:], stride[1:], around), slices)  # type: ignore[arg-type]
    _, h, w, _ = slices.info.known_shape
    columns = reshaped(node, slices, (n, d, h * w, c))
    columns = node.layer(
        Pooling2d(algorithm, (kernel[0], 1), (stride[0], 1), spec_of_pads((pads[0], (0, 0)))),
        columns,
    )
    return reshaped(node, columns, (n, columns.info.known_shape[1], h, w, c))


# Over the whole image


def _global(operation: ReduceOperation) -> Operator:
    """Operator that makes one element of each channel."""

    def convert(node: Node) -> Value:
        return _reduced(node, node.value(0), operation)

    return Operator(convert)


def _global_lp_pool(node: Node) -> Value:
    order = _order(node)
    sums = _reduced(node, _powers(node, node.value(0), order), ReduceOperation.SUM)
    return _root(node, sums, order)


def _reduced(node: Node, image: Value, operation: ReduceOperation) -> Value:
    """Each channel of an image as one element, all axes kept."""
    spatial_sizes(node)
    axes = tuple(range(2, node.rank(0)))
    return reduced(node, operation, image, axes, keep_dims=True)


# Norms


def _order(node: Node) -> float:
    """The attribute ``p``, a float in the first operator set."""
    order = node.real("p", 2)
    if not order > 0:
        raise node.error("the attribute 'p' is not positive", expected="above 0", actual=order)
    return order


def _powers(node: Node, value: Value, order: float) -> Value:
    """Absolute elements to the power of the norm's order."""
    if order == 2:
        return unary(node, UnaryOperation.SQUARE, value)
    absolute = unary(node, UnaryOperation.ABS, value)
    return absolute if order == 1 else binary(node, BinaryOperation.POWER, absolute, order)


def _root(node: Node, value: Value, order: float) -> Value:
    """The inverse of `_powers`."""
    if order == 2:
        return unary(node, UnaryOperation.SQRT, value)
    return value if order == 1 else binary(node, BinaryOperation.POWER, value, 1 / order)


OPERATORS: OperatorTable = {
    "AveragePool": Operator(_average_pool, rounds_once=True),
    "GlobalAveragePool": _global(ReduceOperation.MEAN),
    "GlobalLpPool": Operator(_global_lp_pool, rounds_once=True),
    "GlobalMaxPool": _global(ReduceOperation.MAX),
    "LpPool": Operator(_lp_pool, rounds_once=True),
    "MaxPool": Operator(_max_pool, types=(0, DataType.SIGNED64)),
}
