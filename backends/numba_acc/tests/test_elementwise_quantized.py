"""Elementwise operations on 8-bit tensors: as CpuRef on every instruction set."""

import numpy as np
import pytest

from armpy import ops
from armpy.ops.tolerance import Tolerance
from armpy.types import DataType

from .one_layer import (
    BROADCASTS,
    QUANTIZED_OPERATIONS,
    check_layer,
    quantized,
)

S8, U8 = DataType.QASYMM_S8, DataType.QASYMM_U8


@pytest.mark.parametrize("shapes", BROADCASTS[:6], ids=str)
def test_quantized_inputs_broadcast_in_any_way(
    shapes: tuple[tuple[int, ...], tuple[int, ...]],
) -> None:
    operation = ops.ElementwiseBinary(ops.BinaryOperation.ADD)
    infos = [quantized(shapes[0], S8, 0.11, -3), quantized(shapes[1], S8, 0.07, 20)]
    check_layer(operation, infos, quantized(None, S8, 0.15, 4))


@pytest.mark.sampled(5)
@pytest.mark.parametrize("data_type", [S8, U8], ids=lambda t: t.name)
@pytest.mark.parametrize("operation", QUANTIZED_OPERATIONS, ids=lambda o: o.name)
def test_binary_operations_of_all_pairs_of_bytes(
    operation: ops.BinaryOperation, data_type: DataType
) -> None:
    low = data_type.integer_range[0]
    every = np.arange(256).astype(data_type.dtype if low == 0 else np.uint8).view(data_type.dtype)
    infos = [
        quantized((256, 1), data_type, 0.02, low + 3),
        quantized((1, 256), data_type, 0.011, low + 70),
    ]
    output = quantized(None, data_type, 0.03, low + 100)
    operands = [every.reshape(256, 1), every.reshape(1, 256)]
    check_layer(ops.ElementwiseBinary(operation), infos, output, given=operands)


@pytest.mark.parametrize(
    "operation", [ops.BinaryOperation.MAXIMUM, ops.BinaryOperation.MINIMUM], ids=lambda o: o.name
)
def test_bytes_of_one_quantization_are_chosen_exactly(operation: ops.BinaryOperation) -> None:
    info = quantized((5, 77), S8, 0.02, 3)
    check_layer(ops.ElementwiseBinary(operation), [info, info], info, Tolerance())


EXACT_OPERATIONS = [ops.BinaryOperation.MUL, ops.BinaryOperation.SQUARED_DIFFERENCE]


@pytest.mark.parametrize("operation", EXACT_OPERATIONS, ids=lambda o: o.name)
@pytest.mark.parametrize("data_type", [S8, U8], ids=lambda t: t.name)
@pytest.mark.parametrize("scale", [0.004, 0.0011, 0.02, 2e-5, 3.0], ids=str)
def test_products_and_squares_of_all_pairs_of_bytes_are_exact(
    operation: ops.BinaryOperation, data_type: DataType, scale: float
) -> None:
    low = data_type.integer_range[0]
    every = np.arange(256, dtype=np.uint8).view(data_type.dtype)
    infos = [
        quantized((256, 1), data_type, 0.02, low + 3),
        quantized((1, 256), data_type, 0.0107, low + 170),
    ]
    operands = [every.reshape(256, 1), every.reshape(1, 256)]
    output = quantized(None, data_type, scale, low + 100)
    check_layer(ops.ElementwiseBinary(operation), infos, output, Tolerance(), operands)
    clamped = ops.ElementwiseBinary(operation, activation=ops.FusedActivation.RELU6)
    check_layer(clamped, infos, output, Tolerance(), operands)


SUMS = [ops.BinaryOperation.ADD, ops.BinaryOperation.SUB]


@pytest.mark.parametrize("operation", SUMS, ids=lambda o: o.name)
@pytest.mark.parametrize("data_type", [S8, U8], ids=lambda t: t.name)
@pytest.mark.parametrize(
    "scales",
    [
        (0.0249102, 0.0163558, 0.0320307),
        (0.0308143, 0.000875602, 0.0307147),
        (0.5, 0.25, 1.0),
        (0.013, 0.011, 0.0021),
        (1.0, 1e-4, 0.3),
        (0.7, 0.7, 0.0005),
        (0.0199, 0.0107, 0.01),
    ],
    ids=str,
)
def test_sums_of_all_pairs_of_bytes_are_exact(
    operation: ops.BinaryOperation, data_type: DataType, scales: tuple[float, float, float]
) -> None:
    low = data_type.integer_range[0]
    every = np.arange(256, dtype=np.uint8).view(data_type.dtype)
    infos = [
        quantized((256, 1), data_type, scales[0], low + 129),
        quantized((1, 256), data_type, scales[1], low + 110),
    ]
    operands = [every.reshape(256, 1), every.reshape(1, 256)]
    output = quantized(None, data_type, scales[2], low + 117)
    for activation in (ops.FusedActivation.NONE, ops.FusedActivation.RELU6):
        layer = ops.ElementwiseBinary(operation, activation=activation)
        check_layer(layer, infos, output, Tolerance(), operands)


@pytest.mark.parametrize("data_type", [S8, U8], ids=lambda t: t.name)
@pytest.mark.parametrize("scales", [(8.8e-6, 0.113), (1.0, 0.004), (0.5, 1e-3), (33.0, 0.7)])
def test_reciprocal_roots_are_exact(data_type: DataType, scales: tuple[float, float]) -> None:
    low = data_type.integer_range[0]
    every = np.arange(256, dtype=np.uint8).view(data_type.dtype)
    info = quantized((256,), data_type, scales[0], low)
    output = quantized(None, data_type, scales[1], low)
    operation = ops.ElementwiseUnary(ops.UnaryOperation.RSQRT)
    check_layer(operation, [info], output, Tolerance(), [every])
