"""Operators that split images into patches, or assemble them, at given places."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from armpy.core.numerics.rounding import Int64Array
from armpy.graph import Value
from armpy.ops.convolution import Convolution2d
from armpy.ops.elementwise import BinaryOperation
from armpy.ops.generation import Fill
from armpy.ops.grid_sampling import GridSample
from armpy.ops.indexing import ScatterElements, ScatterNd, ScatterReduction
from armpy.ops.joining import Concat
from armpy.ops.movement import Pad
from armpy.ops.operation import Array
from armpy.types import DataType
from armpy_onnx.blocks import binary, check_table, reshaped, taken, transposed
from armpy_onnx.images import (
    WindowAttributes,
    channels_first,
    channels_last,
    explicit_pads,
    per_axis,
    window_attributes,
    window_places,
)
from armpy_onnx.node import Node, Operator, OperatorTable

# Patches added up to images


def _col2im(node: Node) -> Value:
    sizes, kernel = node.ints(1), node.ints(2)
    if not sizes or len(kernel) != len(sizes) or min(*sizes, *kernel) < 1:
        raise node.error(
            "image and block do not have as many sizes, all positive",
            expected="sizes of 1 or more",
            actual=f"{sizes} and {kernel}",
        )
    places = _patch_places(node, sizes, kernel)
    batch, rows, count = node.shape(0) if node.rank(0) == 3 else (0, 0, -1)
    taps = math.prod(kernel)
    if count != len(places) or rows % taps:
        raise node.error(
            "the columns are not the image's patches",
            expected=f"rank 3, a multiple of {taps} rows, {len(places)} columns",
            actual=node.shape(0),
        )
    channels, total = rows // taps, math.prod(sizes)
    columns = reshaped(node, node.value(0), (batch, channels, taps * count))
    updates = transposed(node, columns, (2, 0, 1))
    # What lies in the padding is added to one more element, which is left out in the end.
    shape = (total + 1, batch, channels)
    zeros = node.layer(Fill(shape), node.like(updates, 0))
    indices = node.constant(places.T.reshape(-1, 1), DataType.SIGNED64)
    summed = node.layer(ScatterNd(ScatterReduction.ADD), zeros, indices, updates)
    image = transposed(node, taken(node, summed, 0, 0, total), (1, 2, 0))
    return reshaped(node, image, (batch, channels, *sizes))


def _patch_places(node: Node, sizes: Sequence[int], kernel: Sequence[int]) -> Int64Array:
    """Places of each patch's elements in the image (patches, taps); its size outside of it."""
    rank = len(sizes)
    windows = WindowAttributes(
        tuple(kernel),
        per_axis(node, "strides", rank, 1, (1,) * rank),
        per_axis(node, "dilations", rank, 1, (1,) * rank),
        explicit_pads(node, rank),
    )
    if min(windows.counts(sizes)) < 1:
        raise node.error("the block is larger than the image", actual=sizes)
    places, inside = window_places(node, windows, sizes)
    return np.where(inside, places, math.prod(sizes)).reshape(-1, math.prod(kernel))


# The inverse of pooling


def _max_unpool(node: Node) -> Value:
    shape = node.shape(0)
    rank = len(shape) - 2
    if rank < 1 or node.shape(1) != shape:
        raise node.error(
            "the positions do not have the elements' shape",
            expected=str(shape),
            actual=node.shape(1),
        )
    kernel = per_axis(node, "kernel_shape", rank, 1)
    stride = per_axis(node, "strides", rank, 1, (1,) * rank)
    pads = explicit_pads(node, rank)
    sizes = [
        (size - 1) * step + k - sum(pair)
        for size, step, k, pair in zip(shape[2:], stride, kernel, pads, strict=True)
    ]
    full = (*shape[:2], *sizes)
    if min(full) < 1:
        raise node.error("nothing is left of the output", actual=full)
    zeros = node.layer(Fill((math.prod(full),)), node.like(node.value(0), 0))
    count = (math.prod(shape),)
    updates, places = (reshaped(node, node.value(i), count) for i in (0, 1))
    unpooled = reshaped(node, node.layer(ScatterElements(0), zeros, places, updates), full)
    if not node.has(2) or node.ints(2) == full:
        return unpooled
    wanted = node.ints(2)
    more = tuple((0, size - old) for size, old in zip(wanted, full, strict=False))
    if len(wanted) != len(full) or min(min(pair) for pair in more) < 0:
        raise node.error("the output shape is too small", expected=str(full), actual=wanted)
    return node.layer(Pad(more), unpooled)


