"""Operators of ONNX Runtime for single models and exporters.

References
----------
ONNX Runtime, contrib_ops (schemas of the domain ``com.microsoft``).
"""

from __future__ import annotations

import math

import numpy as np
from onnx.helper import make_attribute

from armpy.graph import Value
from armpy.ops.cumulation import Cumulate
from armpy.ops.elementwise import (
    BinaryOperation,
    ComparisonOperation,
    UnaryOperation,
)
from armpy.ops.grid_sampling import GridPadding, GridSample, SampleMode
from armpy.ops.indexing import ScatterElements, ScatterReduction
from armpy.ops.linear_algebra import Determinant
from armpy.ops.movement import BroadcastTo
from armpy.ops.reduction import ReduceOperation
from armpy.types import DataType
from armpy_onnx.blocks import (
    binary,
    both,
    check_table,
    compared,
    gathered,
    joined,
    reduced,
    reshaped,
    selected,
    taken,
    transposed,
    unary,
)
from armpy_onnx.images import (
    channels_first,
    channels_last,
    spatial_sizes,
    window_attributes,
    window_places,
)
from armpy_onnx.node import Node, NodeData, Operator, OperatorTable
from armpy_onnx.operators import operator_of
from armpy_onnx.operators.matrices import matrix_product


def _conv_transpose(node: Node) -> Value:
    """(image, weights, pads, bias): a ConvTranspose whose padding is an input."""
    operator = operator_of("ConvTranspose")
    assert operator is not None
    attributes = {**node.data.attributes, "pads": make_attribute("pads", node.ints(2))}
    inner = NodeData("ConvTranspose", node.data.name, 11, attributes, 1, (True,))
    (value,) = [operator.convert(node.of(inner, [node.value(0), node.value(1), node.input(3)]))]
    assert isinstance(value, Value)
    return value


def _crop_and_resize(node: Node) -> Value:
    """(images, boxes as y1, x1, y2, x2 from 0 to 1, image of each box, two sizes)."""
    sizes, out_sizes, boxes = node.shape(0)[2:], node.ints(3), node.value(1)
    if len(sizes) != 2 or len(out_sizes) != 2 or min(out_sizes) < 1 or node.rank(1) != 2:
        raise node.error(
            "images, boxes or sizes have the wrong form",
            expected="images (n, c, h, w), boxes (r, 4) and two sizes above 0",
            actual=f"{node.shape(0)}, {node.shape(1)} and {out_sizes}",
        )
    check_table(node, out_sizes)
    is_nearest = node.choice("mode", "bilinear", {"bilinear": False, "nearest": True})
    lines, insides = [], []
    for axis, (size, count) in enumerate(zip(sizes, out_sizes, strict=True)):
        first, last = (taken(node, boxes, 1, at, at + 1) for at in (axis, axis + 2))
        shares = np.arange(count) / (count - 1) if count > 1 else np.array([0.5])
        width = binary(node, BinaryOperation.SUB, last, first)
        moved = binary(node, BinaryOperation.MUL, width, node.like(boxes, shares * (size - 1)))
        start = binary(node, BinaryOperation.MUL, first, size - 1)
        line = binary(node, BinaryOperation.ADD, start, moved)
        inside = both(
            node,
            compared(node, ComparisonOperation.GREATER_OR_EQUAL, line, 0),
            compared(node, ComparisonOperation.LESS_OR_EQUAL, line, size - 1),
        )
        if is_nearest:
            line = unary(node, UnaryOperation.FLOOR, binary(node, BinaryOperation.ADD, line, 0.5))
        line = binary(node, BinaryOperation.MUL, line, 2 / max(size - 1, 1))
        shape = (-1, *(count if at == axis else 1 for at in range(2)))
        boxes_count = node.shape(1)[0]
        lines.append(
            reshaped(node, binary(node, BinaryOperation.SUB, line, 1), (boxes_count, *shape[1:], 1))
        )
        insides.append(reshaped(node, inside, (boxes_count, 1, *shape[1:])))
    wide = BroadcastTo((node.shape(1)[0], *out_sizes, 1))
    grid = joined(node, [node.layer(wide, line) for line in lines[::-1]], 3)
    images = gathered(node, channels_last(node, node.value(0)), node.value(2))
    mode = SampleMode.NEAREST if is_nearest else SampleMode.LINEAR
    sampled = node.layer(GridSample(mode, GridPadding.BORDER, align_corners=True), images, grid)
    crops = channels_first(node, sampled, 2)
    other = node.real("extrapolation_value", 0.0)
    return selected(node, both(node, *insides), crops, other)


