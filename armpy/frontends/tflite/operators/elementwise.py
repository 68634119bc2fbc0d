"""Operators that work element by element."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.frontends.tflite.node import Converter, ConverterTable, Node, direct, fused_activation
from armpy.graph import Value
from armpy.ops import (
    BinaryOperation,
    Comparison,
    ComparisonOperation,
    ElementwiseBinary,
    ElementwiseUnary,
    LogicalBinary,
    LogicalBinaryOperation,
    Prelu,
    Reshape,
    Select,
    UnaryOperation,
)


def _fused(operation: BinaryOperation, options_name: str) -> Converter:
    """Converter of a binary operator that can have an activation."""

    def make(node: Node) -> ElementwiseBinary:
        return ElementwiseBinary(operation, fused_activation(node.options(options_name)))

    return direct(make)


def _additive(operation: BinaryOperation, options_name: str) -> Converter:
    """Converter of ADD or SUB, which say how 16-bit inputs are rescaled."""

    def make(node: Node) -> ElementwiseBinary:
        options = node.options(options_name)
        return ElementwiseBinary(
            operation, fused_activation(options), power_of_two_scales=options.flag("PotScaleInt16")
        )

    return direct(make)


def _binary(operation: BinaryOperation) -> Converter:
    """Converter of a binary operator without options."""
    return direct(ElementwiseBinary(operation))


def _unary(operation: UnaryOperation) -> Converter:
    """Converter of a unary operator."""
    return direct(ElementwiseUnary(operation))


def _comparison(operation: ComparisonOperation) -> Converter:
    """Converter of a comparison."""
    return direct(Comparison(operation))


def _select(node: Node) -> Sequence[Value]:
    """Align a condition of rank 1 with the first axis, as only the older SELECT does."""
    inputs = list(node.inputs)
    condition, data = node.input(0), node.input(1)
    rank = data.info.rank if data is not None else None
    if condition is not None and condition.info.rank == 1 and rank is not None and rank > 1:
        column = Reshape((-1,) + (1,) * (rank - 1))
        inputs[0] = node.network.add(column, condition, name=f"{node.name}:condition")
    return node.layer(Select(), *inputs)


CONVERTERS: ConverterTable = {
    "ADD": _additive(BinaryOperation.ADD, "AddOptions"),
    "SUB": _additive(BinaryOperation.SUB, "SubOptions"),
    "MUL": _fused(BinaryOperation.MUL, "MulOptions"),
    "DIV": _fused(BinaryOperation.DIV, "DivOptions"),
    "MAXIMUM": _binary(BinaryOperation.MAXIMUM),
    "MINIMUM": _binary(BinaryOperation.MINIMUM),
    "POW": _binary(BinaryOperation.POWER),
    "FLOOR_DIV": _binary(BinaryOperation.FLOOR_DIV),
    "FLOOR_MOD": _binary(BinaryOperation.FLOOR_MOD),
    "SQUARED_DIFFERENCE": _binary(BinaryOperation.SQUARED_DIFFERENCE),
    "ABS": _unary(UnaryOperation.ABS),
    "CEIL": _unary(UnaryOperation.CEIL),
    "COS": _unary(UnaryOperation.COS),
    "EXP": _unary(UnaryOperation.EXP),
    "FLOOR": _unary(UnaryOperation.FLOOR),
    "LOG": _unary(UnaryOperation.LOG),
    "LOGICAL_NOT": _unary(UnaryOperation.LOGICAL_NOT),
    "NEG": _unary(UnaryOperation.NEG),
    "ROUND": _unary(UnaryOperation.ROUND),
    "RSQRT": _unary(UnaryOperation.RSQRT),
    "SIN": _unary(UnaryOperation.SIN),
    "SQRT": _unary(UnaryOperation.SQRT),
    "SQUARE": _unary(UnaryOperation.SQUARE),
    "EQUAL": _comparison(ComparisonOperation.EQUAL),
    "NOT_EQUAL": _comparison(ComparisonOperation.NOT_EQUAL),
    "GREATER": _comparison(ComparisonOperation.GREATER),
    "GREATER_EQUAL": _comparison(ComparisonOperation.GREATER_OR_EQUAL),
    "LESS": _comparison(ComparisonOperation.LESS),
    "LESS_EQUAL": _comparison(ComparisonOperation.LESS_OR_EQUAL),
    "LOGICAL_AND": direct(LogicalBinary(LogicalBinaryOperation.LOGICAL_AND)),
    "LOGICAL_OR": direct(LogicalBinary(LogicalBinaryOperation.LOGICAL_OR)),
    "PRELU": direct(Prelu()),
    "SELECT": _select,
    "SELECT_V2": direct(Select()),
}
