"""Matching of formulas in a graph, for passes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from armpy.graph import Graph, Layer, Value
from armpy.ops.activations import FusedActivation
from armpy.ops.elementwise import (
    BinaryOperation,
    ElementwiseBinary,
    ElementwiseUnary,
    UnaryOperation,
)

_TOLERANCE = 1e-5
"""How far a constant of float32 may lie from the number that it stands for, relatively."""


def binary(
    graph: Graph, value: Value | None, *kinds: BinaryOperation
) -> tuple[Layer, Value, Value] | None:
    """The elementwise layer that gives a value, and what it reads; None if it is another one."""
    layer = None if value is None else graph.producers.get(value)
    if layer is None or not isinstance(layer.operation, ElementwiseBinary):
        return None
    is_plain = layer.operation.activation is FusedActivation.NONE
    if not is_plain or layer.operation.operation not in kinds:
        return None
    return layer, layer["lhs"], layer["rhs"]


def unary(graph: Graph, value: Value, kind: UnaryOperation) -> Layer | None:
    """The layer that gives a value; None if it is another one."""
    layer = graph.producers.get(value)
    is_one = layer is not None and layer.operation == ElementwiseUnary(kind)
    return layer if is_one else None


def number_of(value: Value | None) -> float | None:
    """The only element of a constant."""
    if value is None or value.data is None or value.data.size != 1:
        return None
    return float(value.data.reshape(-1)[0])


def is_near(number: float | None, expected: float) -> bool:
    """Whether a constant stands for a number."""
    return number is not None and math.isclose(number, expected, rel_tol=_TOLERANCE)


def beside(pair: Sequence[Value]) -> tuple[Value, Value] | None:
    """What is computed and the constant of an elementwise layer's operands."""
    constants = [value for value in pair if value.data is not None]
    others = [value for value in pair if value.data is None]
    # Two constants would have been folded, and two computed operands have none.
    return (others[0], constants[0]) if len(others) == 1 else None
