"""Operators on matrices' diagonals, cumulative sums, and elements put apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.frontends.tflite.composed import ComposedOperator, composed, moving
from armpy.frontends.tflite.node import BoundOperator, ConverterTable
from armpy.frontends.tflite.operators.indexing import zeros
from armpy.graph import Value
from armpy.ops.cumulation import Cumulate
from armpy.ops.elementwise import Select
from armpy.ops.movement import BroadcastTo, Pad
from armpy.ops.operation import require
from armpy.ops.reshaping import ExpandDims, Reshape
from armpy.ops.slicing import Slice
from armpy.tensor import TensorInfo


def quantized(value: Value) -> TensorInfo | None:
    """Return the declaration of an output that has a value's scale; nothing without one."""
    return value.info.with_shape(None) if value.info.quantization is not None else None


def _diagonal(node: BoundOperator) -> Sequence[Value]:
    def expand(parts: ComposedOperator) -> Value:
        value, shape = parts.value(0), parts.shape(0)
        require(len(shape) >= 1, "the diagonal is a scalar", expected="rank 1 or more", actual=0)
        mask = parts.constant(np.eye(shape[-1], dtype=np.bool_))
        wide = parts.layer(BroadcastTo((*shape, shape[-1])), parts.layer(ExpandDims(-1), value))
        return parts.layer(Select(), mask, wide, zeros(parts, value, (1,)), output=quantized(value))

    return composed(node, expand)


def _set_diagonal(node: BoundOperator) -> Sequence[Value]:
    def expand(parts: ComposedOperator) -> Value:
        matrix, diagonal = parts.value(0), parts.value(1)
        rank = len(parts.shape(0))
        require(rank >= 2, "the input is not a matrix", expected="rank 2 or more", actual=rank)
        *outer, rows, columns = parts.shape(0)
        short = min(rows, columns)
        require(
            parts.shape(1) == (*outer, short),
            "the diagonal does not fit the matrix",
            expected=str((*outer, short)),
            actual=parts.shape(1),
        )
        # A column serves every place of its row, and a row every place of its column.
        wide = parts.layer(ExpandDims(-1 if rows <= columns else -2), diagonal)
        wide = parts.layer(BroadcastTo((*outer, rows, columns)), wide)
        mask = parts.constant(np.eye(rows, columns, dtype=np.bool_))
        return parts.layer(Select(), mask, wide, matrix, output=quantized(matrix))

    return composed(node, expand)


def _cumsum(node: BoundOperator) -> Sequence[Value]:
    options = node.options("CumsumOptions")
    operation = Cumulate(exclusive=options.flag("Exclusive"), reverse=options.flag("Reverse"))
    return node.layer(operation, *node.inputs)


def dilated(parts: ComposedOperator, value: Value, steps: Sequence[int], pad: Value) -> Value:
    """Elements put apart along each axis, with others between them."""
    for axis, step in enumerate(steps):
        shape = value.info.known_shape
        require(step >= 1, "the dilation is too small", expected="1 or more", actual=step)
        if step == 1 or shape[axis] < 2:
            continue
        before, size, after = shape[:axis], shape[axis], shape[axis + 1 :]
        apart = parts.layer(ExpandDims(axis + 1), value)
        pads = tuple((0, step - 1 if i == axis + 1 else 0) for i in range(len(shape) + 1))
        apart = parts.layer(Pad(pads), apart, pad)
        joined = parts.layer(Reshape((*before, size * step, *after)), apart)
        sizes = (*before, (size - 1) * step + 1, *after)
        value = parts.layer(Slice((0,) * len(shape), sizes), joined)
    return value


def padded(
    parts: ComposedOperator, value: Value, pairs: Sequence[tuple[int, int]], pad: Value
) -> Value:
    """Pad each axis before and after with elements; negative numbers remove elements."""
    added = tuple((max(low, 0), max(high, 0)) for low, high in pairs)
    if any(map(any, added)):
        value = parts.layer(Pad(added), value, pad)
    begin = tuple(max(-low, 0) for low, _ in pairs)
    sizes = tuple(
        size - start - max(-high, 0)
        for size, start, (_, high) in zip(value.info.known_shape, begin, pairs, strict=True)
    )
    require(min(sizes, default=0) >= 0, "more is taken away than is there", actual=sizes)
    return value if sizes == value.info.known_shape else parts.layer(Slice(begin, sizes), value)


def _dilate(node: BoundOperator) -> Sequence[Value]:
    def expand(parts: ComposedOperator) -> Value:
        return dilated(parts, parts.value(0), parts.ints(1), parts.value(2))

    return composed(node, expand, decides=(1,))


CONVERTERS: ConverterTable = {
    "CUMSUM": _cumsum,
    "DILATE": _dilate,
    "MATRIX_DIAG": moving(_diagonal),
    "MATRIX_SET_DIAG": moving(_set_diagonal, 0, 1),
}