def _expand_dims(node: Node) -> Value:
    shape = list(node.shape(0))
    shape.insert(node.axis(node.whole_number(1), len(shape) + 1), 1)
    return reshaped(node, node.value(0), shape)


def _inverse(node: Node) -> Value:
    """Inverses as determinants of what is left without a row and a column, in float64."""
    *outer, rows, columns = (1, 1, *node.shape(0))[-max(node.rank(0), 2) :]
    if node.rank(0) < 2 or rows != columns or not rows:
        raise node.error(
            "the matrices are not square", expected="(..., m, m)", actual=node.shape(0)
        )
    check_table(node, (*outer, rows**2, rows**2))
    value = node.cast(node.value(0), DataType.FLOAT64)
    others = np.array([[n for n in range(rows) if n != left] for left in range(rows)], np.int64)
    # Of row j and column i, as the inverse is turned.
    places = others[None, :, :, None] * rows + others[:, None, None, :]
    flat = reshaped(node, value, (*outer, rows * rows))
    signs = (-1.0) ** np.add.outer(np.arange(rows), np.arange(rows))
    if rows == 1:
        minors = node.like(value, np.ones((1, 1)))
    else:
        parts = gathered(node, flat, node.constant(places.reshape(-1)), len(outer))
        shape = (*outer, rows, rows, rows - 1, rows - 1)
        minors = node.layer(Determinant(), reshaped(node, parts, shape))
    whole = reshaped(node, node.layer(Determinant(), value), (*outer, 1, 1))
    signed = binary(node, BinaryOperation.MUL, minors, node.like(value, signs))
    return node.cast(binary(node, BinaryOperation.DIV, signed, whole), node.type(0))


def _product_of_words(node: Node) -> Value:
    left, right = (node.cast(node.value(index), DataType.SIGNED32) for index in range(2))
    return matrix_product(node, left, right)


