"""Hashes of elements, as ONNX Runtime defines them."""

from __future__ import annotations

from armpy.graph import Value
from armpy.ops.hashing import MurmurHash3
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_onnx.node import Node, NodeData, Operator, OperatorTable


def _murmur_hash3(node: Node) -> Value:
    # ONNX Runtime takes the seed's lowest 32 bits.
    operation = MurmurHash3(node.integer("seed", 0) % 2**32)
    output = TensorInfo(None, _type_of_hash(node.data, ()))
    return node.layer(operation, node.value(0), output=output)


def _type_of_hash(data: NodeData, types: object) -> DataType:
    """Data type of MurmurHash3's output."""
    is_positive = data.attribute("positive", 1) == 1
    return DataType.UNSIGNED32 if is_positive else DataType.SIGNED32


OPERATORS: OperatorTable = {
    "com.microsoft.MurmurHash3": Operator(_murmur_hash3, types=(_type_of_hash,)),
}
