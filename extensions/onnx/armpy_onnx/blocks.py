"""Layers that many converters add."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from armpy.core import symbolic
from armpy.graph import SizesValue, Value
from armpy.graph.network import Network
from armpy.ops.backend_internal import UnfitGraph
from armpy.ops.control_flow import If
from armpy.ops.elementwise import (
    BinaryOperation,
    Comparison,
    ComparisonOperation,
    ElementwiseBinary,
    ElementwiseUnary,
    LogicalBinary,
    LogicalBinaryOperation,
    Select,
    UnaryOperation,
)
from armpy.ops.generation import Fill, Range
from armpy.ops.indexing import ScatterElements
from armpy.ops.joining import Concat
from armpy.ops.movement import BroadcastTo, Transpose
from armpy.ops.reduction import Reduce, ReduceOperation
from armpy.ops.reshaping import Reshape
from armpy.ops.slicing import Gather, Slice, Splitter
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_onnx.node import Node

MOST_TABLE_ELEMENTS = 1 << 25
"""Maximum size of what a converter computes itself: a few sizes in a file must not keep it busy for
long.
"""


MOST_PLACES = 8
"""Traced sizes that are positions, each of which is read by a layer of its own."""


LEAST_COUNTED, MOST_COUNTED = 1 << 10, 1 << 18
"""Limits of a table of numbers that is cut at a traced size, and kept."""


def check_table(node: Node, shape: Sequence[int]) -> None:
    """Refuse a table of positions or weights that is too large to be made here."""
    if math.prod(max(size, 1) for size in shape) > MOST_TABLE_ELEMENTS:
        raise node.error(
            "the sizes ask for a table that is too large",
            expected=f"at most {MOST_TABLE_ELEMENTS} elements",
            actual=tuple(shape),
        )


def nearly_equal(one: float, other: float) -> bool:
    """Return whether two numbers, which may be traced, are equal but for rounding."""
    return holds(math.isclose, one, other)


def holds(rule: Callable[..., bool], *numbers: float) -> bool:
    """Return whether a rule holds for numbers, which may be traced."""
    return bool(symbolic.computed(rule, *numbers))


def sizes(node: Node, numbers: Sequence[int]) -> Value:
    """A vector of numbers, int64, some of which may be traced."""
    return node.constant(symbolic.elements_of(numbers, np.int64))


def counted(node: Node, count: int, start: int = 0) -> Value:
    """`start`, `start` + 1 ..., int64; a layer, so that limits hold for it.

    A few from a traced size on are these sizes. Others from or up to a traced size are cut out of a
    table that holds several times as many, unless there are too many to keep.
    """
    starts_anywhere = symbolic.is_traced(start)
    if starts_anywhere and 0 < count <= MOST_PLACES:
        return sizes(node, [start + n for n in range(count)])
    if symbolic.is_traced(start, count) and (start >= 0 or not starts_anywhere):
        first = 0 if starts_anywhere else start
        begin, end = start - first, start - first + count
        most = _table_size(end)
        if end <= most:
            return taken(node, node.constant(np.arange(first, first + most)), 0, begin, end)
    return node.layer(Range(start, start + count, 1, DataType.SIGNED64))


def _table_size(size: int) -> int:
    """The numbers in a table that is cut at a traced size: several times what that is now."""
    several = 1 << (4 * symbolic.current(size)).bit_length()
    return min(max(LEAST_COUNTED, several), MOST_COUNTED)


def readable(node: Node, value: Value) -> Value:
    """A few traced sizes as elements of tables, which layers read; other values as they are."""
    if not isinstance(value, SizesValue) or value.sizes.size > MOST_PLACES:
        return value
    parts = []
    for size in value.sizes.flat:
        most = _table_size(size)
        if not 0 <= size < most:
            return value
        table = node.constant(np.arange(most), value.info.data_type)
        parts.append(taken(node, table, 0, size, size + 1))
    return reshaped(node, joined(node, parts, 0), value.sizes.shape)


def filled(node: Node, like: Value, shape: Sequence[int], number: int) -> Value:
    """One number of a value's type everywhere; a layer, so that limits hold for it."""
    return node.layer(Fill(tuple(shape)), node.like(like, number))


def reshaped(node: Node, value: Value, shape: Sequence[int]) -> Value:
    """A value in another shape; itself if it has that one."""
    target = tuple(shape)
    return value if value.info.known_shape == target else node.layer(Reshape(target), value)


def transposed(node: Node, value: Value, permutation: Sequence[int]) -> Value:
    """A value with its axes in another order; itself if that is the one they are in."""
    order = tuple(permutation)
    return value if order == tuple(range(len(order))) else node.layer(Transpose(order), value)


