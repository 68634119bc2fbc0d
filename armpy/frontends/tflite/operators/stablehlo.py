"""StableHLO's operators that move elements by index vectors, pad, or stand for a subgraph."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from operator import mul

import numpy as np

from armpy.core.dataclass import dataclass
from armpy.frontends.tflite.composed import ComposedOperator, composed
from armpy.frontends.tflite.node import BoundOperator, ConverterTable
from armpy.frontends.tflite.operators.matrices import dilated, padded
from armpy.graph import Value
from armpy.ops.elementwise import (
    BinaryOperation,
    Comparison,
    ComparisonOperation,
    ElementwiseBinary,
    LogicalBinary,
    LogicalBinaryOperation,
    Select,
)
from armpy.ops.indexing import ScatterNd, ScatterReduction
from armpy.ops.joining import Concat
from armpy.ops.movement import Transpose
from armpy.ops.operation import require
from armpy.ops.reduction import Reduce, ReduceOperation
from armpy.ops.reshaping import ExpandDims, Reshape
from armpy.ops.slicing import Gather, Slice
from armpy.types import DataType

_UNION = "BuiltinOptions2"

_UPDATES = {
    (): ScatterReduction.NONE,
    ("STABLEHLO_ADD",): ScatterReduction.ADD,
    ("STABLEHLO_MAXIMUM",): ScatterReduction.MAX,
    ("STABLEHLO_MINIMUM",): ScatterReduction.MIN,
    ("STABLEHLO_MULTIPLY",): ScatterReduction.MUL,
}
"""The result of a subgraph's operators for an element and its update."""


_LOGICAL = {
    ScatterReduction.ADD: ScatterReduction.MAX,
    ScatterReduction.MUL: ScatterReduction.MIN,
}
"""Scatter functions of truth values that stand for those of the numbers 0 and 1."""


def _pad(node: BoundOperator) -> Sequence[Value]:
    options = node.options("StablehloPadOptions", _UNION)
    low, high = options.numbers("EdgePaddingLow"), options.numbers("EdgePaddingHigh")
    inside = options.numbers("InteriorPadding")

    def expand(parts: ComposedOperator) -> Value:
        value, number = parts.value(0), parts.value(1)
        rank = len(parts.shape(0))
        require(
            rank == len(low) == len(high) == len(inside),
            "there is not one padding per axis",
            expected=str(rank),
            actual=f"{len(low)}, {len(high)}, {len(inside)}",
        )
        apart = dilated(parts, value, [step + 1 for step in inside], number)
        return padded(parts, apart, list(zip(low, high, strict=True)), number)

    return composed(node, expand)