# Convolution at places that are moved


def _deform_conv(node: Node) -> Value:
    shape, weights = node.shape(0), node.value(1)
    if len(shape) != 4 or len(weights.info.known_shape) != 4:
        raise node.error("only images of two axes are supported", expected="rank 4", actual=shape)
    windows = window_attributes(node, shape[2:], weights.info.known_shape[2:])
    parts, groups = node.integer("offset_group", 1), node.integer("group", 1)
    filters, depth = weights.info.known_shape[:2]
    if parts < 1 or groups < 1 or shape[1] % parts or shape[1] != depth * groups:
        raise node.error(
            "channels and weights do not split into the groups",
            expected=f"{shape[1]} channels",
            actual=f"{groups} groups of {depth}, {parts} groups of offsets",
        )
    sampled, (height, width) = _moved_samples(node, windows, parts)
    taps = math.prod(windows.kernel)
    # (n * parts, taps * height, width, c / parts) to (n, height, width, channels * taps)
    split = reshaped(node, sampled, (shape[0], parts, taps, height, width, shape[1] // parts))
    ordered = transposed(node, split, (0, 3, 4, 1, 5, 2))
    rows = reshaped(node, ordered, (shape[0], height, width, shape[1] * taps))
    flat = reshaped(node, weights, (filters, 1, 1, depth * taps))
    return channels_first(node, node.layer(Convolution2d(), rows, flat, node.input(3)), 2)


def _moved_samples(
    node: Node, windows: WindowAttributes, parts: int
) -> tuple[Value, tuple[int, int]]:
    """Elements of all windows, each at its moved place: (n * parts, taps * h, w, c / parts)."""
    batch, channels, *sizes = node.shape(0)
    taps = math.prod(windows.kernel)
    height, width = (
        (size + sum(pair) - extent) // step + 1
        for size, pair, extent, step in zip(
            sizes, windows.pads, windows.extents, windows.stride, strict=True
        )
    )
    if node.shape(2) != (batch, parts * taps * 2, height, width):
        raise node.error(
            "the offsets have the wrong shape",
            expected=str((batch, parts * taps * 2, height, width)),
            actual=node.shape(2),
        )
    offsets = reshaped(node, node.value(2), (batch * parts, taps, 2, height, width))
    places = node.like(offsets, _places(node, windows, (height, width)))
    grid = binary(node, BinaryOperation.ADD, offsets, places)
    # From elements to -1 ... 1 at the outer edges.
    scale = np.array([2 / size for size in sizes]).reshape(2, 1, 1)
    shift = np.array([1 / size - 1 for size in sizes]).reshape(2, 1, 1)
    grid = binary(node, BinaryOperation.MUL, grid, scale)
    grid = binary(node, BinaryOperation.ADD, grid, shift)
    y, x = (taken(node, grid, 2, at, at + 1) for at in (0, 1))
    pairs = [reshaped(node, value, (batch * parts, taps * height, width, 1)) for value in (x, y)]
    grid = node.layer(Concat(3), *pairs)
    image = reshaped(node, node.value(0), (batch * parts, channels // parts, *sizes))
    sampled = node.layer(GridSample(), channels_last(node, image), grid)
    if node.has(4):
        mask = reshaped(node, node.value(4), (batch * parts, taps * height, width, 1))
        sampled = binary(node, BinaryOperation.MUL, sampled, mask)
    return sampled, (height, width)


def _places(node: Node, windows: WindowAttributes, counts: Sequence[int]) -> Array:
    """Rows and columns of the windows' elements before they are moved: (taps, 2, h, w)."""
    check_table(node, (*windows.kernel, 2, *counts))
    along = [
        (np.arange(count)[None] * step - before) + np.arange(k)[:, None] * gap
        for count, step, (before, _), k, gap in zip(
            counts, windows.stride, windows.pads, windows.kernel, windows.dilation, strict=True
        )
    ]
    rows, columns = along[0][:, None, :, None], along[1][None, :, None, :]
    both = np.broadcast_arrays(rows, columns)
    return np.stack(both, axis=2).reshape(-1, 2, *counts).astype(np.float64)


OPERATORS: OperatorTable = {
    "Col2Im": Operator(_col2im, decides=(1, 2), rounds_once=True),
    "DeformConv": Operator(_deform_conv, rounds_once=True),
    "MaxUnpool": Operator(_max_unpool, decides=(2,)),
}
