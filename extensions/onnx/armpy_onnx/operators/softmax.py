"""Softmax and its logarithm, and the losses that are made of it."""

from __future__ import annotations

import math

from armpy.graph import Value
from armpy.ops.activation_layers import LogSoftmax, Softmax
from armpy_onnx.blocks import reshaped
from armpy_onnx.node import Node, Operator, OperatorTable


def _along_axis(operation: type[Softmax] | type[LogSoftmax]) -> Operator:
    """Along one axis; up to version 12 along all axes from the given one on."""

    def convert(node: Node) -> Value:
        value, shape = node.value(0), node.shape(0)
        if node.version >= 13:
            return node.layer(
                operation(axis=node.axis(node.integer("axis", -1), len(shape))), value
            )
        axis_given = node.integer("axis", 1)
        axis = len(shape) if axis_given == len(shape) else node.axis(axis_given, len(shape))
        if axis == len(shape) - 1:
            return node.layer(operation(), value)
        flat = reshaped(node, value, (math.prod(shape[:axis]), math.prod(shape[axis:])))
        return reshaped(node, node.layer(operation(), flat), shape)

    return Operator(convert)


OPERATORS: OperatorTable = {
    "Softmax": _along_axis(Softmax),
    "LogSoftmax": _along_axis(LogSoftmax),
}