@dataclass(frozen=True, slots=True)
class _Windows:
    """Windows of one tensor at places in another, which vectors of indices give."""

    shape: tuple[int, ...]  # of the tensor that vectors point into
    vector_axis: int  # along which the vectors lie
    to_axes: tuple[int, ...]  # that a vector's elements stand for
    # Axes of the other tensor that run within a window; the rest are those of the vectors.
    within: tuple[int, ...]
    # Axes that windows have one element along, and none of `within` stands for.
    left_out: tuple[int, ...]

    def check(self, vectors: tuple[int, ...], rank: int) -> None:
        """Check axes against the shape of the vectors and the other tensor's rank."""
        own, axis = len(self.shape), self.vector_axis
        length = vectors[axis] if 0 <= axis < len(vectors) else 1
        outer = len(vectors) - (axis < len(vectors))
        fits = (
            0 <= axis <= len(vectors)
            and length == len(self.to_axes)
            and _are_axes(self.to_axes, own)
            and _are_axes(self.within, rank)
            and _are_axes(self.left_out, own)
            and own == len(self.within) + len(self.left_out)
            and rank == len(self.within) + outer
        )
        require(fits, "the axes of the index vectors do not go with the shapes")

    def starts(self, parts: ComposedOperator, vectors: Value) -> Value:
        """Return where each window begins, int64 (..., rank)."""
        rank = len(vectors.info.known_shape)
        vectors = parts.cast(vectors, DataType.SIGNED64)
        if self.vector_axis == rank:
            vectors = parts.layer(ExpandDims(-1), vectors)
        else:
            others = [axis for axis in range(rank) if axis != self.vector_axis]
            vectors = parts.layer(Transpose((*others, self.vector_axis)), vectors)
        *outer, length = vectors.info.known_shape
        zero = parts.constant(np.zeros((*outer, 1), np.int64))
        chosen = [self.to_axes.index(a) if a in self.to_axes else length for a in range(self.rank)]
        return parts.layer(Gather(-1), parts.layer(Concat(-1), vectors, zero), _ints(parts, chosen))

    @property
    def rank(self) -> int:
        """Number of axes of the tensor that vectors point into."""
        return len(self.shape)

    def places(self, parts: ComposedOperator, starts: Value, shape: Sequence[int]) -> Value:
        """Return the place of each element of the other tensor, int64 (*shape, rank)."""
        outer = [1 if axis in self.within else size for axis, size in enumerate(shape)]
        inner = [size if axis in self.within else 1 for axis, size in enumerate(shape)]
        grid = np.zeros((*inner, self.rank), np.int64)
        running = (axis for axis in range(self.rank) if axis not in self.left_out)
        for axis, own in zip(sorted(self.within), running, strict=True):
            grid[..., own] = np.indices(inner)[axis]
        begin = parts.layer(Reshape((*outer, self.rank)), starts)
        return parts.layer(ElementwiseBinary(), begin, parts.constant(grid))

    def flat(self, parts: ComposedOperator, places: Value) -> Value:
        """Places as positions among all elements."""
        strides = [*accumulate(reversed((*self.shape[1:], 1)), mul)][::-1]
        weighted = parts.layer(
            ElementwiseBinary(BinaryOperation.MUL), places, _ints(parts, strides)
        )
        return parts.layer(Reduce(ReduceOperation.SUM, (-1,)), weighted)


def _are_axes(axes: Sequence[int], rank: int) -> bool:
    """Return whether numbers are axes, none of them twice."""
    return len(set(axes)) == len(axes) and all(0 <= axis < rank for axis in axes)


def _ints(parts: ComposedOperator, numbers: Sequence[int]) -> Value:
    """A constant vector, int64."""
    return parts.constant(np.array(numbers, np.int64))


def _gather(node: BoundOperator) -> Sequence[Value]:
    """Look windows up; those that reach beyond the end are moved back."""
    options = node.options("StablehloGatherOptions", _UNION)
    within = tuple(options.numbers("OffsetDims"))
    left_out = tuple(options.numbers("CollapsedSliceDims"))
    to_axes = tuple(options.numbers("StartIndexMap"))
    vector_axis, sizes = options.integer("IndexVectorDim"), options.numbers("SliceSizes")

    def expand(parts: ComposedOperator) -> Value:
        value, vectors, shape = parts.value(0), parts.shape(1), parts.shape(0)
        windows = _Windows(shape, vector_axis, to_axes, within, left_out)
        outer = [size for axis, size in enumerate(vectors) if axis != vector_axis]
        windows.check(vectors, len(outer) + len(within))
        fits = len(sizes) == len(shape) and all(
            0 <= size <= whole and (size == 1 or axis not in left_out)
            for axis, (size, whole) in enumerate(zip(sizes, shape, strict=True))
        )
        require(
            fits, "the windows are not within the tensor", expected=f"at most {shape}", actual=sizes
        )
        inner = [size for axis, size in enumerate(sizes) if axis not in left_out]
        inners, outers = iter(inner), iter(outer)
        result = [next(inners if a in within else outers) for a in range(len(outer) + len(inner))]
        room = _ints(parts, [whole - size for whole, size in zip(shape, sizes, strict=True)])
        starts = windows.starts(parts, parts.value(1))
        starts = parts.layer(ElementwiseBinary(BinaryOperation.MINIMUM), starts, room)
        zero = parts.constant(np.int64(0))
        starts = parts.layer(ElementwiseBinary(BinaryOperation.MAXIMUM), starts, zero)
        places = windows.flat(parts, windows.places(parts, starts, result))
        return parts.layer(Gather(0), parts.layer(Reshape((-1,)), value), places)

    return composed(node, expand)


