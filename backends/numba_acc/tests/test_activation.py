"""Activation functions and normalisations of rows: the same as CpuRef on every instruction set."""

import numpy as np
import pytest
from armpy_numba_acc.passes.support import support

from armpy import ops
from armpy.ops import ActivationFunction
from armpy.ops.operation import Array, Operation
from armpy.ops.tolerance import EXACT, Tolerance
from armpy.tensor import TensorInfo
from armpy.types import DataType

from .one_layer import check_layer, quantized

F32, S8, U8 = DataType.FLOAT32, DataType.QASYMM_S8, DataType.QASYMM_U8

_PARAMETERS = {
    ActivationFunction.TANH: [(1.0, 1.0), (1.7, 0.6)],
    ActivationFunction.LINEAR: [(1.5, -0.3)],
    ActivationFunction.BOUNDED_RELU: [(6.0, 0.0), (1.0, -1.0)],
    ActivationFunction.LEAKY_RELU: [(0.1, 0.0), (-0.2, 0.0)],
    ActivationFunction.ELU: [(1.0, 0.0), (0.5, 0.0)],
}
FUNCTIONS = [
    ops.Activation(function, *parameters)
    for function in ActivationFunction
    for parameters in _PARAMETERS.get(function, [(0.0, 0.0)])
]
FUNCTIONS.append(ops.Activation(ActivationFunction.GELU, approximate=True))

VALUES = np.concatenate(
    [
        np.linspace(-20, 20, 1203),
        np.logspace(-30, 4, 300),
        -np.logspace(-30, 4, 300),
        [0.0, -0.0, np.inf, -np.inf, np.nan],
    ]
).astype(np.float32)


def check(
    operation: Operation,
    values: Array,
    source: TensorInfo,
    target: TensorInfo,
    tolerance: Tolerance | None = None,
) -> None:
    """Compare one layer on every instruction set with CpuRef."""
    check_layer(operation, [source], target, tolerance, [values])


def every_byte(data_type: DataType) -> Array:
    """All elements of an 8-bit type, more than once and in no order."""
    stored = np.random.default_rng(3).permutation(np.arange(1024) % 256).astype(np.uint8)
    return stored.view(data_type.dtype)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("operation", FUNCTIONS, ids=str)
def test_functions_of_floats(operation: ops.Activation) -> None:
    values = VALUES
    if operation.function is ActivationFunction.HARD_SWISH:
        values = values[np.isfinite(values)]
    elif operation.function is ActivationFunction.GELU:
        values = values[values > -np.inf]  # minus infinity times 0
    info = TensorInfo(values.shape, F32)
    check(operation, values, info, info, Tolerance(2e-6, 5 * 2.0**-23))


@pytest.mark.sampled(7)
@pytest.mark.parametrize("operation", FUNCTIONS, ids=str)
def test_bytes_are_exactly_what_the_reference_has(operation: Operation) -> None:
    for data_type in (S8, U8):
        low = data_type.integer_range[0]
        for target in ((1 / 256, 0), (0.043, 30), (0.01, 128), (0.2, 255)):
            source = quantized((1024,), data_type, 0.047, low + 110)
            output = quantized((1024,), data_type, target[0], low + target[1])
            check(operation, every_byte(data_type), source, output, EXACT)


@pytest.mark.parametrize("scale", [0.3, 0.01, 1.5, 1e-4])
def test_quantized_hard_swish_at_all_scales(scale: float) -> None:
    operation = ops.Activation(ActivationFunction.HARD_SWISH)
    source, target = quantized((1024,), S8, scale, -4), quantized((1024,), S8, scale * 0.7, -90)
    check(operation, every_byte(S8), source, target, EXACT)


