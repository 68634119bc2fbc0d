"""Operators that run subgraphs."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.frontends.tflite.node import BoundOperator, ConverterTable
from armpy.graph import Value
from armpy.ops.control_flow import If, While
from armpy.tensor import Shape


def _if(node: BoundOperator) -> Sequence[Value]:
    options = node.options("IfOptions")
    shapes = [value.info.shape for value in _present(node)[1:]]
    then_graph = node.graph(options.integer("ThenSubgraphIndex"), shapes)
    else_graph = node.graph(options.integer("ElseSubgraphIndex"), shapes)
    return node.layer(If(then_graph, else_graph), *node.inputs)


def _while(node: BoundOperator) -> Sequence[Value]:
    options = node.options("WhileOptions")
    body_index = options.integer("BodySubgraphIndex")
    shapes = [value.info.shape for value in _present(node)]
    body = node.graph(body_index, shapes)
    # Shapes that a turn changes are not known in the body; what follows from them is not, either.
    for forget in (_common, _nothing, _nothing):
        carried = [info.shape for info in body.output_infos]
        fits = [_fits(*pair) for pair in zip(shapes, carried, strict=False)]
        if all(fits):
            break
        for number, (shape, fit) in enumerate(zip(carried, fits, strict=False)):
            if not fit:
                shapes[number] = forget(shapes[number], shape)
        body = node.graph(body_index, shapes)
    condition = node.graph(options.integer("CondSubgraphIndex"), shapes)
    return node.layer(While(condition, body), *node.inputs)


def _present(node: BoundOperator) -> Sequence[Value]:
    """The inputs, none of which may be left out."""
    values = [value for value in node.inputs if value is not None]
    if len(values) < len(node.inputs) or not values:
        raise node.error("an input is missing")
    return values


def _fits(expected: Shape | None, actual: Shape | None) -> bool:
    """Return whether a tensor that is given is always of the shape that is taken."""
    if expected is None or actual is None:
        return expected is None
    pairs = zip(expected, actual, strict=False)
    return len(expected) == len(actual) and all(a in (None, b) for a, b in pairs)


def _common(shape: Shape | None, other: Shape | None) -> Shape | None:
    """Return the common part of two shapes."""
    if shape is None or other is None or len(shape) != len(other):
        return None
    return tuple(a if a == b else None for a, b in zip(shape, other, strict=True))


def _nothing(shape: Shape | None, other: Shape | None) -> Shape | None:
    """A shape of which nothing is known."""
    return None


CONVERTERS: ConverterTable = {
    "IF": _if,
    "WHILE": _while,
}
