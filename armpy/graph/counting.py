"""Loops that count: how many turns they have, and what their counters are meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from armpy.core.dataclass import dataclass
from armpy.graph.graph import Graph, Value
from armpy.ops.activations import FusedActivation
from armpy.ops.control_flow import While
from armpy.ops.elementwise import (
    BinaryOperation,
    Comparison,
    ComparisonOperation,
    ElementwiseBinary,
    LogicalBinary,
    LogicalBinaryOperation,
)
from armpy.types import DataType

_INTEGERS = (DataType.SIGNED32, DataType.SIGNED64)


@dataclass(frozen=True, slots=True)
class LoopCounter:
    """A carried value that grows by the same amount in each turn."""

    start: int  # its value in the first turn
    step: int  # what each turn adds; above 0


@dataclass(frozen=True, slots=True)
class LoopCount:
    """Number of turns of a loop, known before it runs."""

    num_turns: int
    counters: Mapping[int, LoopCounter]  # by the number of the carried value

    def largest(self, number: int) -> int:
        """The value of a counter in the last turn."""
        counter = self.counters[number]
        return counter.start + counter.step * max(self.num_turns - 1, 0)


def counted(loop: While, inputs: Sequence[Value | None]) -> LoopCount | None:
    """Return how often a loop runs, where its condition compares counters with constants.

    Parameters
    ----------
    loop : While
        Loop whose graphs' layers have operands that become attributes as attributes.
    inputs : sequence of (Value or None)
        Inputs of the layer; a counter begins with a constant.

    Returns
    -------
    LoopCount or None
        None if the count is unknown.

    Notes
    -----
    The condition is ``counter < constant``, or several of these that must all hold. A counter is
    a carried integer to which the body adds a constant above 0.
    """
    condition, body = loop.condition_graph, loop.body_graph
    if not isinstance(condition, Graph) or not isinstance(body, Graph):
        return None
    counters = dict(_counters(body, inputs))
    turns = []
    for term in _terms(condition, condition.outputs[0]):
        limit = _limit(condition, term, counters)
        if limit is None:
            return None
        turns.append(limit)
    return LoopCount(min(turns), counters)


def single_integer(value: Value | None) -> int | None:
    """A constant integer of one element; None if it is something else."""
    if value is None or value.data is None or value.data.size != 1:
        return None
    return int(value.data.item()) if value.info.data_type in _INTEGERS else None


def added_constant(graph: Graph, value: Value) -> tuple[Value, int] | None:
    """Return the value that this one is a sum of with a constant integer."""
    layer = graph.producers.get(value)
    if layer is None or layer.operation not in _ADDITIONS:
        return None
    left, right = layer.inputs
    constant = single_integer(right)
    if constant is None:
        left, constant = right, single_integer(left)
    if left is None or constant is None or left.info != value.info:
        return None
    return left, constant


_ADDITIONS = tuple(
    ElementwiseBinary(BinaryOperation.ADD, FusedActivation.NONE, power_of_two)
    for power_of_two in (False, True)
)


def _counters(body: Graph, inputs: Sequence[Value | None]) -> Iterator[tuple[int, LoopCounter]]:
    """The carried values that count."""
    for number, (before, after) in enumerate(zip(body.inputs, body.outputs, strict=False)):
        start, added = single_integer(inputs[number]), added_constant(body, after)
        if start is not None and added is not None and added[0] is before and added[1] > 0:
            yield number, LoopCounter(start, added[1])


def _terms(graph: Graph, value: Value) -> Iterator[Value]:
    """The truth values that must all hold for one to do so."""
    layer = graph.producers.get(value)
    if layer is not None and layer.operation == LogicalBinary(LogicalBinaryOperation.LOGICAL_AND):
        for operand in layer.inputs:
            if operand is not None:
                yield from _terms(graph, operand)
    else:
        yield value


def _limit(condition: Graph, term: Value, counters: Mapping[int, LoopCounter]) -> int | None:
    """Return the number of turns that a comparison allows; None if it is unknown."""
    layer = condition.producers.get(term)
    if layer is None or layer.operation != Comparison(ComparisonOperation.LESS):
        return None
    end = single_integer(layer.inputs[1])
    left = layer.inputs[0]
    if end is None or left not in condition.inputs:
        return None
    counter = counters.get(condition.inputs.index(left))
    if counter is None or end + counter.step > np.iinfo(np.int32).max:
        return None
    return max(-(-(end - counter.start) // counter.step), 0)
