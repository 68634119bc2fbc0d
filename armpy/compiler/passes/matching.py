"""Matching of formulas in a graph, and layers that do the work of several, for passes."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from armpy.core.dataclass import dataclass
from armpy.graph import Graph, Layer, Value
from armpy.graph.rewriter import Rewriter, rewrite
from armpy.ops.activations import FusedActivation
from armpy.ops.elementwise import (
    BinaryOperation,
    ElementwiseBinary,
    ElementwiseUnary,
    UnaryOperation,
)
from armpy.ops.operation import Operation

_TOLERANCE = 1e-5
"""How far a constant of float32 may lie from the number that it stands for, relatively."""


def binary(
    graph: Graph, value: Value | None, *kinds: BinaryOperation
) -> tuple[Layer, Value, Value] | None:
    """The elementwise layer that writes a value, and its inputs; None if it is another one."""
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
    """Return whether a constant stands for a number."""
    return number is not None and math.isclose(number, expected, rel_tol=_TOLERANCE)


def beside(pair: Sequence[Value]) -> tuple[Value, Value] | None:
    """Return the computed operand and the constant of an elementwise layer."""
    constants = [value for value in pair if value.data is not None]
    others = [value for value in pair if value.data is None]
    # Two constants would have been folded, and two computed operands have none.
    return (others[0], constants[0]) if len(others) == 1 else None


@dataclass(frozen=True, eq=False, slots=True)
class FusedLayer:
    """One layer that does the work of several."""

    operation: Operation
    inputs: tuple[Value | None, ...]
    layers: tuple[Layer, ...]
    """Layers that the fused one replaces, the last one first."""


def fuse(graph: Graph, found: Mapping[Layer, FusedLayer]) -> Graph:
    """The graph with fused layers, each in the place of the last one that it stands for."""
    gone = {layer for fused in found.values() for layer in fused.layers}
    return rewrite(graph, found, _add_fused, gone)


def _add_fused(rewriter: Rewriter, layer: Layer, fused: FusedLayer) -> None:
    inputs = [value and rewriter.mapped(value) for value in fused.inputs]
    rewriter.replace(layer, fused.operation, inputs, origins=fused.layers[::-1])


def are_read_inside(graph: Graph, layers: Collection[Layer], last: Layer) -> bool:
    """Return whether only the layers themselves read their outputs, the last one's excepted."""
    inside = set(layers)
    return not any(
        layer.output in graph.result_set
        or not inside.issuperset(graph.consumers.get(layer.output, ()))
        for layer in inside - {last}
    )
