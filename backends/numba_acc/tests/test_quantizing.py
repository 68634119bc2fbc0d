"""Conversions between data types: the same as CpuRef on every instruction set."""

import numpy as np
import pytest

from armpy import Network, ops
from armpy.ops.operation import Array, Operation
from armpy.ops.tolerance import EXACT
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType

from .one_layer import check_layer, network_of, quantized
from .support import ISAS, isas_of_this_test, run_compiled, run_reference

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


@pytest.mark.sampled(3)
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


PLAIN = (
    *(F32, DataType.FLOAT16, BOOL, I32, I64),
    *(DataType.UNSIGNED8, DataType.SIGNED8, DataType.UNSIGNED16, DataType.SIGNED16),
)
STORED = (U8, S8, DataType.QSYMM_S16)
REALS = np.array(
    [
        *(0, -0.0, 0.5, -0.5, 1.5, -1.5, 254.9, 255.5, 256, -1, 1e-37),
        *(2**31, -(2.0**31), 2.0**31 - 128, 2.0**62, 2.0**63, -(2.0**63)),
        *(1e30, -1e30, np.inf, -np.inf, np.nan),
    ],
    np.float32,
)
INTEGERS = np.array([0, 1, -1, 255, 2**31 - 1, -(2**31), 2**24 + 1, -(2**24) - 1, 12345, 99])
CASTS = [
    *((source, target) for source in PLAIN for target in PLAIN if source is not target),
    *((source, target) for source in STORED for target in (*PLAIN, *STORED)),
    *((source, target) for source in PLAIN for target in STORED),
    (F32, F32),
]


@pytest.mark.slow
@pytest.mark.sampled(5)
@pytest.mark.parametrize("types", CASTS, ids=lambda pair: "-".join(t.name for t in pair))
def test_casts(types: tuple[DataType, DataType]) -> None:
    if types[0].is_float:
        with np.errstate(over="ignore"):
            values = REALS.astype(types[0].dtype)
    elif types[0] in (I32, I64):
        values = INTEGERS.astype(types[0].dtype)
    else:
        values = np.arange(1 << 16, dtype=np.uint16).astype(types[0].dtype)[-300:]
    if types[0] is I64:
        values = np.append(values, [2**40 + 3, -(2**63), 2**63 - 1])
    infos = [
        quantized(values.shape, data_type, 0.013, 0)
        if data_type.is_quantized
        else TensorInfo((1,), data_type)
        for data_type in types
    ]
    check_exactly(ops.Cast(), values, *(info.with_shape(values.shape) for info in infos))


def test_bfloat16_is_cast_from_and_to_float32_with_all_subnormals() -> None:
    stored = np.arange(1 << 16, dtype=np.uint16)
    rng = np.random.default_rng(5)
    low = rng.choice([0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF], 1 << 16).astype(np.uint32)
    reals = ((stored.astype(np.uint32) << 16) | low).view(np.float32)
    infos = [TensorInfo(stored.shape, kind) for kind in (DataType.BFLOAT16, F32)]
    for values, (source, target) in ((stored, infos), (reals, infos[::-1])):
        network = network_of(ops.Cast(), [source], target)
        expected = run_reference(network, {"x0": values})["y"]
        unsigned = f"u{expected.itemsize}"
        for isa in isas_of_this_test():
            bits = run_compiled(network, {"x0": values}, isa)["y"].view(unsigned)
            np.testing.assert_array_equal(bits, expected.view(unsigned))


@pytest.mark.slow
def test_casts_by_hand() -> None:
    reals = np.array([-1, 255.9, 256, 1e9, -1e9, np.nan, -0.5, 1e-40, -0.0], np.float32)
    integers = np.array([-1, 255, 256, 127, 128, -129, 0], np.int32)
    cases: list[tuple[DataType, DataType, Array, list[int]]] = [
        (F32, DataType.UNSIGNED8, reals, [0, 255, 255, 255, 0, 255, 0, 0, 0]),
        (F32, DataType.SIGNED8, reals, [-1, 127, 127, 127, -128, 127, 0, 0, 0]),
        (F32, BOOL, reals, [1, 1, 1, 1, 1, 1, 1, 1, 0]),
        (I32, DataType.UNSIGNED8, integers, [255, 255, 0, 127, 128, 127, 0]),
        (I32, DataType.SIGNED8, integers, [-1, -1, 0, 127, -128, 127, 0]),
        (I32, U8, integers, [0, 255, 255, 127, 128, 0, 0]),
        (I32, S8, integers, [-1, 127, 127, 127, 127, -128, 0]),
    ]
    for source, target, values, expected in cases:
        info = TensorInfo(values.shape, source)
        output_info = quantized(values.shape, target, 0.5, 3) if target.is_quantized else None
        network = network_of(ops.Cast(), [info], output_info or TensorInfo(values.shape, target))
        got = run_compiled(network, {"x0": values}, ISAS[0])["y"]
        assert got.tolist() == expected, (source, target)


@pytest.mark.parametrize("target", [S8, U8], ids=lambda t: t.name)
def test_casts_within_a_region_see_signed_bytes_as_they_are(target: DataType) -> None:
    stored = np.arange(-128, 128).astype(np.int8)
    network = Network()
    x = network.input("x", quantized((256,), S8, 0.5, 3))
    turned = network.add(ops.ReverseV2(axes=(0,)), x)
    real = network.add(ops.Cast(), turned, output=TensorInfo((256,), F32))
    again = network.add(ops.Cast(), real, output=quantized((256,), target, 0.5, 3))
    network.output("y", network.add(ops.ReverseV2(axes=(0,)), again))
    expected = stored if target is S8 else np.maximum(stored, 0)
    for isa in isas_of_this_test():
        np.testing.assert_array_equal(run_compiled(network, {"x": stored}, isa)["y"], expected)


def test_casts_of_stored_bytes_ignore_the_quantization() -> None:
    stored = np.arange(256, dtype=np.uint8)
    source = quantized((256,), U8, 0.013, 7)
    check_exactly(ops.Cast(), stored, source, TensorInfo((256,), F32))
    check_exactly(ops.Cast(), stored, source, TensorInfo((256,), I32))
    info = TensorInfo(REALS.shape, F32)
    check_exactly(ops.Cast(), REALS, info, quantized(REALS.shape, U8, 0.013, 7))
