"""Operators that are products of matrices."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.frontends.tflite.node import (
    BoundOperator,
    ConverterTable,
    flat_bias,
    fused_activation,
    require_no_activation,
)
from armpy.graph import Value
from armpy.ops.dense import BatchMatMul, FullyConnected

_DEFAULT_FORMAT = {0: None}


_TANH, _SIGN_BIT = 4, 5


def _fully_connected(node: BoundOperator) -> Sequence[Value]:
    options = node.options("FullyConnectedOptions")
    options.choice("WeightsFormat", _DEFAULT_FORMAT, "FullyConnectedOptionsWeightsFormat")
    if options.integer("FusedActivationFunction") in (_TANH, _SIGN_BIT):
        require_no_activation(options)
    operation = FullyConnected(
        fused_activation(options),
        options.flag("KeepNumDims"),
        options.flag("AsymmetricQuantizeInputs"),
    )
    return node.layer(operation, *node.inputs[:2], flat_bias(node, 2), *node.inputs[3:])


def _batch_mat_mul(node: BoundOperator) -> Sequence[Value]:
    """Multiply by quantised matrices as by the real numbers that these stand for."""
    options = node.options("BatchMatMulOptions")
    lhs, rhs = node.input(0), node.input(1)
    if lhs is not None and rhs is not None and lhs.info.data_type.is_float:
        rhs = node.as_real(rhs, lhs.info.data_type)
    return node.layer(BatchMatMul(options.flag("AdjX"), options.flag("AdjY")), lhs, rhs)


CONVERTERS: ConverterTable = {
    "BATCH_MATMUL": _batch_mat_mul,
    "FULLY_CONNECTED": _fully_connected,
}
