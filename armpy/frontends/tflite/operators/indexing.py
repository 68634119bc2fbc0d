"""Operators that write, add up or look up elements where indices say, and that search."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from armpy.frontends.tflite.composed import ComposedOperator, composed, moving
from armpy.frontends.tflite.node import BoundOperator, Converter, ConverterTable, direct
from armpy.graph import Value
from armpy.ops.cumulation import ReverseSequence
from armpy.ops.elementwise import (
    BinaryOperation,
    Comparison,
    ComparisonOperation,
    ElementwiseBinary,
    ElementwiseUnary,
    Select,
    UnaryOperation,
)
from armpy.ops.indexing import ScatterNd, ScatterReduction
from armpy.ops.joining import Concat
from armpy.ops.movement import BroadcastTo, Transpose
from armpy.ops.operation import require
from armpy.ops.quantizing import Dequantize
from armpy.ops.reduction import Reduce, ReduceOperation
from armpy.ops.reshaping import ExpandDims, Reshape
from armpy.ops.searching import NonZero, Unique
from armpy.ops.slicing import Gather, Slice
from armpy.tensor import TensorInfo
from armpy.types import DataType

_COMBINERS = {0: "SUM", 1: "MEAN", 2: "SQRTN"}


def filled(parts: ComposedOperator, value: Value, shape: Sequence[int]) -> Value:
    """A tensor of one number, of the number's type and quantisation."""
    return parts.layer(BroadcastTo(tuple(shape)), value)


def zeros(parts: ComposedOperator, like: Value, shape: Sequence[int], number: float = 0) -> Value:
    """A tensor of one stored number, of another's type and quantisation."""
    info = like.info
    scalar = parts.constant(
        np.array(number, info.data_type.dtype), info.data_type, info.quantization
    )
    return filled(parts, scalar, shape)


def _scatter_nd(node: BoundOperator) -> Sequence[Value]:
    def expand(parts: ComposedOperator) -> Value:
        indices, updates, shape = parts.value(0), parts.value(1), parts.ints(2)
        require(all(size >= 0 for size in shape), "a size is negative", actual=shape)
        if parts.type(1) is DataType.BOOLEAN:  # of which LiteRT adds up the bytes
            counts = parts.cast(updates, DataType.SIGNED32)
            none = zeros(parts, counts, shape)
            sums = parts.layer(ScatterNd(ScatterReduction.ADD), none, indices, counts)
            return parts.cast(sums, DataType.BOOLEAN)
        is_plain = updates.info.quantization is None
        reduction = ScatterReduction.ADD if is_plain else ScatterReduction.NONE
        return parts.layer(ScatterNd(reduction), zeros(parts, updates, shape), indices, updates)

    return composed(node, expand, decides=(2,))


def _sparse_to_dense(node: BoundOperator) -> Sequence[Value]:
    def expand(parts: ComposedOperator) -> Value:
        indices, values, shape = parts.value(0), parts.value(2), parts.ints(1)
        rank = len(parts.shape(0))
        count = parts.shape(0)[0] if rank else 1
        depth = parts.shape(0)[1] if rank > 1 else 1
        places = parts.layer(Reshape((count, depth)), indices)
        written = parts.layer(BroadcastTo((count,)), values)
        return parts.layer(ScatterNd(), filled(parts, parts.value(3), shape), places, written)

    return composed(node, expand, decides=(1,))


def _update_slice(node: BoundOperator) -> Sequence[Value]:
    """Clamp where the slice begins; axes after the last one that it does not fill stay whole."""

    def expand(parts: ComposedOperator) -> Value:
        target, update, start = parts.value(0), parts.value(1), parts.value(2)
        whole, part = parts.shape(0), parts.shape(1)
        require(
            len(whole) == len(part) and all(a >= b for a, b in zip(whole, part, strict=True)),
            "the slice does not fit into the tensor",
            expected=f"at most {whole}",
            actual=part,
        )
        require(parts.shape(2) == (len(whole),), "there is not one start per axis")
        partial = [
            axis for axis, sizes in enumerate(zip(whole, part, strict=True)) if len(set(sizes)) > 1
        ]
        if not partial or 0 in part:
            return update if whole == part else target
        depth = partial[-1] + 1
        room = parts.constant(
            np.array([a - b for a, b in zip(whole, part, strict=True)][:depth]), DataType.SIGNED64
        )
        begin = parts.layer(Slice((0,), (depth,)), parts.cast(start, DataType.SIGNED64))
        zero = parts.constant(np.zeros(depth), DataType.SIGNED64)
        begin = parts.layer(ElementwiseBinary(BinaryOperation.MAXIMUM), begin, zero)
        begin = parts.layer(ElementwiseBinary(BinaryOperation.MINIMUM), begin, room)
        grid = np.moveaxis(np.indices(part[:depth]), 0, -1)
        places = parts.layer(ElementwiseBinary(), begin, parts.constant(grid, DataType.SIGNED64))
        return parts.layer(ScatterNd(), target, places, update)

    return composed(node, expand)