def _bits_and_bytes(node: Node) -> Value:
    """Weights of 4 bits in the blocks of the library bitsandbytes: numbers of a table, scaled."""
    depth, units = node.integer("K"), node.integer("N")
    block, table = node.integer("block_size"), node.integer("quant_type")
    if table not in _NUMBERS or not node.flag("transB", True) or min(depth, units, block) < 1:
        raise node.error(
            "an attribute is not supported",
            expected="quant_type 0 or 1, transB 1, and K, N and block_size above 0",
            actual=f"{table}, {node.flag('transB', True)}, {depth}, {units} and {block}",
        )
    packed, scales = node.array(1).reshape(-1), node.numbers(2).astype(np.float32).reshape(-1)
    count = depth * units
    if packed.dtype != np.uint8 or packed.size != -(-count // 2) or scales.size * block < count:
        raise node.error(
            "the weights or their scales have the wrong type or size",
            expected=f"{-(-count // 2)} bytes and {-(-count // block)} scales",
            actual=f"{packed.size} of {packed.dtype} and {scales.size}",
        )
    numbers = np.stack([packed >> 4, packed & 15], axis=-1).reshape(-1)[:count]
    real = np.array(_NUMBERS[table], np.float32)[numbers] * scales[np.arange(count) // block]
    weights = node.constant(np.ascontiguousarray(real.reshape(units, depth).T))
    product = matrix_product(node, node.cast(node.value(0), DataType.FLOAT32), weights)
    return node.cast(product, node.type(0))


_FP4 = (0, 1 / 192, 2 / 3, 1, 1 / 3, 1 / 2, 1 / 6, 1 / 4)
_NF4 = (
    *(-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453),
    *(-0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0),
    *(0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224),
    *(0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0),
)
_NUMBERS = {0: (*_FP4, *(-number for number in _FP4)), 1: _NF4}
"""Numbers of 4 bits by ``quant_type``.

Reference: Dettmers et al., "QLoRA", 2023.
"""


def _max_pool_with_mask(node: Node) -> Value:
    """(image, mask): a window's rows count up to the first element whose mask is 0.

    Notes
    -----
    As in ONNX Runtime, the mask of an image's or volume's first element is not looked at. Of masks
    of several channels, it reads others at wrong places; they are refused.
    """
    sizes, outer = spatial_sizes(node), node.shape(0)[:2]
    windows, masks = window_attributes(node, sizes), node.shape(1)
    counts, rank = windows.counts(sizes), len(sizes)
    if masks != (1, 1, *sizes):
        raise node.error("the mask has the wrong shape", expected=f"{(1, 1, *sizes)}", actual=masks)
    if min(counts) < 1 or max(windows.dilation) > 1:
        raise node.error("nothing is left of the image, or windows have gaps", actual=counts)
    places, inside = window_places(node, windows, sizes)

    def in_windows(value: Value, leading: tuple[int, ...]) -> Value:
        flat = reshaped(node, value, (*leading, math.prod(sizes)))
        parts = gathered(node, flat, node.constant(places.reshape(-1)), 2)
        return reshaped(node, parts, (*leading, *places.shape))

    is_out = compared(node, ComparisonOperation.EQUAL, node.value(1), 0)
    may_end = inside & (places > 0) if rank > 1 else inside
    ends = both(node, in_windows(is_out, (1, 1)), node.constant(may_end))
    ended = node.layer(Cumulate(axis=2 * rank + 1), node.cast(ends, DataType.SIGNED32))
    counts_in = both(
        node, compared(node, ComparisonOperation.EQUAL, ended, 0), node.constant(inside)
    )
    lowest = np.finfo(np.float32).min
    chosen = selected(node, counts_in, in_windows(node.value(0), outer), lowest)
    axes = range(2 + rank, 2 + 2 * rank)
    return reduced(node, ReduceOperation.MAX, chosen, tuple(axes), keep_dims=False)


def _n_gram_repeat_block(node: Node) -> Value:
    """(tokens, scores): -inf for each token that would repeat a sequence of so many tokens."""
    tokens, scores, length = node.value(0), node.value(1), node.integer("ngram_size")
    count = node.shape(0)[1] - length + 1
    if length < 1 or count < 1:
        return scores
    repeats = node.constant(np.ones((1, 1), np.bool_))
    for place in range(length - 1):
        latest = taken(node, tokens, 1, count + place, count + place + 1)
        each = taken(node, tokens, 1, place, place + count)
        repeats = both(node, repeats, compared(node, ComparisonOperation.EQUAL, each, latest))
    limits = selected(node, repeats, node.like(scores, -np.inf), np.inf)
    following = taken(node, tokens, 1, length - 1, length - 1 + count)
    limits = node.layer(BroadcastTo(following.info.known_shape), limits)
    return node.layer(ScatterElements(1, ScatterReduction.MIN), scores, following, limits)


def _unfold_tensor(node: Node) -> Value:
    """Windows along an axis, the elements of each along a new last axis."""
    shape, size, step = node.shape(0), node.integer("size"), node.integer("step", 1)
    axis = node.axis(node.integer("dim", -1), len(shape))
    if not 1 <= size <= shape[axis] or step < 1:
        raise node.error(
            "size or step is out of range", expected=f"1 to {shape[axis]}", actual=(size, step)
        )
    starts = np.arange(0, shape[axis] - size + 1, step)
    check_table(node, (len(starts), size))
    places = node.constant(np.add.outer(starts, np.arange(size)))
    parts = gathered(node, node.value(0), places, axis)
    order = [n for n in range(len(shape) + 1) if n != axis + 1]
    return transposed(node, parts, (*order, axis + 1))


OPERATORS: OperatorTable = {
    "com.microsoft.ConvTransposeWithDynamicPads": Operator(_conv_transpose, decides=(2,)),
    "com.microsoft.CropAndResize": Operator(_crop_and_resize, decides=(3,), rounds_once=True),
    "com.microsoft.ExpandDims": Operator(_expand_dims, decides=(1,)),
    "com.microsoft.Inverse": Operator(_inverse),
    "com.microsoft.MatMulBnb4": Operator(_bits_and_bytes, decides=(1, 2)),
    "com.microsoft.MatMulInteger16": Operator(_product_of_words, types=(DataType.SIGNED32,)),
    "com.microsoft.MaxpoolWithMask": Operator(_max_pool_with_mask),
    "com.microsoft.NGramRepeatBlock": Operator(_n_gram_repeat_block, types=(1,)),
    "com.microsoft.UnfoldTensor": Operator(_unfold_tensor),
}
