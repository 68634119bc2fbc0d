"""Operators that give the same elements another shape."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.frontends.tflite.node import BoundOperator, ConverterTable, direct
from armpy.graph import Value
from armpy.ops.reshaping import ExpandDims, Reshape, Squeeze


def _reshape(node: BoundOperator) -> Sequence[Value]:
    """Follow the operand if there is one, as TFLite does, and the options otherwise."""
    if node.input(1) is not None:
        return node.layer(Reshape(), *node.inputs)
    target = tuple(node.options("ReshapeOptions").numbers("NewShape"))
    # Old converters write a scalar's shape as one 0.
    return node.layer(Reshape(() if target == (0,) else target), *node.inputs)


CONVERTERS: ConverterTable = {
    "EXPAND_DIMS": direct(ExpandDims()),
    "RESHAPE": _reshape,
    "SQUEEZE": direct(
        lambda node: Squeeze(tuple(node.options("SqueezeOptions").numbers("SqueezeDims")))
    ),
}
