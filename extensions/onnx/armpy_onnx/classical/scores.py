"""Conversion of raw scores of classical models to probabilities and labels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from armpy.graph import Value
from armpy.ops.activation_layers import Activation, ActivationFunction, Softmax
from armpy.ops.elementwise import (
    BinaryOperation,
    ComparisonOperation,
    UnaryOperation,
)
from armpy.ops.reduction import ArgMinMax, ArgMinMaxFunction, ReduceOperation
from armpy.types import DataType
from armpy_onnx.blocks import binary, compared, gathered, joined, reduced, selected, unary
from armpy_onnx.node import Node, NodeData

_LEAST_SCORE = 1e-7
_PROBIT = math.pi * 0.147


def transformed(node: Node, scores: Value, word: str | None = None) -> Value:
    """Scores (n, classes) after the transform that the attribute ``post_transform`` names."""
    word = node.text("post_transform", "NONE") if word is None else word
    if word == "NONE":
        return scores
    if word == "LOGISTIC":
        return node.layer(Activation(ActivationFunction.SIGMOID), scores)
    if word == "SOFTMAX":
        return node.layer(Softmax(), scores)
    if word == "SOFTMAX_ZERO":
        return _softmax_zero(node, scores)
    if word == "PROBIT":
        return _probit(node, scores)
    raise node.error(
        "the attribute 'post_transform' has an unknown value",
        expected="NONE, LOGISTIC, SOFTMAX, SOFTMAX_ZERO, PROBIT",
        actual=word,
    )


def _softmax_zero(node: Node, scores: Value) -> Value:
    """Softmax in which scores of 0 stay 0 before they are divided by the sum."""
    best = reduced(node, ReduceOperation.MAX, scores, (1,), True)
    power = unary(node, UnaryOperation.EXP, binary(node, BinaryOperation.SUB, scores, best))
    least = unary(node, UnaryOperation.EXP, unary(node, UnaryOperation.NEG, best))
    small = binary(node, BinaryOperation.MUL, scores, least)
    size = unary(node, UnaryOperation.ABS, scores)
    counts = compared(node, ComparisonOperation.GREATER, size, _LEAST_SCORE)
    parts = selected(node, counts, power, small)
    total = reduced(node, ReduceOperation.SUM, parts, (1,), True)
    is_zero = compared(node, ComparisonOperation.EQUAL, total, 0)
    shares = binary(node, BinaryOperation.DIV, parts, total)
    return selected(node, is_zero, 0.5, shares)


def _probit(node: Node, scores: Value) -> Value:
    """The inverse of the normal distribution's function, as ONNX Runtime approximates it.

    References
    ----------
    S. Winitzki, A handy approximation for the error function and its inverse, 2008.
    """
    value = binary(node, BinaryOperation.SUB, binary(node, BinaryOperation.MUL, scores, 2), 1)
    square = unary(node, UnaryOperation.SQUARE, value)
    log = unary(node, UnaryOperation.LOG, binary(node, BinaryOperation.SUB, 1, square))
    half = binary(node, BinaryOperation.MUL, log, 0.5)
    first = binary(node, BinaryOperation.ADD, half, 2 / _PROBIT)
    second = binary(node, BinaryOperation.MUL, log, 1 / 0.147)
    root = unary(
        node,
        UnaryOperation.SQRT,
        binary(node, BinaryOperation.SUB, unary(node, UnaryOperation.SQUARE, first), second),
    )
    size = unary(node, UnaryOperation.SQRT, binary(node, BinaryOperation.SUB, root, first))
    signed = binary(node, BinaryOperation.MUL, unary(node, UnaryOperation.SIGN, value), size)
    return binary(node, BinaryOperation.MUL, signed, 1.41421356)


Labels: TypeAlias = "tuple[int, ...] | tuple[str, ...]"
"""Labels of classes."""


def class_labels(node: Node, integers: str, strings: str) -> Labels:
    """The labels of classes."""
    labels = node.integers(integers, ()) or node.strings(strings)
    if not labels:
        raise node.error(f"the attribute '{integers}' is missing")
    return labels


def best_labels(node: Node, scores: Value, labels: Labels) -> Value:
    """The label of each row's greatest score, (n,)."""
    best = node.layer(ArgMinMax(ArgMinMaxFunction.MAX, 1, DataType.SIGNED64), scores)
    return looked_up(node, best, labels)


def labels_above(node: Node, scores: Value, limit: float, labels: Labels) -> Value:
    """The second label where the only score is above a limit, else the first, (n,)."""
    is_above = compared(node, ComparisonOperation.GREATER, scores, limit)
    numbers = reduced(
        node, ReduceOperation.MAX, node.cast(is_above, DataType.SIGNED32), (1,), False
    )
    return looked_up(node, numbers, labels)


def label_type(integers: str) -> Callable[[NodeData, Sequence[DataType | None]], DataType]:
    """A rule for the type of a classifier's labels, whose integers are in an attribute."""

    def chosen(data: NodeData, types: Sequence[DataType | None]) -> DataType:
        return DataType.SIGNED64 if data.attribute(integers) else DataType.STRING

    return chosen


def looked_up(node: Node, numbers: Value, labels: Labels) -> Value:
    """The labels of classes by their numbers."""
    is_text = isinstance(labels[0], str)
    constant = node.constant([*labels], DataType.STRING if is_text else DataType.SIGNED64)
    return gathered(node, constant, numbers)


def with_other_class(node: Node, scores: Value, is_share: bool) -> Value:
    """Scores of two classes from that of the second one, (n, 2), transformed.

    Notes
    -----
    ONNX does not say it; as ONNX Runtime does, of all transformations only LOGISTIC counts.
    """
    is_logistic = node.text("post_transform", "NONE") == "LOGISTIC"
    if is_share and not is_logistic:
        other = binary(node, BinaryOperation.SUB, 1, scores)
    else:
        other = unary(node, UnaryOperation.NEG, scores)
    both = joined(node, (other, scores), 1)
    return transformed(node, both) if is_logistic else both
