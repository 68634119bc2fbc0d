"""Operators that compute element by element."""

from __future__ import annotations

from armpy.frontends.onnx.node import Node, Operator, OperatorTable
from armpy.graph import Value
from armpy.ops.elementwise import BinaryOperation, ElementwiseBinary


def _binary(operation: BinaryOperation) -> Operator:
    """Operator of two tensors that broadcast."""

    def convert(node: Node) -> Value:
        return node.layer(ElementwiseBinary(operation), node.value(0), node.value(1))

    return Operator(convert)


OPERATORS: OperatorTable = {
    "Add": _binary(BinaryOperation.ADD),
    "Sub": _binary(BinaryOperation.SUB),
    "Mul": _binary(BinaryOperation.MUL),
    "Div": _binary(BinaryOperation.DIV),
}
