"""Operators that make one element of many along axes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from armpy.graph import Value
from armpy.ops.elementwise import (
    BinaryOperation,
    UnaryOperation,
)
from armpy.ops.movement import ReverseV2
from armpy.ops.reduction import ArgMinMax, ArgMinMaxFunction, Reduce, ReduceOperation
from armpy.types import DataType
from armpy_onnx.blocks import binary, reshaped, unary
from armpy_onnx.node import HALVES, Node, Operator, OperatorTable

_LOGICAL = {ReduceOperation.MAX: ReduceOperation.ANY, ReduceOperation.MIN: ReduceOperation.ALL}
_AXES_ARE_AN_INPUT = 18
"""The version from which all reductions have their axes as an input."""


class _Reduction:
    """A node's axes, to reduce with as often as needed."""

    def __init__(self, node: Node, inputs_from: int) -> None:
        self._node = node
        rank = node.rank(0)
        axes = node.axes(rank, index=1 if node.version >= inputs_from else None)
        if not axes and not node.flag("noop_with_empty_axes"):
            axes = tuple(range(rank))
        self._axes = axes or ()
        self._keeps = node.flag("keepdims", True)

    def __call__(
        self, operation: ReduceOperation, value: Value, keep_dims: bool | None = None
    ) -> Value:
        keeps = self._keeps if keep_dims is None else keep_dims
        return self._node.layer(Reduce(operation, self._axes, keeps), value)


def _plain(operation: ReduceOperation, inputs_from: int = _AXES_ARE_AN_INPUT) -> Operator:
    def convert(node: Node) -> Value:
        is_logical = node.type(0) is DataType.BOOLEAN
        chosen = _LOGICAL.get(operation, operation) if is_logical else operation
        return _Reduction(node, inputs_from)(chosen, node.value(0))

    return Operator(convert, decides=(1,))


def _composed(compose: Callable[[Node, Value, _Reduction], Value]) -> Operator:
    """Operator of a reduction between functions; halves are computed in FLOAT32."""

    def convert(node: Node) -> Value:
        value = node.value(0)
        wide = DataType.FLOAT32 if node.type(0) in HALVES else None
        composed = compose(node, node.cast(value, wide), _Reduction(node, _AXES_ARE_AN_INPUT))
        return node.cast(composed, node.type(0))

    return Operator(convert, decides=(1,))


def _unary(node: Node, operation: UnaryOperation, value: Value) -> Value:
    """A function of each element; of integers as real numbers where it is not an integer."""
    real = None if value.info.data_type.is_float else DataType.FLOAT64
    if operation in (UnaryOperation.ABS, UnaryOperation.SQUARE):
        real = None
    return unary(node, operation, node.cast(value, real))


def _l1(node: Node, value: Value, reduced: _Reduction) -> Value:
    return reduced(ReduceOperation.SUM, _unary(node, UnaryOperation.ABS, value))


def _sum_square(node: Node, value: Value, reduced: _Reduction) -> Value:
    square = binary(node, BinaryOperation.MUL, value, value)
    return reduced(ReduceOperation.SUM, square)


def _l2(node: Node, value: Value, reduced: _Reduction) -> Value:
    return _unary(node, UnaryOperation.SQRT, _sum_square(node, value, reduced))


def _log_sum(node: Node, value: Value, reduced: _Reduction) -> Value:
    return _unary(node, UnaryOperation.LOG, reduced(ReduceOperation.SUM, value))


def _log_sum_exp(node: Node, value: Value, reduced: _Reduction) -> Value:
    if value.info.data_type.dtype.kind != "f":  # integers, and small floats, which are bits
        value = node.cast(value, DataType.FLOAT64)
    # Less their greatest, which is finite here, numbers do not leave the range.
    limits = np.finfo(value.info.data_type.dtype)  # type: ignore[type-var]  # a float
    peak = reduced(ReduceOperation.MAX, value, keep_dims=True)
    for operation, limit in (
        (BinaryOperation.MAXIMUM, limits.min),
        (BinaryOperation.MINIMUM, limits.max),
    ):
        peak = binary(node, operation, peak, node.like(value, limit))
    shifted = binary(node, BinaryOperation.SUB, value, peak)
    powers = _unary(node, UnaryOperation.EXP, shifted)
    logarithm = _unary(node, UnaryOperation.LOG, reduced(ReduceOperation.SUM, powers))
    # Reducing one number per slice takes its axes off.
    peak = reduced(ReduceOperation.MAX, peak)
    return binary(node, BinaryOperation.ADD, logarithm, peak)


def _extreme(function: ArgMinMaxFunction) -> Operator:
    """Operator that finds a position."""

    def convert(node: Node) -> Value:
        value, shape = node.value(0), node.shape(0)
        if node.type(0) is DataType.BFLOAT16:
            value = node.cast(value, DataType.FLOAT32)
        axis = node.axis(node.integer("axis", 0), len(shape))
        takes_last = node.flag("select_last_index")
        if takes_last:
            value = node.layer(ReverseV2((axis,)), value)
        position = node.layer(ArgMinMax(function, axis, DataType.SIGNED64), value)
        if takes_last:
            last = node.constant(shape[axis] - 1, DataType.SIGNED64)
            position = binary(node, BinaryOperation.SUB, last, position)
        if node.flag("keepdims", True):
            position = reshaped(node, position, (*shape[:axis], 1, *shape[axis + 1 :]))
        return position

    return Operator(convert, types=(DataType.SIGNED64,))


OPERATORS: OperatorTable = {
    "ReduceSum": _plain(ReduceOperation.SUM, 13),
    "ReduceMean": _plain(ReduceOperation.MEAN),
    "ReduceMax": _plain(ReduceOperation.MAX),
    "ReduceMin": _plain(ReduceOperation.MIN),
    "ReduceProd": _plain(ReduceOperation.PROD),
    "ReduceL1": _composed(_l1),
    "ReduceL2": _composed(_l2),
    "ReduceSumSquare": _composed(_sum_square),
    "ReduceLogSum": _composed(_log_sum),
    "ReduceLogSumExp": _composed(_log_sum_exp),
    "ArgMax": _extreme(ArgMinMaxFunction.MAX),
    "ArgMin": _extreme(ArgMinMaxFunction.MIN),
}