def _scatter(node: BoundOperator) -> Sequence[Value]:
    """Write windows; elements that would lie outside are left out.

    Stored integers are combined whatever their scale, and truth values as logic does.
    """
    options = node.options("StablehloScatterOptions", _UNION)
    within = tuple(options.numbers("UpdateWindowDims"))
    left_out = tuple(options.numbers("InsertedWindowDims"))
    to_axes = tuple(options.numbers("ScatterDimsToOperandDims"))
    vector_axis = options.integer("IndexVectorDim")
    body = tuple(node.operators(options.integer("UpdateComputationSubgraphIndex")))
    if body not in _UPDATES:
        raise node.error("the subgraph is not supported", actual=", ".join(body))

    def expand(parts: ComposedOperator) -> Value:
        value, updates = (parts.stored(parts.value(index)) for index in (0, 2))
        shape, reduction = parts.shape(0), _UPDATES[body]
        if parts.type(0) is DataType.BOOLEAN:
            value, updates = (parts.cast(v, DataType.UNSIGNED8) for v in (value, updates))
            reduction = _LOGICAL.get(reduction, reduction)
        windows = _Windows(shape, vector_axis, to_axes, within, left_out)
        windows.check(parts.shape(1), len(parts.shape(2)))
        places = windows.places(parts, windows.starts(parts, parts.value(1)), parts.shape(2))
        flat = windows.flat(parts, places)
        # What lies outside is written to an extra last element, which is cut off.
        count = int(np.prod(shape, dtype=np.int64))
        flat = parts.layer(
            Select(), _are_inside(parts, places, shape), flat, parts.constant(np.int64(count))
        )
        elements = parts.layer(Reshape((count,)), value)
        elements = parts.layer(Concat(0), elements, parts.like(value, [0]))
        column = parts.layer(ExpandDims(-1), flat)
        written = parts.layer(ScatterNd(reduction), elements, column, updates)
        updated = parts.layer(Reshape(shape), parts.layer(Slice((0,), (count,)), written))
        if parts.type(0) is DataType.BOOLEAN:
            return parts.cast(updated, DataType.BOOLEAN)
        return parts.meaning(updated, parts.value(0))

    return composed(node, expand)


def _are_inside(parts: ComposedOperator, places: Value, shape: Sequence[int]) -> Value:
    """Return whether places (..., rank) lie in a tensor of a shape."""
    low = parts.layer(
        Comparison(ComparisonOperation.GREATER_OR_EQUAL), places, parts.constant(np.int64(0))
    )
    high = parts.layer(Comparison(ComparisonOperation.LESS), places, _ints(parts, shape))
    both = parts.layer(LogicalBinary(LogicalBinaryOperation.LOGICAL_AND), low, high)
    return parts.layer(Reduce(ReduceOperation.ALL, (-1,)), both)


def _composite(node: BoundOperator) -> Sequence[Value]:
    """Put the subgraph that defines the operator in its place."""
    options = node.options("StableHLOCompositeOptions", _UNION)
    outputs = node.inline(options.integer("DecompositionSubgraphIndex"), node.inputs)
    types = [value.info.data_type.name for value in outputs]
    expected = [info.data_type.name for info in node.outputs]
    if types != expected:
        raise node.error(
            "the subgraph's outputs have the wrong types",
            expected=", ".join(expected),
            actual=", ".join(types),
        )
    return outputs


CONVERTERS: ConverterTable = {
    "STABLEHLO_COMPOSITE": _composite,
    "STABLEHLO_GATHER": _gather,
    "STABLEHLO_PAD": _pad,
    "STABLEHLO_SCATTER": _scatter,
}
