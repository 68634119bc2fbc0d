"""Operators that give the same elements another shape."""

from __future__ import annotations

import math
from collections.abc import Sequence

from armpy.frontends.tflite.composed import ComposedOperator, composed, moving
from armpy.frontends.tflite.node import BoundOperator, ConverterTable, direct
from armpy.graph import Value
from armpy.ops.reshaping import ExpandDims, Reshape, Squeeze


def _reshape(node: BoundOperator) -> Sequence[Value]:
    """Follow the operand if it is a vector, as TFLite does, and the options otherwise."""
    operand = node.input(1)
    target = tuple(node.options("ReshapeOptions").numbers("NewShape"))
    if operand is not None and (operand.info.rank in (None, 1) or not target):
        sizes: tuple[int, ...] = ()
        if operand.data is not None and operand.data.dtype.kind in "iu":
            sizes = tuple(int(size) for size in operand.data.flat)
        if 0 in sizes and -1 in sizes:
            return _of_no_elements(node, sizes)
        return node.layer(Reshape(), *node.inputs)
    # Old converters write a scalar's shape as one 0.
    return node.layer(Reshape(() if target == (0,) else target), *node.inputs[:1])


def _of_no_elements(node: BoundOperator, sizes: Sequence[int]) -> Sequence[Value]:
    """Give a tensor without elements sizes of which one is open: the sizes of 0 do not count."""

    def expand(parts: ComposedOperator) -> Value:
        of_input = math.prod(size for size in parts.shape(0) if size)
        of_output = math.prod(size for size in sizes if size > 0)
        target = tuple(of_input // of_output if size == -1 else size for size in sizes)
        return parts.layer(Reshape(target), parts.value(0))

    return composed(node, expand)


CONVERTERS: ConverterTable = {
    "EXPAND_DIMS": direct(ExpandDims()),
    "RESHAPE": moving(_reshape),
    "SQUEEZE": moving(
        direct(lambda node: Squeeze(tuple(node.options("SqueezeOptions").numbers("SqueezeDims"))))
    ),
}