def _segments(reduction: ScatterReduction) -> Converter:
    """Converter of an UNSORTED_SEGMENT operator; elements of negative segments are left out."""

    def convert(node: BoundOperator) -> Sequence[Value]:
        def expand(parts: ComposedOperator) -> Value:
            return _by_segment(parts, parts.count(2), reduction)

        return composed(node, expand, decides=(2,))

    return convert


def _segment_sum(node: BoundOperator) -> Sequence[Value]:
    def expand(parts: ComposedOperator) -> Value:
        count = max(parts.ints(1), default=-1) + 1
        return _by_segment(parts, count, ScatterReduction.ADD)

    return composed(node, expand, decides=(1,))


def _by_segment(parts: ComposedOperator, count: int, reduction: ScatterReduction) -> Value:
    """Elements combined by segment; those of negative ones go to a row that is cut off."""
    data, ids = parts.value(0), parts.value(1)
    rank, inner = len(parts.shape(1)), parts.shape(0)[len(parts.shape(1)) :]
    kind = parts.type(0)
    require(
        not (kind is DataType.BOOLEAN or kind.is_string),
        "the operator does not take this data type",
        expected="numbers",
        actual=kind.name,
    )
    lowest, highest = (-math.inf, math.inf) if kind.is_float else kind.integer_range
    if kind.is_float:
        limits = np.finfo(kind.dtype.name)
        lowest, highest = float(limits.min), float(limits.max)
    start = {
        ScatterReduction.ADD: 0,
        ScatterReduction.MUL: 1,
        ScatterReduction.MAX: lowest,
        ScatterReduction.MIN: highest,
    }[reduction]
    last = parts.like(ids, count)
    below = parts.layer(Comparison(ComparisonOperation.LESS), ids, parts.like(ids, 0))
    places = parts.layer(ExpandDims(rank), parts.layer(Select(), below, last, ids))
    rows = zeros(parts, data, (count + 1, *inner), start)
    sums = parts.layer(ScatterNd(reduction), rows, places, data)
    return parts.layer(Slice((0,) * (1 + len(inner)), (count, *inner)), sums)


def _where(node: BoundOperator) -> Sequence[Value]:
    node.expect_outputs(1)
    value = node.input(0)
    if value is None:
        raise node.error("input 0 is missing")
    positions = node.network.add(NonZero(), value, name=f"{node.name}:positions")
    return node.layer(Transpose((1, 0)), positions)


def _unique(node: BoundOperator) -> Sequence[Value]:
    def expand(parts: ComposedOperator) -> Sequence[Value]:
        values, _, inverse, _ = parts.layers(Unique(is_sorted=False), (parts.value(0),))
        return values, parts.cast(inverse, parts.outputs[1].data_type)

    node.expect_outputs(2)
    return composed(node, expand)


def _reverse_sequence(node: BoundOperator) -> ReverseSequence:
    options = node.options("ReverseSequenceOptions")
    return ReverseSequence(options.integer("SeqDim"), options.integer("BatchDim"))


def _embedding_lookup(node: BoundOperator) -> Sequence[Value]:
    """Look rows up; those of quantised tables become floats if the output is."""

    def expand(parts: ComposedOperator) -> Value:
        indices, table, output = parts.value(0), parts.value(1), parts.outputs[0]
        is_hybrid = output.data_type.is_float and not table.info.data_type.is_float
        quantization = table.info.quantization
        if is_hybrid and quantization is not None and quantization.axis is not None:
            table = parts.layer(Dequantize(), table, output=TensorInfo(None, output.data_type))
            is_hybrid = False
        rows = parts.layer(Gather(0), table, indices)
        return parts.layer(Dequantize(), rows, output=output) if is_hybrid else rows

    return composed(node, expand)


