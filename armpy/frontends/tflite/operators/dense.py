"""Operators that are products of matrices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.frontends.tflite.composed import ComposedOperator, composed
from armpy.frontends.tflite.node import (
    BoundOperator,
    ConverterTable,
    flat_bias,
    fused_activation,
    require_no_activation,
)
from armpy.graph import Value
from armpy.ops.activations import FusedActivation
from armpy.ops.dense import BatchMatMul, BlockwiseFullyConnected, FullyConnected
from armpy.ops.elementwise import ElementwiseBinary
from armpy.ops.quantizing import Cast
from armpy.ops.reshaping import Reshape
from armpy.tensor import TensorInfo
from armpy.types import DataType

_DEFAULT_FORMAT = {0: None}


_TANH, _SIGN_BIT = 4, 5


def _fully_connected(node: BoundOperator) -> Sequence[Value]:
    options = node.options("FullyConnectedOptions")
    options.choice("WeightsFormat", _DEFAULT_FORMAT, "FullyConnectedOptionsWeightsFormat")
    if options.integer("FusedActivationFunction") in (_TANH, _SIGN_BIT):
        require_no_activation(options)
    if len(node.inputs) > 1 and node.block_scales[1] is not None:
        return _of_blocks(node, fused_activation(options), options.flag("KeepNumDims"))
    operation = FullyConnected(
        fused_activation(options),
        options.flag("KeepNumDims"),
        options.flag("AsymmetricQuantizeInputs"),
    )
    return node.layer(operation, *node.inputs[:2], flat_bias(node, 2), *node.inputs[3:])


def _of_blocks(
    node: BoundOperator, activation: FusedActivation, keep_num_dims: bool
) -> Sequence[Value]:
    """Multiply by constant weights that have a scale for each block of a row."""
    weights, scales = node.input(1), node.block_scales[1]
    assert weights is not None  # as it has scales
    assert scales is not None  # as the caller has seen
    if weights.data is None or scales.data is None or weights.data.ndim != 2:
        raise node.error("weights with scales of blocks have to be constant matrices")
    (units, depth), count = weights.data.shape, scales.data.size
    if not count or count % units or depth % (count // units):
        raise node.error(
            "the scales do not divide the rows of the weights into blocks",
            expected=f"a divisor of {depth} for each of {units} rows",
            actual=f"{count} scales",
        )
    blocks = count // units
    numbers = weights.data.view(np.uint8) ^ 0x80  # from the middle of their range
    numbers = numbers.reshape(units, blocks, depth // blocks)
    factors = scales.data.astype(np.float32).reshape(units, blocks)

    def expand(parts: ComposedOperator) -> Value:
        rows = parts.value(0)
        if not keep_num_dims:
            rows = parts.layer(Reshape((-1, depth)), rows)
        bias = parts.value(2) if parts.has(2) else None
        product = parts.layer(
            BlockwiseFullyConnected(8),
            rows,
            parts.constant(numbers),
            parts.constant(factors),
            None,
            bias,
        )
        if activation is FusedActivation.NONE:
            return product
        return parts.layer(
            ElementwiseBinary(activation=activation), product, parts.like(product, 0)
        )

    return composed(node, expand)


def _batch_mat_mul(node: BoundOperator) -> Sequence[Value]:
    """Multiply by quantised matrices as by numbers of the type of the left matrix."""
    options = node.options("BatchMatMulOptions")
    lhs, rhs = node.input(0), node.input(1)
    if lhs is not None and rhs is not None:
        if lhs.info.data_type.is_float:
            rhs = node.as_real(rhs, lhs.info.data_type)
        elif lhs.info.data_type is DataType.QSYMM_S16:
            rhs = _widened(node, rhs)
    return node.layer(BatchMatMul(options.flag("AdjX"), options.flag("AdjY")), lhs, rhs)


def _widened(node: BoundOperator, value: Value) -> Value:
    """Symmetric numbers of 8 bits with one scale as those of 16 bits; others as they are."""
    info = value.info
    if info.data_type is not DataType.QASYMM_S8 or info.zero_point:
        return value
    wide = TensorInfo(info.shape, DataType.QSYMM_S16, info.quantization)
    name = f"{node.name}:wide_{value.name}"
    return node.network.add_layer(Cast(), [value], name=name, outputs=[wide]).outputs[0]


CONVERTERS: ConverterTable = {
    "BATCH_MATMUL": _batch_mat_mul,
    "FULLY_CONNECTED": _fully_connected,
}
