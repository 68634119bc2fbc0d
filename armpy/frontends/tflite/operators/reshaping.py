"""Operators that give the same elements another shape."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.frontends.tflite.node import BoundOperator, ConverterTable, direct
from armpy.graph import Value
from armpy.ops.reshaping import ExpandDims, Reshape, Squeeze


def _reshape(node: BoundOperator) -> Sequence[Value]:
    """Follow the operand if it is a vector, as TFLite does, and the options otherwise."""
    operand = node.input(1)
    target = tuple(node.options("ReshapeOptions").numbers("NewShape"))
    if operand is not None and (operand.info.rank in (None, 1) or not target):
        return node.layer(Reshape(), *node.inputs)
    # Old converters write a scalar's shape as one 0.
    return node.layer(Reshape(() if target == (0,) else target), *node.inputs[:1])


CONVERTERS: ConverterTable = {
    "EXPAND_DIMS": direct(ExpandDims()),
    "RESHAPE": _reshape,
    "SQUEEZE": direct(
        lambda node: Squeeze(tuple(node.options("SqueezeOptions").numbers("SqueezeDims")))
    ),
}
