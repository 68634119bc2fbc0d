"""ONNX's loops: written out, or turned into While."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import onnx

from armpy.core.dataclass import dataclass
from armpy.graph import Value
from armpy.ops.control_flow import While
from armpy.ops.elementwise import (
    BinaryOperation,
    Comparison,
    ComparisonOperation,
    ElementwiseBinary,
    LogicalBinary,
    LogicalBinaryOperation,
    Select,
)
from armpy.ops.generation import Range
from armpy.ops.reshaping import Reshape
from armpy.tensor import Shape, TensorInfo
from armpy.types import DataType
from armpy_onnx.items import (
    Item,
    UnknownElements,
    tensors,
)
from armpy_onnx.node import NodeData
from armpy_onnx.reading import dimension_name, kind_of, nodes_inside
from armpy_onnx.structures.outer_scope import InnerGraph, OuterScope
from armpy_onnx.structures.walking import Scope, Walker

MOST_UNROLLED_NODES = 256
"""Maximum number of nodes of a loop that is written out though it need not be."""

_KINDS = ("If", "Loop", "Scan")
_WEIGHT_INSIDE = 32
"""Number of plain nodes that a node that runs graphs counts as: each copy has graphs of its own."""

MOST_TURNS = 4096
"""Maximum number of turns of a loop that is written out because it carries sequences."""

MOST_PHANTOMS = 4
"""Nested loops whose turns have to be tried out to know the shapes that they collect."""

_TRUE = np.array(True)


@dataclass(frozen=True, eq=False, slots=True)
class ControlNode:
    """A node that runs graphs."""

    walker: Walker
    data: NodeData
    inputs: Sequence[Item]
    scope: Scope  # the tensors that the graphs read from outside

    def graph(self, name: str) -> onnx.GraphProto:
        """A graph that is an attribute."""
        graph = self.data.attribute(name)
        if not isinstance(graph, onnx.GraphProto):
            raise self.data.error(f"the attribute '{name}' is missing, or no graph")
        return graph

    def inline(self, graph: onnx.GraphProto, given: Sequence[Item], label: str) -> list[Item]:
        """Outputs of a graph whose nodes are added here."""
        return self.walker.inlined(graph, given, self.scope, f"{self.data.name}/{label}/")

    def truth(self, item: Item) -> bool | None:
        """Return the known value of a condition; None if it is not known."""
        if not isinstance(item, Value):
            raise self.data.error("a condition is not a tensor")
        if item.info.data_type is not DataType.BOOLEAN:
            raise self.data.error(
                "a condition has the wrong type", expected="bool", actual=item.info.data_type
            )
        return None if item.data is None else _single(self.data, item.data, "condition")


def _single(data: NodeData, array: object, noun: str) -> bool:
    """The only element of an array."""
    elements = np.asarray(array).reshape(-1)
    if elements.size != 1:
        raise data.error(f"the {noun} is not one element", actual=str(elements.size))
    return bool(elements[0])


# If


Turn: TypeAlias = "Callable[[Walker, Scope, Value, Item, Sequence[Item], str], list[Item]]"
"""One turn: the walker and scope that it is added by, its number, condition, the carried values,
and a label; returns the condition and the carried values, then the collected ones."""


@dataclass(frozen=True, eq=False, slots=True)
class OnnxLoop:
    """A loop in what Loop and Scan have in common."""

    node: ControlNode
    body: onnx.GraphProto
    turn: Turn
    carried: Sequence[Item]
    num_collected: int  # outputs that are put together from all turns
    trips: Value | None  # how many turns there are at most
    condition: Value | None  # whether there is a first turn
    goes_on: bool  # whether the body never ends the loop

    def run(self) -> list[Item]:
        """Carried values after the last turn, then collected ones."""
        count, fixed = self._counts()
        if fixed is not None and self._is_short(fixed):
            return self._unrolled(fixed)
        if not all(isinstance(item, Value) for item in self.carried):
            return self._unrolled(count, may_end=True)
        return _as_while(self, fixed)

    @property
    def most_turns(self) -> int | None:
        """Return how many turns there are at most; None if it is not known."""
        return self._counts()[0]

    @property
    def is_long(self) -> bool:
        """Return whether the number of turns is known, and too large to write them out."""
        _, fixed = self._counts()
        return fixed is not None and not self._is_short(fixed)

    def _counts(self) -> tuple[int | None, int | None]:
        """Return how many turns there are at most and exactly, as far as it is known."""
        first = True if self.condition is None else self.node.truth(self.condition)
        count = 0 if first is False else self._count()
        is_exact = first is not None and (self.goes_on or count == 0)
        return count, count if is_exact else None

    def _is_short(self, count: int) -> bool:
        """Return whether a number of turns may be written out, in those of the loops around it."""
        times = count * self.node.scope.turns
        if times * max(len(self.body.node), 1) > MOST_UNROLLED_NODES:
            return False
        kinds = (kind_of(node) for node in nodes_inside(self.body.node))
        weight = sum(_WEIGHT_INSIDE if kind in _KINDS else 1 for kind in kinds)
        return times * max(weight, 1) <= MOST_UNROLLED_NODES

    def _count(self) -> int | None:
        """Return how many turns there are at most, as far as it is known."""
        if self.trips is None or self.trips.data is None:
            return None
        counts = self.node.data.whole(self.trips.data, "the number of turns")
        if len(counts) != 1:
            raise self.node.data.error("the number of turns is not one element")
        return max(counts[0], 0)

    def _unrolled(self, count: int | None, *, may_end: bool = False) -> list[Item]:
        """Every turn written out."""
        node, walker = self.node, self.node.walker
        scope = replace(node.scope, turns=node.scope.turns * max(count or 1, 1))
        decisive = [value for value in (self.trips, self.condition) if value is not None]
        waits = [value for value in decisive if value.data is None]
        if waits:
            raise UnknownElements(waits, "how often a loop that carries sequences runs")
        carried, rows = list(self.carried), []
        condition: Item = walker.constant(_TRUE)
        number = 0
        while count is None or number < count:
            if number == MOST_TURNS:
                raise node.data.error("the loop is too long to write it out", actual=str(count))
            turn = walker.constant(np.int64(number))
            results = self.turn(walker, scope, turn, condition, carried, f"{number}/")
            carried = results[1 : 1 + len(carried)]
            rows.append(results[1 + len(carried) :])
            number += 1
            if may_end:
                goes_on = node.truth(results[0])
                if goes_on is None:
                    raise UnknownElements((), "how often a loop that carries sequences runs")
                if not goes_on:
                    break
        collected = [self._joined([row[i] for row in rows], i) for i in range(self.num_collected)]
        return [*carried, *collected]

    def _joined(self, items: Sequence[Item], number: int) -> Value:
        """Join the collected results of all turns as one tensor."""
        walker = self.node.walker
        if not items:
            return self.nothing(number)
        label = self.node.data.name
        rows = [walker.call("Unsqueeze", v, [0], label=label) for v in tensors(items)]
        return rows[0] if len(rows) == 1 else walker.call("Concat", *rows, label=label, axis=0)

    def nothing(self, number: int) -> Value:
        """Return the collected results of no turn at all."""
        info = self.given()[1 + len(self.carried) + number]
        return self.node.walker.zeros(_rows(self, info, 0), info.data_type)

    def given(self) -> list[TensorInfo]:
        """Return the results of a turn: the condition, carried values and collected ones."""
        outer_scope = OuterScope(self.node.walker, self.node.scope, [self.body])
        own = [value.info for value in tensors(self.carried)]
        counters = [TensorInfo((), DataType.SIGNED64), TensorInfo((), DataType.BOOLEAN)]
        names = [f"given_{number}" for number in range(len(own) + 2)]
        inner = outer_scope.enclosed(names, [*counters, *own])
        number, condition, *state = inner.inputs
        results = tensors(self.turn(inner.walker, inner.scope, number, condition, state, "given/"))
        infos = [value.info for value in results]
        if all(info.is_fully_shaped for info in infos[1 + len(own) :]):
            return infos
        return self._phantom()

    def _phantom(self) -> list[TensorInfo]:
        """Return the results of a turn that is added without a reader, so that it never runs.

        Notes
        -----
        Loops inside are added for it and for the turns that run, so this doubles the work with
        every loop around; hence the limit.
        """
        walker, node = self.node.walker, self.node
        scope = replace(node.scope, phantoms=node.scope.phantoms + 1)
        if scope.phantoms > MOST_PHANTOMS:
            raise node.data.error(
                "the shape of what loops in loops collect is not known",
                expected=f"at most {MOST_PHANTOMS} such loops in each other",
            )
        number = walker.constant(np.int64(0))
        results = self.turn(walker, scope, number, walker.constant(_TRUE), self.carried, "phantom/")
        return [value.info for value in tensors(results)]


def _rows(loop: OnnxLoop, info: TensorInfo, count: int) -> tuple[int, ...]:
    """Shape of the values collected over a number of turns."""
    shape = info.shape
    if shape is None or (count and None in shape):
        raise loop.node.data.error("the shape of the loop's collected outputs is not known")
    return (count, *(0 if dim is None else dim for dim in shape))


def _as_while(loop: OnnxLoop, fixed: int | None) -> list[Item]:
    """A loop as While.

    Notes
    -----
    Carried are the turn's number, the condition, the loop's own values, and the collected ones:
    as many rows as there are turns where that is known, or one more every turn.
    """
    node, walker = loop.node, loop.node.walker
    infos_given = loop.given()
    num_carried = len(loop.carried)
    carried = tensors(loop.carried)
    collected = [_ranked(loop, *pair) for pair in enumerate(infos_given[1 + num_carried :])]
    if any(not info.is_fully_shaped for info in collected):
        fixed = None
    start = [
        walker.constant(np.int64(0)),
        walker.constant(_TRUE) if loop.condition is None else loop.condition,
        *carried,
        *(walker.zeros(_rows(loop, info, fixed or 0), info.data_type) for info in collected),
    ]
    infos = [value.info for value in start]
    for index, (before, after) in enumerate(zip(carried, infos_given[1:], strict=False)):
        infos[2 + index] = _widened(before.info, after.shape)
    if fixed is None:
        for index, info in enumerate(collected, 2 + num_carried):
            infos[index] = info.with_shape((None, *(info.shape or ())))
    outer_scope = OuterScope(walker, node.scope, [loop.body], extra=[loop.trips])
    # A body can widen its inputs: each turn here opens a dimension or a rank at least, and
    # there are no more of them than this.
    for _ in range(2 + sum(len(info.shape or ()) + 1 for info in infos)):
        body = _body(loop, outer_scope, infos, fixed)
        wider = [
            before  # of a collected one, the rank stays
            if number >= num_carried and value.info.shape is None
            else _opened(loop, number, _widened(before, value.info.shape), value.info.shape)
            for number, (before, value) in enumerate(zip(infos, body.results, strict=True), -2)
        ]
        if [info.shape for info in wider] == [info.shape for info in infos]:
            break
        infos = wider
    condition = _condition(loop, outer_scope, infos, fixed)
    operation = While(condition.build(), body.build())
    results = walker.layers(node.data.name, operation, [*start, *outer_scope.handed])
    return list(results[2:])


def _ranked(loop: OnnxLoop, number: int, info: TensorInfo) -> TensorInfo:
    """Give a collected value the rank that the file declares, if no other is known."""
    declared = loop.body.output[number - loop.num_collected].type.tensor_type
    if info.shape is not None or not declared.HasField("shape"):
        return info
    return info.with_shape((None,) * len(declared.shape.dim))


def _widened(info: TensorInfo, other: Shape | None) -> TensorInfo:
    if info.shape is None or other is None or len(info.shape) != len(other):
        return info.with_shape(None) if other is not None or info.shape is None else info
    pairs = zip(info.shape, other, strict=True)
    return info.with_shape(tuple(a if b is None or a == b else None for a, b in pairs))


def _opened(loop: OnnxLoop, number: int, info: TensorInfo, result: Shape | None) -> TensorInfo:
    """A carried value, open where a turn's result is not known before elements are.

    Dimensions stay that the body declares with one size, or under one name before and after.
    """
    # Scans, whose bodies give no condition, carry what keeps its shape.
    gives_condition = len(loop.body.output) > len(loop.carried) + loop.num_collected
    if not gives_condition or not 0 <= number < len(loop.carried) or info.shape is None:
        return info
    ends = loop.body.input[2 + number], loop.body.output[1 + number]
    rank = len(info.shape)
    declared = (
        [dim.dim_value or dimension_name(dim) for dim in end.type.tensor_type.shape.dim]
        for end in ends
    )
    pairs = (dims if len(dims) == rank else [""] * rank for dims in declared)
    known = result or (None,) * rank
    shape = [
        dim if size is not None or isinstance(old, int) or old == new != "" else None
        for dim, size, old, new in zip(info.shape, known, *pairs, strict=True)
    ]
    return info.with_shape(tuple(shape))


def _body(
    loop: OnnxLoop, outer_scope: OuterScope, infos: Sequence[TensorInfo], fixed: int | None
) -> InnerGraph:
    label = loop.node.data.name
    names = [f"carried_{number}" for number in range(len(infos))]
    inner = outer_scope.enclosed(names, infos)
    walker, (number, condition, *state) = inner.walker, inner.inputs
    num_carried = len(loop.carried)
    results = tensors(loop.turn(walker, inner.scope, number, condition, state[:num_carried], ""))
    rows = []
    for before, value in zip(state[num_carried:], results[1 + num_carried :], strict=True):
        row = walker.call("Unsqueeze", value, [0], label=label)
        if fixed is None:
            earlier = _fitting(walker, label, before, row)
            rows.append(walker.call("Concat", earlier, row, label=label, axis=0))
            continue
        column = Reshape((fixed, *(1,) * (len(before.info.known_shape) - 1)))
        numbers = walker.layer(label, Range(0, fixed, 1, DataType.SIGNED64))
        turns = walker.layer(label, column, numbers)
        here = walker.layer(label, Comparison(ComparisonOperation.EQUAL), turns, number)
        rows.append(walker.layer(label, Select(), here, row, before))
    step = walker.constant(np.int64(1))
    following = walker.layer(label, ElementwiseBinary(BinaryOperation.ADD), number, step)
    inner.finish([following, results[0], *results[1 : 1 + num_carried], *rows])
    return inner


def _fitting(walker: Walker, label: str, before: Value, row: Value) -> Value:
    """Return the rows so far; before the first one they get its size along an open axis."""
    # Of several open axes, other sizes could have as many elements.
    if (before.info.shape or ()).count(None) != 2:
        return before
    count = walker.call("Shape", before, label=label, end=1)
    sizes = walker.call("Shape", row, label=label, start=1)
    shape = walker.call("Concat", count, sizes, label=label, axis=0)
    return walker.call("Reshape", before, shape, label=label, allowzero=1)


def _condition(
    loop: OnnxLoop, outer_scope: OuterScope, infos: Sequence[TensorInfo], fixed: int | None
) -> InnerGraph:
    """The graph that says whether there is another turn."""
    label = loop.node.data.name
    names = [f"carried_{number}" for number in range(len(infos))]
    inner = outer_scope.enclosed(names, infos)
    walker, (number, condition, *_) = inner.walker, inner.inputs
    result: Value = condition
    if loop.trips is not None:
        trips = inner.of(loop.trips)
        result = walker.layer(label, Comparison(ComparisonOperation.LESS), number, trips)
        if fixed is None:
            both = LogicalBinary(LogicalBinaryOperation.LOGICAL_AND)
            result = walker.layer(label, both, result, condition)
    inner.finish([result])
    return inner
