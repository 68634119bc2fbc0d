"""Operators that order elements, or depend on where they stand."""

from __future__ import annotations

import math

from armpy.graph import Value
from armpy.ops.cumulation import Cumulate
from armpy.ops.generation import OneHot
from armpy.ops.operation import require
from armpy.ops.ordering import TopkV2
from armpy.ops.reduction import ArgMinMax, ArgMinMaxFunction, ReduceOperation
from armpy.ops.searching import Unique
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_onnx.blocks import reshaped, transposed
from armpy_onnx.node import Node, Operator, OperatorTable


def _top_k(node: Node) -> tuple[Value, Value]:
    shape = node.shape(0)
    k = node.whole_number(1) if node.version >= 10 else node.integer("k")
    axis = node.axis(node.integer("axis", -1), len(shape))
    # Along the last axis, and back.
    perm = [number for number in range(len(shape)) if number != axis] + [axis]
    value = transposed(node, node.value(0), perm)
    if _is_bfloat16(value):
        value = node.cast(value, DataType.FLOAT32)
    top = TopkV2(k, largest=node.flag("largest", True))
    positions = TensorInfo(None, DataType.SIGNED64)
    values, indices = node.layers(top, [value], [None, positions])
    back = [perm.index(number) for number in range(len(shape))]
    values = node.cast(values, node.type(0))
    return transposed(node, values, back), transposed(node, indices, back)


def _unique(node: Node) -> tuple[Value, ...]:
    attribute = node.attribute("axis")
    axis = None if attribute is None else node.axis(attribute, node.rank(0))
    return node.layers(Unique(axis, node.flag("sorted", True)), [node.value(0)])


def _cumulation(operation: ReduceOperation) -> Operator:
    """Operator that cumulates along an axis."""

    def convert(node: Node) -> Value:
        axis = node.axis(int(node.number(1)), node.rank(0))
        exclusive, reverse = node.flag("exclusive"), node.flag("reverse")
        return node.layer(Cumulate(operation, axis, exclusive, reverse), node.value(0))

    return Operator(convert, decides=(1,))


def _hardmax(node: Node) -> Value:
    value, shape = node.value(0), node.shape(0)
    axis = node.axis(node.integer("axis", 1 if node.version < 13 else -1), len(shape))
    if node.version < 13:  # one axis stands for all that follow
        flat = (math.prod(shape[:axis]), math.prod(shape[axis:]))
        return reshaped(node, _marked(node, reshaped(node, value, flat), 1), shape)
    return _marked(node, value, axis)


def _marked(node: Node, value: Value, axis: int) -> Value:
    """1 where the greatest element along an axis stands, 0 elsewhere."""
    size = value.info.known_shape[axis]
    require(size > 0, "the axis is empty", actual=value.info.known_shape)
    compared = node.cast(value, DataType.FLOAT32) if _is_bfloat16(value) else value
    position = node.layer(ArgMinMax(ArgMinMaxFunction.MAX, axis), compared)
    return node.layer(OneHot(size, axis), position, node.like(value, 1), node.like(value, 0))


def _is_bfloat16(value: Value) -> bool:
    """Return whether elements are stored as bits."""
    return value.info.data_type is DataType.BFLOAT16


OPERATORS: OperatorTable = {
    "TopK": Operator(_top_k, decides=(1,), types=(0, DataType.SIGNED64)),
    "Unique": Operator(_unique, types=(0, DataType.SIGNED64)),
    "CumSum": _cumulation(ReduceOperation.SUM),
    "CumProd": _cumulation(ReduceOperation.PROD),
    "Hardmax": Operator(_hardmax),
}
