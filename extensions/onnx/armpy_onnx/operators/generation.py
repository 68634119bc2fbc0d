"""Operators that make tensors: of one number, of steps, with marked positions."""

from __future__ import annotations

import math

import numpy as np

from armpy.graph import SIZE_TYPES, SizesValue, Value
from armpy.ops.elementwise import (
    BinaryOperation,
    ComparisonOperation,
)
from armpy.ops.generation import Fill, OneHot
from armpy.ops.operation import require
from armpy.ops.slicing import Splitter
from armpy.types import DataType
from armpy_onnx.blocks import MOST_PLACES, binary, compared, counted, reshaped, selected
from armpy_onnx.element_types import data_type_of
from armpy_onnx.node import HALVES, Node, NodeData, Operator, OperatorTable

_INDEX = DataType.SIGNED64


def _constant_of_shape(node: Node) -> Value:
    shape = node.ints(0)
    if node.attribute("value") is None:
        value = node.constant(0.0, DataType.FLOAT32)
    else:
        value = node.constant(*node.tensor("value"))
    return node.layer(Fill(shape), value)


def _type_of_value(data: NodeData, types: object) -> DataType:
    """Data type of ConstantOfShape's output."""
    value = data.attribute("value")
    return DataType.FLOAT32 if value is None else data_type_of(value.data_type, data.label)


def _type_of_eye(data: NodeData, types: object) -> DataType:
    """Data type of EyeLike's output."""
    element_type = data.attribute("dtype")
    if element_type is not None:
        return data_type_of(element_type, data.label)
    return types[0]  # type: ignore[index,no-any-return]  # one per input


def _eye_like(node: Node) -> Value:
    require(node.rank(0) == 2, "the input is not a matrix", expected="rank 2", actual=node.shape(0))
    rows, columns = node.shape(0)
    offset = node.integer("k", 0)
    data_type = _type_of_eye(node.data, (node.type(0),))
    marked = _compared(node, ComparisonOperation.EQUAL, rows, columns, offset)
    return node.cast(marked, data_type)


def _compared(
    node: Node, operation: ComparisonOperation, rows: int, columns: int, offset: int
) -> Value:
    """Compare each element's column to its row plus an offset."""
    offset = min(max(offset, -rows), columns)
    row = counted(node, rows, offset)
    column = reshaped(node, counted(node, columns), (1, columns))
    return compared(node, operation, column, reshaped(node, row, (rows, 1)))


def _trilu(node: Node) -> Value:
    shape = node.shape(0)
    require(len(shape) >= 2, "the input is not a matrix", expected="rank 2 or more", actual=shape)
    offset = node.whole_number(1) if node.has(1) else 0
    is_upper = node.flag("upper", True)
    operation = (
        ComparisonOperation.GREATER_OR_EQUAL if is_upper else ComparisonOperation.LESS_OR_EQUAL
    )
    is_inside = _compared(node, operation, shape[-2], shape[-1], offset)
    return selected(node, is_inside, node.value(0), 0)


def _range(node: Node) -> Value:
    data_type = node.type(0)
    positions = _positions(node)
    if positions is not None:
        return positions
    number = node.whole_number if data_type in SIZE_TYPES else node.number
    start, limit, delta = (number(index) for index in range(3))
    require(delta != 0, "the step is 0")
    if data_type.is_float:
        steps_to_limit = (limit - start) / delta
        require(math.isfinite(steps_to_limit), "the range has no end")
        count = max(math.ceil(steps_to_limit), 0)
    else:
        count = max(-((start - limit) // delta), 0)
        if delta == 1 and data_type in SIZE_TYPES:
            return node.cast(counted(node, count, start), data_type)
    # Steps are multiplied, not added up, so that errors do not add up either.
    step_type = DataType.FLOAT32 if data_type in HALVES else data_type
    steps = node.cast(counted(node, count), step_type)
    for operation, operand, nothing in (
        (BinaryOperation.MUL, delta, 1),
        (BinaryOperation.ADD, start, 0),
    ):
        if operand != nothing:
            steps = binary(node, operation, steps, operand)
    return node.cast(steps, data_type)


def _positions(node: Node) -> Value | None:
    """A range from a traced size on, if it has few numbers whatever that is."""
    first = node.value(0)
    if not isinstance(first, SizesValue):
        return None
    start, limit, delta = (node.whole_number(index) for index in range(3))
    count = max(-((start - limit) // delta), 0) if delta else 0
    if not 0 < count <= MOST_PLACES:
        return None
    steps = node.constant(int(delta) * np.arange(int(count)), first.info.data_type)
    return binary(node, BinaryOperation.ADD, steps, reshaped(node, first, ()))


def _one_hot(node: Node) -> Value:
    depth = int(node.number(1))
    indices = node.cast(node.value(0), _INDEX)
    off, on = node.layers(Splitter(axis=0, sizes=(1, 1)), [node.value(2)])
    axis = node.axis(node.integer("axis", -1), node.rank(0) + 1)
    # Indices below 0 count from the end, once.
    above = binary(node, BinaryOperation.ADD, indices, depth)
    is_below = compared(node, ComparisonOperation.LESS, indices, 0)
    indices = selected(node, is_below, above, indices)
    return node.layer(OneHot(depth, axis), indices, on, off)


OPERATORS: OperatorTable = {
    "ConstantOfShape": Operator(_constant_of_shape, decides=(0,), types=(_type_of_value,)),
    "EyeLike": Operator(_eye_like, types=(_type_of_eye,)),
    "Range": Operator(_range, decides=(0, 1, 2)),
    "OneHot": Operator(_one_hot, decides=(1,), types=(2,)),
    "Trilu": Operator(_trilu, decides=(1,)),
}
