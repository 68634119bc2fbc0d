"""Operators of two and more tensors that compute element by element."""

from __future__ import annotations

import numpy as np

from armpy.graph import Value
from armpy.ops.elementwise import (
    INTEGER_TYPES,
    BinaryOperation,
    Comparison,
    ComparisonOperation,
    ElementwiseBinary,
    LogicalBinary,
    LogicalBinaryOperation,
    Prelu,
    UnaryOperation,
)
from armpy.ops.operation import Operation
from armpy.ops.reshaping import Reshape
from armpy.types import DataType
from armpy_onnx.blocks import binary, compared, readable, selected, unary
from armpy_onnx.node import Node, Operator, OperatorTable


def _pair(node: Node) -> tuple[Value, Value]:
    """Both inputs; before operator set 7 the second one only broadcasts if the node says so."""
    lhs, rhs = node.value(0), node.value(1)
    if node.version >= 7:
        return lhs, rhs
    shapes = node.shape(0), node.shape(1)
    if not node.flag("broadcast"):
        if shapes[0] != shapes[1]:
            raise node.error("shapes differ", expected=str(shapes[0]), actual=shapes[1])
        return lhs, rhs
    axis = node.attribute("axis")
    if axis is None:
        return lhs, rhs
    start = node.axis(node.integer("axis"), len(shapes[0]))
    num_trailing = len(shapes[0]) - start - len(shapes[1])
    if num_trailing < 0:
        raise node.error("the second input has too many axes", actual=shapes[1])
    return lhs, node.layer(Reshape((*shapes[1], *(1,) * num_trailing)), rhs)


def _binary(operation: Operation, *types: DataType) -> Operator:
    """Operator of two tensors that broadcast."""

    def convert(node: Node) -> Value:
        pair = _pair(node)
        if not all(value.is_constant for value in pair):  # else the result is a constant, too
            pair = readable(node, pair[0]), readable(node, pair[1])
        return node.layer(operation, *pair)

    return Operator(convert, types=types or (0,))


def _arithmetic(operation: BinaryOperation) -> Operator:
    """Arithmetic that every numeric type has."""
    return _binary(ElementwiseBinary(operation))


def _comparison(operation: ComparisonOperation) -> Operator:
    return _binary(Comparison(operation), DataType.BOOLEAN)


def _logic(operation: LogicalBinaryOperation) -> Operator:
    """Operator of two truth values."""
    return _binary(LogicalBinary(operation), DataType.BOOLEAN)


def _variadic(operation: BinaryOperation) -> Operator:
    """Operator of any number of tensors that broadcast."""

    def convert(node: Node) -> Value:
        return _combined(node, ElementwiseBinary(operation))

    return Operator(convert, rounds_once=operation is BinaryOperation.ADD)


def _combined(node: Node, operation: Operation) -> Value:
    """All inputs, one after the other."""
    total = node.value(0)
    for value in node.values[1:]:
        total = node.layer(operation, total, value)
    return total


def _mean(node: Node) -> Value:
    """The sum of all inputs, divided by how many there are."""
    total = _combined(node, ElementwiseBinary(BinaryOperation.ADD))
    if len(node.values) == 1:
        return total
    return binary(node, BinaryOperation.DIV, total, len(node.values))


def _power(node: Node) -> Value:
    """A power; the exponent may be of another type, the result is of the base's."""
    base, exponent = _pair(node)
    data_type = base.info.data_type
    if data_type.is_float:
        return binary(node, BinaryOperation.POWER, base, node.cast(exponent, data_type))
    if not exponent.info.data_type.is_float:
        wide = [node.cast(operand, DataType.SIGNED64) for operand in (base, exponent)]
        return node.cast(binary(node, BinaryOperation.POWER, *wide), data_type)
    wide = [node.cast(operand, DataType.FLOAT64) for operand in (base, exponent)]
    return node.cast(binary(node, BinaryOperation.POWER, *wide), data_type)


def _modulo(node: Node) -> Value:
    """The rest of a division, of the divisor's sign or, with ``fmod``, of the dividend's."""
    operation = BinaryOperation.TRUNC_MOD if node.flag("fmod") else BinaryOperation.FLOOR_MOD
    return binary(node, operation, node.value(0), node.value(1))


