"""Branches of an If: with the shapes that they are handed, or the only one that can run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from armpy.errors import ArmpyError
from armpy.graph import Graph, Value, graphs_of
from armpy.ops.control_flow import If
from armpy.ops.operation import Array

Specialize: TypeAlias = Callable[[Graph, Sequence[tuple[int, ...]], Sequence[Array | None]], Graph]
"""Binds the shapes of a graph's inputs, and what is known of their elements."""


def chosen(operation: If, inputs: Sequence[Value | None]) -> Graph | None:
    """The branch that runs, if the condition is constant; None if it is not."""
    condition = inputs[0] if inputs else None
    # Optional operands that are missing cannot take the place of a graph's inputs.
    if condition is None or condition.data is None or None in inputs:
        return None
    (_, then), (_, other) = graphs_of(operation)
    # A condition has one element and any rank.
    graph = then if condition.data.reshape(-1)[0] else other
    return None if graph.variables else graph


def with_known_shapes(operation: If, inputs: Sequence[Value | None], specialize: Specialize) -> If:
    """An If whose branches know what they are handed: shapes, and constants.

    Parameters
    ----------
    inputs : sequence of Value
        The layer's, the condition first.

    Notes
    -----
    What is wrong with a branch is told when it has to run.
    """
    given = inputs[1:]
    if not all(value is not None and value.info.is_fully_shaped for value in given):
        return operation
    shapes = [value.info.known_shape for value in given if value is not None]
    values = [value.data for value in given if value is not None]
    (_, then), (_, other) = graphs_of(operation)
    if all(graph.is_fully_shaped for graph in (then, other)):
        return operation
    try:
        return If(specialize(then, shapes, values), specialize(other, shapes, values))
    except ArmpyError:
        return operation
