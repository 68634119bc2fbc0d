"""Quantization.quantize and dequantize, by TensorFlow Lite's rules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from armpy import DataType, Quantization, TensorInfo
from armpy.errors import InvalidArgumentError
from armpy.execution import TensorSpec
from armpy.tensor import Shape

HALF = Quantization.per_tensor(0.5, 3)


@pytest.mark.parametrize(
    ("data_type", "expected"),
    [  # by hand: halves go away from zero, and what is too large saturates
        (DataType.QASYMM_S8, [3, 4, 2, 5, 127, -128]),
        (DataType.QASYMM_U8, [3, 4, 2, 5, 255, 0]),
        (DataType.QSYMM_S16, [3, 4, 2, 5, 2003, -1997]),
        (DataType.SIGNED32, [3, 4, 2, 5, 2003, -1997]),
    ],
)
def test_numbers_are_rounded_away_from_zero_and_saturated(
    data_type: DataType, expected: list[int]
) -> None:
    stored = HALF.quantize([0.0, 0.25, -0.25, 0.75, 1000.0, -1000.0], data_type)
    assert stored.dtype == data_type.dtype
    assert stored.tolist() == expected


def test_the_division_is_one_of_float32() -> None:
    # 0.15 / 0.1 is 1.5 in float32 (rounds to 2), and below it in float64 of these float32 numbers.
    scale, real = np.float32(0.1), np.float32(0.15)
    assert float(real) / float(scale) < 1.5 or real / scale == np.float32(1.5)
    stored = Quantization.per_tensor(float(scale)).quantize(real, DataType.QASYMM_S8)
    assert stored == int(np.trunc(np.float64(real / scale) + 0.5))


def test_channels_have_scales_of_their_own() -> None:
    per_channel = Quantization((0.5, 0.0, 2.0), (0, 1, 0), 1)
    real = np.array([[1, 5, 4], [-1, -5, -3]], np.float32)
    stored = per_channel.quantize(real, DataType.QSYMM_S8)
    assert stored.tolist() == [[2, 1, 2], [-2, 1, -2]]
    assert per_channel.dequantize(stored).tolist() == [[1, 0, 4], [-1, 0, -4]]


def test_stored_numbers_are_real_ones_again() -> None:
    real = HALF.dequantize(np.array([3, 4, -128], np.int8))
    assert real.dtype == np.float32
    assert real.tolist() == [0.0, 0.5, -65.5]
    every = np.arange(-128, 128).astype(np.int8)
    np.testing.assert_array_equal(HALF.quantize(HALF.dequantize(every), DataType.QASYMM_S8), every)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: HALF.quantize([1.0], DataType.FLOAT32), "stores no integers.*got FLOAT32"),
        (lambda: HALF.quantize([1.0], "int8"), "stores no integers.*got 'int8'"),  # type: ignore[arg-type]
        (lambda: HALF.quantize([np.nan], DataType.QASYMM_S8), "NaN or infinity"),
        (lambda: HALF.quantize([np.inf], DataType.QASYMM_S8), "NaN or infinity"),
        (lambda: HALF.quantize(["a"], DataType.QASYMM_S8), "Expected real numbers; got <U1"),
        (lambda: HALF.quantize([[1.0], []], DataType.QASYMM_S8), "cannot be made an array"),
        (lambda: HALF.dequantize([1.5]), "Expected integers; got float64"),
        (
            lambda: Quantization.per_axis([1.0, 2.0], 1).dequantize([[1, 2, 3]]),
            r"Expected 2 along axis 1; got \(1, 3\)",
        ),
        (lambda: Quantization.per_axis([1.0, 2.0], 3).dequantize([[1, 2]]), "along axis 3"),
    ],
)
def test_what_cannot_be_stored_is_refused(call: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        call()


def test_inputs_and_outputs_quantise_by_what_they_are() -> None:
    spec = TensorSpec("x", TensorInfo((1,), DataType.QASYMM_U8, HALF))
    assert spec.quantize([1.0]).tolist() == [5]
    assert spec.dequantize([5]).tolist() == [1.0]
    with pytest.raises(InvalidArgumentError, match="tensor 'y': the tensor is not quantised"):
        TensorSpec("y", TensorInfo((1,), DataType.FLOAT32)).quantize([1.0])


def spec_of(data_type: DataType, shape: Shape | None = (2, 3)) -> TensorSpec:
    return TensorSpec("x", TensorInfo(shape, data_type, HALF if data_type.is_quantized else None))


@pytest.mark.parametrize("data_type", DataType, ids=lambda data_type: data_type.name)
def test_arrays_for_a_tensor_have_its_type_and_shape(data_type: DataType) -> None:
    spec = spec_of(data_type)
    assert spec.dtype == data_type.dtype
    for array in (spec.zeros(), spec.random(), spec.random(7)):
        assert (array.dtype, array.shape) == (data_type.dtype, (2, 3))
    assert spec.random(7).tolist() == spec.random(7).tolist()
    assert spec.zeros().tolist() == np.full((2, 3), "" if data_type.is_string else 0).tolist()


@pytest.mark.parametrize(
    ("data_type", "low", "high"),
    [
        (DataType.FLOAT32, -1, 1),
        (DataType.QASYMM_S8, -128, 127),
        (DataType.QSYMM_S16, -32768, 32767),
        (DataType.UNSIGNED8, 0, 255),
        (DataType.SIGNED4, 0, 1),
        (DataType.SIGNED64, 0, 1),
        (DataType.BOOLEAN, 0, 1),
    ],
)
def test_random_elements_fill_their_range(data_type: DataType, low: int, high: int) -> None:
    array = spec_of(data_type, (4000,)).random(1).astype(np.float64)
    assert low <= array.min() <= low + 0.01 * (high - low)
    assert high - 0.01 * (high - low) <= array.max() <= high


def test_a_generator_makes_other_elements_each_time() -> None:
    spec, generator = spec_of(DataType.FLOAT32), np.random.default_rng(3)
    first, second = spec.random(generator), spec.random(generator)
    assert first.tolist() == spec.random(3).tolist()
    assert first.tolist() != second.tolist()


@pytest.mark.parametrize(
    ("shape", "example"), [((None, 3), r"\(1, 3\)"), (None, r"\(1,\)"), ((2, None), r"\(2, 1\)")]
)
def test_open_sizes_have_to_be_passed(shape: Shape | None, example: str) -> None:
    spec = spec_of(DataType.FLOAT32, shape)
    for name in ("zeros", "random"):
        with pytest.raises(
            InvalidArgumentError, match=rf"^tensor 'x': .*{name}\(shape={example}\)"
        ):
            getattr(spec, name)()
    assert spec_of(DataType.FLOAT32, (None, 3)).zeros((4, 3)).shape == (4, 3)
    assert spec_of(DataType.FLOAT32, (None, 3)).random(shape=[4, 3]).shape == (4, 3)


@pytest.mark.parametrize("shape", [(2,), (2, 4), (2, -3), (2, 3.0), 2])
def test_sizes_that_do_not_fit_are_refused(shape: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="input 'x'"):
        spec_of(DataType.FLOAT32).zeros(shape)