def _bit_shift(node: Node) -> Value:
    """Bits moved to one side."""
    directions = {"LEFT": BinaryOperation.SHIFT_LEFT, "RIGHT": BinaryOperation.SHIFT_RIGHT}
    direction = node.text("direction")
    if direction not in directions:
        raise node.error(
            "the attribute 'direction' has an unknown value",
            expected="LEFT or RIGHT",
            actual=direction,
        )
    return binary(node, directions[direction], node.value(0), node.value(1))


def _where(node: Node) -> Value:
    return selected(node, node.value(0), node.value(1), node.value(2))


def _prelu(node: Node) -> Value:
    """Slopes per channel, the second axis, before operator set 7."""
    value, slope = node.value(0), node.value(1)
    rank = node.rank(0)
    if node.version < 7 and node.rank(1) == 1 and rank > 2 and node.shape(1) != (1,):
        slope = node.layer(Reshape((*node.shape(1), *(1,) * (rank - 2))), slope)
    if value.info.data_type in INTEGER_TYPES:
        zero = node.like(value, value.info.data_type.zeros(()))
        is_above = compared(node, ComparisonOperation.GREATER_OR_EQUAL, value, zero)
        below = binary(node, BinaryOperation.MUL, value, slope)
        return selected(node, is_above, value, below)
    return node.layer(Prelu(), value, slope)


def _is_nan(node: Node) -> Value:
    """Return the elements that differ from themselves."""
    return compared(node, ComparisonOperation.NOT_EQUAL, _comparable(node), _comparable(node))


def _is_infinite(node: Node) -> Value:
    """Infinities of both signs, or of one."""
    value = _comparable(node)
    both = node.flag("detect_positive", True), node.flag("detect_negative", True)
    if both == (False, False):
        # No number is greater than infinity.
        return compared(node, ComparisonOperation.GREATER, value, np.inf)
    if both == (True, True):
        value = unary(node, UnaryOperation.ABS, value)
    return compared(node, ComparisonOperation.EQUAL, value, np.inf if both[0] else -np.inf)


def _comparable(node: Node) -> Value:
    """The input, floats that cannot be compared as float32."""
    is_small = node.type(0).is_bit_pattern
    return node.cast(node.value(0), DataType.FLOAT32 if is_small else None)


OPERATORS: OperatorTable = {
    "Add": _arithmetic(BinaryOperation.ADD),
    "Sub": _arithmetic(BinaryOperation.SUB),
    "Mul": _arithmetic(BinaryOperation.MUL),
    "Div": _arithmetic(BinaryOperation.DIV),
    "Pow": Operator(_power),
    "Mod": Operator(_modulo),
    "Max": _variadic(BinaryOperation.MAXIMUM),
    "Min": _variadic(BinaryOperation.MINIMUM),
    "Sum": _variadic(BinaryOperation.ADD),
    "Mean": Operator(_mean, rounds_once=True),
    "Equal": _comparison(ComparisonOperation.EQUAL),
    "Greater": _comparison(ComparisonOperation.GREATER),
    "GreaterOrEqual": _comparison(ComparisonOperation.GREATER_OR_EQUAL),
    "Less": _comparison(ComparisonOperation.LESS),
    "LessOrEqual": _comparison(ComparisonOperation.LESS_OR_EQUAL),
    "And": _logic(LogicalBinaryOperation.LOGICAL_AND),
    "Or": _logic(LogicalBinaryOperation.LOGICAL_OR),
    "Xor": _logic(LogicalBinaryOperation.LOGICAL_XOR),
    "BitwiseAnd": _arithmetic(BinaryOperation.BITWISE_AND),
    "BitwiseOr": _arithmetic(BinaryOperation.BITWISE_OR),
    "BitwiseXor": _arithmetic(BinaryOperation.BITWISE_XOR),
    "BitShift": Operator(_bit_shift),
    "Where": Operator(_where, types=(1,)),
    "PRelu": Operator(_prelu),
    "IsNaN": Operator(_is_nan, types=(DataType.BOOLEAN,)),
    "IsInf": Operator(_is_infinite, types=(DataType.BOOLEAN,)),
}