ROWS = [ops.Softmax(), ops.Softmax(beta=0.3), ops.LogSoftmax(), ops.LogSoftmax(beta=2.0)]
SHAPES = [(1, 1001), (5, 1), (2, 3, 16), (7, 33), (4, 2), (1, 1, 67)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("operation", [*ROWS, ops.L2Normalization()], ids=str)
def test_rows_of_floats(operation: Operation, shape: tuple[int, ...]) -> None:
    values = (np.random.default_rng(5).normal(size=shape) * 8).astype(np.float32)
    info = TensorInfo(shape, F32)
    check(operation, values, info, info)


def test_rows_may_be_followed_by_axes_of_one() -> None:
    values = np.random.default_rng(5).normal(size=(3, 20, 1, 1)).astype(np.float32)
    info = TensorInfo(values.shape, F32)
    check(ops.Softmax(axis=1), values, info, info)


def test_rows_with_large_and_infinite_elements() -> None:
    values = np.full((4, 19), 1e30, np.float32)
    values[1] = -np.inf
    values[1, 3] = 2
    values[2] = np.arange(19) * -300
    values[3] = 88.5
    info = TensorInfo(values.shape, F32)
    check(ops.Softmax(), values, info, info)
    check(ops.LogSoftmax(), values[[0, 2, 3]], info.with_shape((3, 19)), info.with_shape((3, 19)))


@pytest.mark.slow
def test_a_row_of_zeros_is_not_divided_by_zero() -> None:
    info = TensorInfo((2, 19), F32)
    check(ops.L2Normalization(), np.zeros((2, 19), np.float32), info, info)
    source, target = quantized((2, 19), S8, 0.1, 5), quantized((2, 19), S8, 1 / 128, 0)
    check(ops.L2Normalization(), np.full((2, 19), 5, np.int8), source, target)


@pytest.mark.slow
@pytest.mark.sampled(5)
@pytest.mark.parametrize("data_type", [S8, U8], ids=lambda t: t.name)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_rows_of_bytes(shape: tuple[int, ...], data_type: DataType) -> None:
    low, high = data_type.integer_range
    rng = np.random.default_rng(8)
    values = rng.integers(low, high, shape, endpoint=True).astype(data_type.dtype)
    for operation in (*ROWS, ops.L2Normalization()):
        for scale in (0.07, 0.6):
            source = quantized(shape, data_type, scale, low + 100)
            check(operation, values, source, canonical(operation, shape, data_type), EXACT)


@pytest.mark.parametrize("data_type", [S8, U8], ids=lambda t: t.name)
@pytest.mark.parametrize("scale", [0.07, 0.6, 0.0011], ids=str)
def test_all_pairs_of_bytes(scale: float, data_type: DataType) -> None:
    every = np.arange(256, dtype=np.uint8).view(data_type.dtype)
    values = np.stack(np.meshgrid(every, every), -1)
    source = quantized(values.shape, data_type, scale, data_type.integer_range[0] + 100)
    check(ops.Softmax(), values, source, canonical(ops.Softmax(), values.shape, data_type), EXACT)


def canonical(operation: Operation, shape: tuple[int, ...], data_type: DataType) -> TensorInfo:
    """The quantisation that TFLite has for rows."""
    low, high = data_type.integer_range
    if isinstance(operation, ops.LogSoftmax):
        return quantized(shape, data_type, 1 / 16, high)
    if isinstance(operation, ops.L2Normalization):
        return quantized(shape, data_type, 1 / 128, low + 128)
    return quantized(shape, data_type, 1 / 256, low)


@pytest.mark.parametrize("shape", [(5000, 4), (130, 100)], ids=str)
@pytest.mark.parametrize("operation", [*ROWS, ops.L2Normalization()], ids=str)
def test_many_rows_of_nearly_equal_bytes(operation: Operation, shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(2).integers(90, 110, shape).astype(np.uint8)
    source = quantized(values.shape, U8, 0.0798, 98)
    check(operation, values, source, canonical(operation, values.shape, U8), EXACT)


def test_a_logarithm_ends_as_early_as_the_reference_s() -> None:
    # 31 * 2**26 / 2**23 = 248 steps of 1/16 are 15.5; the output reaches to 15.9.
    values = np.tile(np.arange(-128, 128, dtype=np.int8), (3, 1))
    source, output = (quantized(values.shape, S8, 1 / 16, zero) for zero in (13, 127))
    check(ops.LogSoftmax(), values, source, output, EXACT)


@pytest.mark.parametrize("operation", [*ROWS, ops.L2Normalization()], ids=str)
def test_rows_of_bytes_that_the_reference_computes_in_floats_are_refused(
    operation: Operation,
) -> None:
    source, output = quantized((3, 7), S8, 0.07, 13), quantized((3, 7), S8, 0.01, 5)
    assert "with another scale than" in str(support(operation, [source], [output]))
