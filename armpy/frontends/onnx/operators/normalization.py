"""Operators that normalise."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.frontends.onnx.images import reshaped
from armpy.frontends.onnx.node import Node, Operator, OperatorTable
from armpy.graph import Value
from armpy.ops.elementwise import (
    BinaryOperation,
    ElementwiseBinary,
    ElementwiseUnary,
    UnaryOperation,
)
from armpy.ops.reduction import Reduce, ReduceOperation


def _combine(node: Node, operation: BinaryOperation, lhs: Value, rhs: Value) -> Value:
    """Two values element by element."""
    return node.layer(ElementwiseBinary(operation), lhs, rhs)


def _add(node: Node, lhs: Value, rhs: Value) -> Value:
    return _combine(node, BinaryOperation.ADD, lhs, rhs)


def _sub(node: Node, lhs: Value, rhs: Value) -> Value:
    return _combine(node, BinaryOperation.SUB, lhs, rhs)


def _mul(node: Node, lhs: Value, rhs: Value) -> Value:
    return _combine(node, BinaryOperation.MUL, lhs, rhs)


def _per_channel(node: Node, value: Value, like: Value) -> Value:
    """A vector with one element per channel in the shape that broadcasts to channels first."""
    shape = value.info.known_shape
    channels = like.info.known_shape[1]
    if shape != (channels,):
        raise node.error(
            "there is not one element per channel", expected=f"({channels})", actual=shape
        )
    column = reshaped(node, value, (channels, *(1,) * (len(like.info.known_shape) - 2)))
    return node.cast(column, like.info.data_type)


def _batch_normalization(node: Node) -> Value | Sequence[Value]:
    image = node.value(0)
    if node.rank(0) < 2:
        raise node.error("the input has the wrong rank", expected="2 or more", actual=node.shape(0))
    if not node.flag("spatial", default=True):
        raise node.error("only statistics per channel are supported (spatial = 1)")
    if node.flag("training_mode"):
        return _training(node, image)
    mean, variance = (_per_channel(node, node.value(i), image) for i in (3, 4))
    return _normalized(node, image, mean, variance)


def _normalized(node: Node, image: Value, mean: Value, variance: Value) -> Value:
    """Scaled and moved as inputs 1 and 2 say; one factor and one addend per channel."""
    gamma, beta = (_per_channel(node, node.value(i), image) for i in (1, 2))
    shifted = _add(node, variance, node.like(image, node.real("epsilon", 1e-5)))
    root = node.layer(ElementwiseUnary(UnaryOperation.SQRT), shifted)
    factor = _combine(node, BinaryOperation.DIV, gamma, root)
    addend = _sub(node, beta, _mul(node, mean, factor))
    return _add(node, _mul(node, image, factor), addend)


def _training(node: Node, image: Value) -> Sequence[Value]:
    """With the statistics of the input; running ones are further outputs."""
    axes = (0, *range(2, node.rank(0)))
    mean = node.layer(Reduce(ReduceOperation.MEAN, axes, keep_dims=True), image)
    square = node.layer(ElementwiseUnary(UnaryOperation.SQUARE), _sub(node, image, mean))
    variance = node.layer(Reduce(ReduceOperation.MEAN, axes, keep_dims=True), square)
    share = node.real("momentum", 0.9)
    outputs = [_normalized(node, image, mean, variance)]
    for index, current in ((3, mean), (4, variance)):
        old = node.value(index)
        flat = node.cast(reshaped(node, current, old.info.known_shape), old.info.data_type)
        kept = _mul(node, old, node.like(old, share))
        outputs.append(_add(node, kept, _mul(node, flat, node.like(old, 1 - share))))
    return outputs[: node.data.num_outputs]


OPERATORS: OperatorTable = {
    "BatchNormalization": Operator(_batch_normalization, types=(0, 3, 4)),
}