def _embedding_sparse(node: BoundOperator) -> Sequence[Value]:
    combiner = node.options("EmbeddingLookupSparseOptions").choice(
        "Combiner", _COMBINERS, "CombinerType"
    )

    def expand(parts: ComposedOperator) -> Value:
        ids, places, weights, table = (parts.value(i) for i in (0, 1, 3, 4))
        shape = parts.ints(2)
        count, depth = parts.shape(1)
        outer, inner = shape[: depth - 1], parts.shape(4)[1:]
        rows = parts.layer(Slice((0, 0), (count, depth - 1)), places)
        column = parts.layer(Reshape((count, *(1,) * len(inner))), weights)
        rows_read = parts.layer(Gather(0), table, ids)
        rows_read = parts.layer(ElementwiseBinary(BinaryOperation.MUL), rows_read, column)
        add = ScatterNd(ScatterReduction.ADD)
        sums = parts.layer(add, zeros(parts, rows_read, (*outer, *inner)), rows, rows_read)
        if combiner == "SUM":
            return sums
        if combiner == "SQRTN":
            weights = parts.layer(ElementwiseUnary(UnaryOperation.SQUARE), weights)
        divisor = parts.layer(add, zeros(parts, weights, outer), rows, weights)
        if combiner == "SQRTN":
            divisor = parts.layer(ElementwiseUnary(UnaryOperation.SQRT), divisor)
        # Nothing is divided by a sum of weights that is 0.
        is_zero = parts.layer(Comparison(), divisor, parts.like(divisor, 0))
        divisor = parts.layer(Select(), is_zero, parts.like(divisor, 1), divisor)
        divisor = parts.layer(Reshape((*outer, *(1,) * len(inner))), divisor)
        return parts.layer(ElementwiseBinary(BinaryOperation.DIV), sums, divisor)

    return composed(node, expand, decides=(2,))


def _broadcast_args(node: BoundOperator) -> Sequence[Value]:
    def expand(parts: ComposedOperator) -> Value:
        shapes = [parts.value(0), parts.value(1)]
        rank = max(parts.shape(0)[0], parts.shape(1)[0])
        long = []
        for value in shapes:
            missing = rank - value.info.known_shape[0]
            ones = parts.like(value, [1] * missing)
            long.append(parts.layer(Concat(0), ones, value) if missing else value)
        is_one = parts.layer(Comparison(), long[0], parts.like(long[0], 1))
        return parts.layer(Select(), is_one, long[1], long[0])

    return composed(node, expand)


def _bucketize(node: BoundOperator) -> Sequence[Value]:
    """Count the boundaries that are not above an element."""
    boundaries = np.array(node.options("BucketizeOptions").numbers("Boundaries"), np.float32)

    def expand(parts: ComposedOperator) -> Value:
        value = parts.value(0)
        kind = DataType.FLOAT64 if parts.type(0) is DataType.FLOAT64 else DataType.FLOAT32
        column = parts.layer(ExpandDims(-1), parts.cast(value, kind))
        above = parts.layer(
            Comparison(ComparisonOperation.GREATER_OR_EQUAL),
            column,
            parts.constant(boundaries, kind),
        )
        count = Reduce(ReduceOperation.SUM, (-1,))
        return parts.layer(count, parts.cast(above, DataType.SIGNED32))

    return composed(node, expand)


def _densify(node: BoundOperator) -> Sequence[Value]:
    """Give a sparse constant on: it has all of its elements already."""
    node.expect_outputs(1)
    value = node.input(0)
    if value is None or value.data is None:
        raise node.error("only constants can be sparse")
    return (value,)


CONVERTERS: ConverterTable = {
    "BROADCAST_ARGS": _broadcast_args,
    "BUCKETIZE": _bucketize,
    "DENSIFY": _densify,
    "DYNAMIC_UPDATE_SLICE": moving(_update_slice, 0, 1),
    "EMBEDDING_LOOKUP": _embedding_lookup,
    "EMBEDDING_LOOKUP_SPARSE": _embedding_sparse,
    "REVERSE_SEQUENCE": moving(direct(_reverse_sequence)),
    "SCATTER_ND": _scatter_nd,
    "SEGMENT_SUM": _segment_sum,
    "SPARSE_TO_DENSE": _sparse_to_dense,
    "UNIQUE": _unique,
    "UNSORTED_SEGMENT_MAX": _segments(ScatterReduction.MAX),
    "UNSORTED_SEGMENT_MIN": _segments(ScatterReduction.MIN),
    "UNSORTED_SEGMENT_PROD": _segments(ScatterReduction.MUL),
    "UNSORTED_SEGMENT_SUM": _segments(ScatterReduction.ADD),
    "WHERE": _where,
    "ZEROS_LIKE": lambda node: composed(
        node, lambda parts: zeros(parts, parts.value(0), parts.shape(0))
    ),
}
