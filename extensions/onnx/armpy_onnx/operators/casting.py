"""Operators that convert elements, or read their bits anew."""

from __future__ import annotations

from collections.abc import Sequence

import onnx

from armpy.graph import Value
from armpy.ops.quantizing import BitCast, Cast
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_onnx.element_types import data_type_of
from armpy_onnx.node import Node, NodeData, Operator, OperatorTable


def target_type(data: NodeData, types: Sequence[DataType | None] = ()) -> DataType:
    """The data type that the attribute ``to`` says; the first operator sets have its name."""
    number = data.attribute("to")
    if isinstance(number, str):
        number = onnx.TensorProto.DataType.DESCRIPTOR.values_by_name.get(number.upper())
        number = None if number is None else number.number
    if not isinstance(number, int):
        raise data.error("the attribute 'to' is not a data type", actual=data.attribute("to"))
    return data_type_of(number, data.label)


def _cast(node: Node) -> Value:
    return _converted(node, target_type(node.data))


def _cast_like(node: Node) -> Value:
    return _converted(node, node.type(1))


def _converted(node: Node, data_type: DataType) -> Value:
    """Elements of another type; floats that a small type cannot hold as the node says."""
    operation = Cast(node.flag("saturate", True), node.text("round_mode", "up"))
    if not data_type.is_bit_pattern:
        operation = Cast()
    elif data_type is not DataType.FLOAT8_E8M0:
        operation = Cast(operation.saturate)
    source = node.type(0)
    if source is data_type:
        return node.value(0)
    return node.layer(operation, node.value(0), output=TensorInfo(None, data_type))


def _bit_cast(node: Node) -> Value:
    """The same bits as elements of another type, of the same number of bits."""
    source, target = node.type(0), target_type(node.data)
    if source.bits != target.bits:
        raise node.error(
            "the types have different numbers of bits",
            expected=f"one of {source.bits} bits, as {source.name}",
            actual=target.name,
        )
    return node.layer(BitCast(target), node.value(0))


OPERATORS: OperatorTable = {
    "BitCast": Operator(_bit_cast, types=(target_type,)),
    "Cast": Operator(_cast, types=(target_type,), needs_shapes=False),
    "CastLike": Operator(_cast_like, types=(1,)),
}
