"""Operators that are products of matrices."""

from __future__ import annotations

from armpy.frontends.tflite.node import ConverterTable, Node, direct, fused_activation
from armpy.ops.dense import BatchMatMul, FullyConnected

_DEFAULT_FORMAT = {0: None}


def _fully_connected(node: Node) -> FullyConnected:
    options = node.options("FullyConnectedOptions")
    options.choice("WeightsFormat", _DEFAULT_FORMAT, "FullyConnectedOptionsWeightsFormat")
    return FullyConnected(
        fused_activation(options),
        options.flag("KeepNumDims"),
        options.flag("AsymmetricQuantizeInputs"),
    )


def _batch_mat_mul(node: Node) -> BatchMatMul:
    options = node.options("BatchMatMulOptions")
    return BatchMatMul(options.flag("AdjX"), options.flag("AdjY"))


CONVERTERS: ConverterTable = {
    "BATCH_MATMUL": direct(_batch_mat_mul),
    "FULLY_CONNECTED": direct(_fully_connected),
}
