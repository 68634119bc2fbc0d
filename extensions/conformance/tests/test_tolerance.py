"""The tolerance table and the comparison that uses it."""

from __future__ import annotations

import numpy as np
import pytest

from armpy.ops.operation import Array
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType
from armpy_conformance import TOLERANCES, compare

F32 = TensorInfo((2, 2), DataType.FLOAT32)
S8 = TensorInfo((2,), DataType.QASYMM_S8, Quantization.per_tensor(1.0))
I32 = TensorInfo((2,), DataType.SIGNED32)


def f32(*values: float) -> Array:
    return np.array(values, np.float32)


def test_dtype_is_compared_before_values() -> None:
    difference = compare(f32(1, 2), np.array([1, 2], np.float64), F32)
    assert "dtype differs. Expected float32; got float64" in str(difference)


def test_shape_is_compared_before_values() -> None:
    difference = compare(f32(1, 2), f32(1, 2, 3), F32)
    assert "shape differs. Expected (2,); got (3,)" in str(difference)


def test_what_is_no_array_is_a_difference() -> None:
    assert "is list, not an array" in str(compare(f32(1), [1.0], F32))


def test_the_worst_element_is_named() -> None:
    expected = np.zeros((2, 2), np.float32)
    actual = np.array([[0, 0.5], [-3, 0]], np.float32)
    difference = compare(expected, actual, F32)
    assert difference is not None
    assert difference.index == (1, 0)
    assert (difference.expected, difference.actual) == (0, -3)
    assert (difference.count, difference.size) == (2, 4)
    assert "2 of 4 elements are wrong, worst at index (1, 0)" in str(difference)


@pytest.mark.parametrize(("error", "is_right"), [(0.9e-5, True), (1.05e-5, True), (1.1e-5, False)])
def test_float32_may_be_off_by_the_absolute_and_the_relative_part(
    error: float, is_right: bool
) -> None:
    # 1e-5 + 5 * 2**-23 = 1.0596e-5, and float32 steps near 1 are 1.2e-7
    difference = compare(f32(1), f32(1 + error), F32)
    assert (difference is None) == is_right


@pytest.mark.parametrize(("actual", "is_right"), [(11, True), (9, True), (12, False)])
def test_quantised_elements_may_be_off_by_one(actual: int, is_right: bool) -> None:
    difference = compare(np.array([10, 0], np.int8), np.array([actual, 0], np.int8), S8)
    assert (difference is None) == is_right


def test_quantised_elements_do_not_wrap_around_when_compared() -> None:
    difference = compare(np.array([127, 0], np.int8), np.array([-128, 0], np.int8), S8)
    assert difference is not None


def test_integers_are_exact() -> None:
    assert compare(np.array([1, 2], np.int32), np.array([1, 3], np.int32), I32) is not None


def test_nan_is_right_only_where_it_is_expected() -> None:
    assert compare(f32(np.nan), f32(np.nan), F32) is None
    assert compare(f32(np.nan), f32(0), F32) is not None
    assert compare(f32(0, np.nan), f32(np.nan, np.nan), F32) is not None


def test_an_infinity_is_right_only_with_its_own_sign() -> None:
    assert compare(f32(np.inf), f32(np.inf), F32) is None
    assert compare(f32(np.inf), f32(-np.inf), F32) is not None
    assert compare(f32(np.inf), f32(1e38), F32) is not None
    assert compare(f32(1e38), f32(np.inf), F32) is not None


def test_tensors_without_dimensions_can_be_compared() -> None:
    difference = compare(np.array(1, np.float32), np.array(2, np.float32), F32)
    assert difference is not None
    assert difference.index == ()


def test_tensors_without_elements_are_equal() -> None:
    assert compare(np.empty((0, 3), np.float32), np.empty((0, 3), np.float32), F32) is None


def test_every_data_type_has_a_tolerance() -> None:
    assert set(TOLERANCES) == set(DataType)


def test_many_quantised_elements_that_are_off_to_one_side_are_wrong() -> None:
    info = TensorInfo((64,), DataType.QASYMM_S8, Quantization.per_tensor(1.0))
    expected = np.zeros(64, np.int8)
    half_down = expected - np.arange(64, dtype=np.int8) % 2
    difference = compare(expected, half_down, info)
    assert difference is not None
    assert "a mean error of at most 0.25; got -0.5" in str(difference)
    # As many to the other side, or fewer: rounding of another kind.
    assert compare(expected, half_down + np.arange(64, dtype=np.int8) // 2 % 2, info) is None
    few = TensorInfo((8,), DataType.QASYMM_S8, Quantization.per_tensor(1.0))
    assert compare(expected[:8], half_down[:8], few) is None