def scaled(node: Node, value: Value, factor: float) -> Value:
    """A value multiplied by a number; itself if that is 1."""
    return value if factor == 1 else binary(node, BinaryOperation.MUL, value, factor)


Operand: TypeAlias = Value | npt.ArrayLike
"""A value, or numbers of another operand's type."""


def _alike(node: Node, lhs: Operand, rhs: Operand) -> tuple[Value, Value]:
    """Two operands as values; one of them is."""
    if isinstance(lhs, Value):
        return lhs, rhs if isinstance(rhs, Value) else node.like(lhs, rhs)
    assert isinstance(rhs, Value)  # as there are no layers of numbers alone
    return node.like(rhs, lhs), rhs


def binary(node: Node, operation: BinaryOperation, lhs: Operand, rhs: Operand) -> Value:
    """A binary operation."""
    return node.layer(ElementwiseBinary(operation), *_alike(node, lhs, rhs))


def compared(node: Node, relation: ComparisonOperation, lhs: Operand, rhs: Operand) -> Value:
    """Whether a relation holds for each element."""
    return node.layer(Comparison(relation), *_alike(node, lhs, rhs))


def selected(node: Node, condition: Value, lhs: Operand, rhs: Operand) -> Value:
    """Elements of the first operand where a condition holds, else of the second one."""
    return node.layer(Select(), condition, *_alike(node, lhs, rhs))


def both(node: Node, lhs: Value, rhs: Value) -> Value:
    """Whether two conditions hold."""
    return node.layer(LogicalBinary(LogicalBinaryOperation.LOGICAL_AND), lhs, rhs)


def unary(node: Node, operation: UnaryOperation, value: Value) -> Value:
    """A function of each element."""
    return node.layer(ElementwiseUnary(operation), value)


def joined(node: Node, values: Sequence[Value], axis: int) -> Value:
    """Values one after the other along an axis."""
    return values[0] if len(values) == 1 else node.layer(Concat(axis), *values)


def split(node: Node, value: Value, sizes: Sequence[int], axis: int) -> tuple[Value, ...]:
    """Parts of a value along an axis."""
    if len(sizes) == 1:
        return (value,)
    return node.layers(Splitter(axis=axis, sizes=tuple(sizes)), [value])


def taken(node: Node, value: Value, axis: int, begin: int, end: int) -> Value:
    """The elements of a value from `begin` up to `end` along an axis."""
    shape = value.info.known_shape
    first = tuple(begin if at == axis else 0 for at in range(len(shape)))
    size = tuple(end - begin if at == axis else dim for at, dim in enumerate(shape))
    return value if size == shape else node.layer(Slice(first, size), value)


def gathered(node: Node, value: Value, indices: Value, axis: int = 0) -> Value:
    """Return the elements at indices, which may be negative, along an axis."""
    if isinstance(indices, SizesValue) and 0 < indices.sizes.size <= MOST_PLACES:
        return _cut_out(node, value, indices, axis)
    return node.layer(Gather(axis, wraps_negative=True), value, indices)


def _cut_out(node: Node, value: Value, indices: SizesValue, axis: int) -> Value:
    """Slices at traced sizes, which a gather by constants would fix."""
    shape = value.info.known_shape
    before, after = shape[:axis], shape[axis + 1 :]
    parts = []
    for index in indices.sizes.flat:
        start = index if index >= 0 else index + shape[axis]
        begin = (*[0] * axis, start, *[0] * len(after))
        parts.append(node.layer(Slice(begin, (*before, 1, *after)), value))
    return reshaped(node, joined(node, parts, axis), (*before, *indices.sizes.shape, *after))


def written_at(node: Node, value: Value, places: Value, updates: Value, axis: int) -> Value:
    """A value with updates at places along an axis, which broadcast to the updates' shape."""
    wide = node.layer(BroadcastTo(updates.info.known_shape), places)
    return node.layer(ScatterElements(axis), value, wide, updates)


def reduced(
    node: Node, operation: ReduceOperation, value: Value, axes: Sequence[int], keep_dims: bool
) -> Value:
    """A value reduced along axes."""
    return node.layer(Reduce(operation, tuple(axes), keep_dims=keep_dims), value)


def demanded(node: Node, condition: Value, value: Value, reason: str) -> Value:
    """A value, with an error in calls for which a condition does not hold.

    Parameters
    ----------
    condition : Value, BOOLEAN of one element
    reason : str
        Statement of the error about the node.
    """
    info = TensorInfo(value.info.known_shape, value.info.data_type)
    passing, failing = (Network(node.data.name) for _ in range(2))
    passing.output("output", passing.input("input", info))
    failing.input("input", info)
    failure = UnfitGraph(node.data.label, reason, (info,))
    failing.output("output", failing.add_layer(failure, ()).outputs[0])
    return node.layer(If(passing.build(), failing.build()), condition, value)
