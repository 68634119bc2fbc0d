"""Arithmetic on float32 values, a layer for each step."""

from __future__ import annotations

import functools
from collections.abc import Mapping

import numpy as np

from armpy.errors import ParserError
from armpy.graph import Value
from armpy.ops import (
    BinaryOperation,
    Comparison,
    ComparisonOperation,
    ElementwiseBinary,
    ElementwiseUnary,
    LogicalBinary,
    LogicalBinaryOperation,
    Reshape,
    Slice,
    UnaryOperation,
)
from armpy.ops.operation import require
from armpy.plugins.hooks import OperatorParts

_MOST_PIXELS = 1 << 14


def number(parts: OperatorParts, value: float) -> Value:
    """A constant of one float32 number."""
    return parts.constant(np.array(value, np.float32))


def option(options: Mapping[str, object], name: str, most: int = _MOST_PIXELS) -> int:
    """An option that is a size or a number of a landmark.

    Raises ParserError if it is missing or not a whole number from 0 to `most`.
    """
    value = options.get(name)
    if type(value) is not int or not 0 <= value <= most:
        raise ParserError(
            f"the custom option '{name}' cannot be used",
            expected=f"a whole number from 0 to {most}",
            actual=repr(value),
        )
    return value


class Arithmetic:
    """Steps of a calculation; operands broadcast."""

    def __init__(
        self,
        parts: OperatorParts,  # the operator whose layers the steps become
    ) -> None:
        self.parts = parts

    def add(self, lhs: Value, rhs: Value) -> Value:
        """Return ``lhs + rhs``."""
        return self._binary(BinaryOperation.ADD, lhs, rhs)

    def subtract(self, lhs: Value, rhs: Value) -> Value:
        """Return ``lhs - rhs``."""
        return self._binary(BinaryOperation.SUB, lhs, rhs)

    def multiply(self, lhs: Value, rhs: Value) -> Value:
        """Return ``lhs * rhs``."""
        return self._binary(BinaryOperation.MUL, lhs, rhs)

    def angle(self, y: Value, x: Value) -> Value:
        """Return the angle of the point (x, y) in radians."""
        return self._binary(BinaryOperation.ATAN2, y, x)

    def apply(self, operation: UnaryOperation, value: Value) -> Value:
        """Return a function of each element."""
        return self.parts.layer(ElementwiseUnary(operation), value)

    def mixed(self, first: Value, second: Value, share: Value) -> Value:
        """Return ``(1 - share) * first + share * second``."""
        rest = self.subtract(number(self.parts, 1.0), share)
        return self.add(self.multiply(rest, first), self.multiply(share, second))

    def clipped(self, value: Value, most: int) -> Value:
        """Return the elements limited to 0 ... `most`."""
        above = self._binary(BinaryOperation.MAXIMUM, value, number(self.parts, 0.0))
        return self._binary(BinaryOperation.MINIMUM, above, number(self.parts, most))

    def at_least(self, lhs: Value, rhs: Value) -> Value:
        """Return whether ``lhs >= rhs``."""
        return self.parts.layer(Comparison(ComparisonOperation.GREATER_OR_EQUAL), lhs, rhs)

    def all(self, *conditions: Value) -> Value:
        """Return whether all conditions hold."""
        both = LogicalBinary(LogicalBinaryOperation.LOGICAL_AND)
        return functools.reduce(lambda lhs, rhs: self.parts.layer(both, lhs, rhs), conditions)

    def matrix(self, value: Value) -> list[list[Value]]:
        """Return the elements of a transformation matrix, row by row.

        Raises LayerValidationError if it is not one matrix of 4 x 4.
        """
        shape = value.info.known_shape
        require(
            shape in ((1, 4, 4), (4, 4)),
            "the transformation matrix has the wrong shape",
            expected="(1, 4, 4)",
            actual=str(shape),
        )
        flat = self.parts.layer(Reshape((16,)), value)
        return [
            [self.parts.layer(Slice((4 * row + column,), (1,)), flat) for column in range(4)]
            for row in range(2)
        ]

    def _binary(self, operation: BinaryOperation, lhs: Value, rhs: Value) -> Value:
        """Return a function of pairs of elements."""
        return self.parts.layer(ElementwiseBinary(operation), lhs, rhs)
