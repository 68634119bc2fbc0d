"""Layers that many converters add."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.frontends.onnx.node import Node
from armpy.graph import Value
from armpy.ops.elementwise import BinaryOperation, ElementwiseBinary
from armpy.ops.movement import Transpose
from armpy.ops.reshaping import Reshape


def reshaped(node: Node, value: Value, shape: Sequence[int]) -> Value:
    """A value in another shape; itself if it has that one."""
    target = tuple(shape)
    return value if value.info.known_shape == target else node.layer(Reshape(target), value)


def transposed(node: Node, value: Value, permutation: Sequence[int]) -> Value:
    """A value with its axes in another order; itself if that is the one they are in."""
    order = tuple(permutation)
    return value if order == tuple(range(len(order))) else node.layer(Transpose(order), value)


def scaled(node: Node, value: Value, factor: float) -> Value:
    """A value multiplied by a number; itself if that is 1."""
    return value if factor == 1 else binary(node, BinaryOperation.MUL, value, factor)


def binary(node: Node, operation: BinaryOperation, lhs: Value | float, rhs: Value | float) -> Value:
    """A binary operation of two values, one of which may be a number of the other's type."""
    if not isinstance(lhs, Value):
        assert isinstance(rhs, Value)  # as there are no layers of numbers alone
        lhs = node.like(rhs, lhs)
    elif not isinstance(rhs, Value):
        rhs = node.like(lhs, rhs)
    return node.layer(ElementwiseBinary(operation), lhs, rhs)
