"""Operators without arithmetic: constants, copies, shapes."""

from __future__ import annotations

import math

import numpy as np

from armpy.errors import LayerValidationError
from armpy.graph import Value
from armpy.types import DataType
from armpy_onnx.blocks import reshaped, sizes
from armpy_onnx.element_types import stored
from armpy_onnx.node import Node, Operator, OperatorTable


def _identity(node: Node) -> Value:
    return node.value(0)


def _constant(node: Node) -> Value:
    if node.attribute("value") is not None:
        array, data_type = node.tensor("value")
        return node.constant(array, data_type)
    if node.attribute("sparse_value") is not None:
        array, data_type = node.dense_tensor("sparse_value")
        return node.constant(array, data_type)
    if (texts := node.strings("value_strings")) or node.attribute("value_strings") is not None:
        return node.constant(stored(np.array(texts, object), DataType.STRING), DataType.STRING)
    if node.attribute("value_string") is not None:
        text = np.array(node.text("value_string"), object)
        return node.constant(stored(text, DataType.STRING), DataType.STRING)
    for name, data_type in _CONSTANTS.items():
        value = node.attribute(name)
        if value is not None:
            return node.constant(value, data_type)
    raise LayerValidationError("the constant has no value that is supported", where=node.data.label)


_CONSTANTS = {
    "value_float": DataType.FLOAT32,
    "value_floats": DataType.FLOAT32,
    "value_int": DataType.SIGNED64,
    "value_ints": DataType.SIGNED64,
}


def _shape(node: Node) -> Value:
    shape = node.shape(0)
    start, end = node.integer("start", 0), node.integer("end", len(shape))
    return sizes(node, shape[slice(start, end)])


def _size(node: Node) -> Value:
    return reshaped(node, sizes(node, (math.prod(node.shape(0)),)), ())


OPERATORS: OperatorTable = {
    "Identity": Operator(_identity),
    "Constant": Operator(_constant),
    "Shape": Operator(_shape, types=(DataType.SIGNED64,)),
    "Size": Operator(_size, types=(DataType.SIGNED64,)),
}
