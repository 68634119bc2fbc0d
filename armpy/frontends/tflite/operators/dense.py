"""Operators that are products of matrices."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.frontends.tflite.node import ConverterTable, Node, direct, fused_activation
from armpy.graph import Value
from armpy.ops.dense import BatchMatMul, FullyConnected
from armpy.ops.quantizing import Cast, Dequantize
from armpy.tensor import TensorInfo
from armpy.types import DataType

_DEFAULT_FORMAT = {0: None}


def _fully_connected(node: Node) -> FullyConnected:
    options = node.options("FullyConnectedOptions")
    options.choice("WeightsFormat", _DEFAULT_FORMAT, "FullyConnectedOptionsWeightsFormat")
    return FullyConnected(
        fused_activation(options),
        options.flag("KeepNumDims"),
        options.flag("AsymmetricQuantizeInputs"),
    )


def _batch_mat_mul(node: Node) -> Sequence[Value]:
    """Multiply by quantised matrices as by the real numbers that these stand for."""
    options = node.options("BatchMatMulOptions")
    lhs, rhs = node.input(0), node.input(1)
    if lhs is not None and rhs is not None and lhs.info.data_type.is_float:
        rhs = as_real(node, rhs, lhs.info.data_type)
    return node.layer(BatchMatMul(options.flag("AdjX"), options.flag("AdjY")), lhs, rhs)


def as_real(node: Node, value: Value, data_type: DataType) -> Value:
    """A value as floats of a type; itself if it is of that type already."""
    given = value.info.data_type
    if given is data_type:
        return value
    operation = Dequantize() if given.is_quantized else Cast()
    layer = node.network.add_layer(
        operation,
        [value],
        name=f"{node.name}:real_{value.name}",
        outputs=[TensorInfo(value.info.shape, data_type)],
    )
    return layer.outputs[0]


CONVERTERS: ConverterTable = {
    "BATCH_MATMUL": _batch_mat_mul,
    "FULLY_CONNECTED": direct(_fully_connected),
}
