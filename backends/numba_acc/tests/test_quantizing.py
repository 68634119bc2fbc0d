"""Conversions between data types: the same as CpuRef on every instruction set."""

import numpy as np
import pytest

from armpy import ops
from armpy.ops.operation import Array, Operation
from armpy.tensor import Quantization, TensorInfo
from armpy.testing.tolerance import EXACT
from armpy.types import DataType
from backends.numba_acc.tests.one_layer import check_layer, quantized

F32, S8, U8, BOOL = (
    DataType.FLOAT32,
    DataType.QASYMM_S8,
    DataType.QASYMM_U8,
    DataType.BOOLEAN,
)
I32, I64 = DataType.SIGNED32, DataType.SIGNED64


def check_exactly(
    operation: Operation, values: Array, source: TensorInfo, target: TensorInfo
) -> None:
    """Compare one layer on every instruction set with CpuRef."""
    check_layer(operation, [source], target, EXACT, [values])


@pytest.mark.parametrize("data_type", [S8, U8], ids=lambda t: t.name)
@pytest.mark.parametrize("scale", [0.5, 0.0123, 1.0])
def test_floats_are_quantized_with_halves_away_from_zero(data_type: DataType, scale: float) -> None:
    values = np.concatenate(
        [
            (np.arange(-300, 300) + 0.5) * scale,
            np.random.default_rng(1).normal(size=1000) * 3,
            [np.nan, np.inf, -np.inf, 1e30, -1e30, 0.49999997 * scale],
        ]
    ).astype(np.float32)
    source = TensorInfo(values.shape, F32)
    zero_point = data_type.integer_range[0] + 77
    target = quantized(values.shape, data_type, scale, zero_point)
    check_exactly(ops.Quantize(), values, source, target)


@pytest.mark.parametrize("types", [(S8, U8), (U8, S8), (S8, S8), (U8, U8)], ids=str)
@pytest.mark.parametrize("change", [(1.0, 0), (1.0, 9), (0.5, 0), (2.0, -5), (0.71, 3)])
def test_bytes_are_requantized(types: tuple[DataType, DataType], change: tuple[float, int]) -> None:
    stored = np.arange(256, dtype=np.uint8).view(types[0].dtype)
    lows = [data_type.integer_range[0] for data_type in types]
    source = quantized((256,), types[0], 0.1, lows[0] + 100)
    target = quantized((256,), types[1], 0.1 * change[0], lows[1] + 100 + change[1])
    check_exactly(ops.Quantize(), stored, source, target)


@pytest.mark.parametrize("data_type", [S8, U8, DataType.QSYMM_S8], ids=lambda t: t.name)
def test_bytes_are_dequantized(data_type: DataType) -> None:
    stored = np.arange(256, dtype=np.uint8).view(data_type.dtype)
    zero_point = 0 if data_type is DataType.QSYMM_S8 else data_type.integer_range[0] + 50
    source = quantized((256,), data_type, 0.013, zero_point)
    check_exactly(ops.Dequantize(), stored, source, TensorInfo((256,), F32))


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("data_type", [S8, DataType.QSYMM_S8], ids=lambda t: t.name)
def test_scales_run_along_any_axis(data_type: DataType, axis: int) -> None:
    shape = (3, 5, 19)
    scales = np.random.default_rng(3).uniform(0.001, 1, shape[axis]).astype(np.float32)
    source = TensorInfo(shape, data_type, Quantization.per_axis(scales.tolist(), axis))
    stored = np.random.default_rng(4).integers(-128, 128, shape).astype(np.int8)
    check_exactly(ops.Dequantize(), stored, source, TensorInfo(shape, F32))


def test_wide_integers_are_dequantized_with_one_rounding() -> None:
    stored = np.random.default_rng(2).integers(-(2**31), 2**31, 333).astype(np.int32)
    source = quantized((333,), I32, 0.013, 0)
    check_exactly(ops.Dequantize(), stored, source, TensorInfo((333,), F32))


REALS = np.array(
    [
        *(0, -0.0, 0.5, -0.5, 1.5, -1.5, 254.9, 255.5, 256, -1, 1e-40),
        *(2**31, -(2.0**31), 2.0**31 - 128, 2.0**62, 2.0**63, -(2.0**63)),
        *(1e30, -1e30, np.inf, -np.inf, np.nan),
    ],
    np.float32,
)
INTEGERS = np.array([0, 1, -1, 255, 2**31 - 1, -(2**31), 2**24 + 1, -(2**24) - 1, 12345, 99])
CASTS = [
    (I32, I64),
    (I64, I32),
    (I32, F32),
    (I64, F32),
    (BOOL, F32),
    (BOOL, I32),
    (BOOL, I64),
    (F32, BOOL),
    (I32, BOOL),
    (I64, BOOL),
    (F32, I32),
    (F32, I64),
    (F32, F32),
]


@pytest.mark.parametrize("types", CASTS, ids=str)
def test_casts(types: tuple[DataType, DataType]) -> None:
    values = REALS if types[0] is F32 else INTEGERS
    if types[0] is I64:
        values = np.append(values, [2**40 + 3, -(2**63), 2**63 - 1])
    values = np.tile(values.astype(types[0].dtype), 5)
    infos = [TensorInfo(values.shape, data_type) for data_type in types]
    check_exactly(ops.Cast(), values, *infos)


def test_casts_of_stored_bytes_ignore_the_quantization() -> None:
    stored = np.arange(256, dtype=np.uint8)
    source = quantized((256,), U8, 0.013, 7)
    check_exactly(ops.Cast(), stored, source, TensorInfo((256,), F32))
    check_exactly(ops.Cast(), stored, source, TensorInfo((256,), I32))
    info = TensorInfo(REALS.shape, F32)
    check_exactly(ops.Cast(), REALS, info, quantized(REALS.shape, U8, 0.013, 7))
