"""Rounding, saturation and shifts, against C's rules in Python's integers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from armpy.core.numerics.rounding import (
    leading_zeros,
    round_half_away,
    rounding_shift_right,
    saturate,
    saturating_shift_left,
)
from armpy_testing.gemmlowp_in_integers import divide_by_power, multiply_by_power

LOWEST, HIGHEST = -(1 << 31), (1 << 31) - 1
int32s = st.one_of(st.sampled_from([LOWEST, LOWEST + 1, -1, 0, 1, HIGHEST]), st.integers(-50, 50))
int32s |= st.integers(LOWEST, HIGHEST)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_halves_go_away_from_zero(dtype: type[np.floating]) -> None:
    values = np.array([0.5, -0.5, 1.5, -2.5, 2.4, -2.6, 0.0], dtype)
    rounded = round_half_away(values)
    assert rounded.dtype == dtype
    assert rounded.tolist() == [1, -1, 2, -3, 2, -3, 0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_next_to_a_half_are_no_halves(dtype: type[np.floating]) -> None:
    below = np.nextafter(dtype(0.5), dtype(0))
    assert round_half_away(np.array([below, -below])).tolist() == [0, 0]
    # The largest odd number: a half added to it would round to the even one above.
    odd = dtype(2 ** (np.finfo(dtype).nmant + 1) - 1)
    assert round_half_away(odd) == odd


def test_what_is_no_finite_number_stays() -> None:
    values = round_half_away(np.array([np.inf, -np.inf, np.nan]))
    assert values[:2].tolist() == [np.inf, -np.inf]
    assert np.isnan(values[2])


@given(int32s, st.integers(0, 31))
def test_a_rounding_right_shift_divides_with_halves_away_from_zero(x: int, exponent: int) -> None:
    expected = divide_by_power(x, exponent)
    assert rounding_shift_right(x, exponent) == expected
    assert rounding_shift_right(np.array([x, x]), exponent).tolist() == [expected] * 2


def test_every_element_may_have_an_exponent_of_its_own() -> None:
    values, exponents = np.array([[5], [-5]]), np.array([0, 1, 2])
    shifted = rounding_shift_right(np.repeat(values, 3, 1), exponents)
    assert shifted.tolist() == [[5, 3, 1], [-5, -3, -1]]


def test_a_right_shift_writes_to_out_and_nowhere_else() -> None:
    values, out = np.array([3, -3]), np.empty(2, np.int64)
    assert rounding_shift_right(values, 1, out=out) is out
    assert (values.tolist(), out.tolist()) == ([3, -3], [2, -2])
    rounding_shift_right(values, 1, out=values)
    assert values.tolist() == [2, -2]


@given(int32s, st.integers(0, 31), st.sampled_from([16, 32]))
def test_a_left_shift_saturates(x: int, exponent: int, bits: int) -> None:
    assert saturating_shift_left(x, exponent, bits) == max(
        min(x * 2**exponent, (1 << (bits - 1)) - 1), -(1 << (bits - 1))
    )
    if exponent:
        assert saturating_shift_left(x, exponent) == multiply_by_power(x, exponent)


def test_saturation_keeps_what_fits() -> None:
    values = np.array([LOWEST - 1, LOWEST, -5, HIGHEST, HIGHEST + 1])
    assert saturate(values).tolist() == [LOWEST, LOWEST, -5, HIGHEST, HIGHEST]
    assert saturate(values, 16).tolist() == [-32768, -32768, -5, 32767, 32767]


@given(st.integers(0, (1 << 32) - 1) | st.integers(0, 32).map(lambda n: (1 << n) - 1))
def test_zeros_above_the_highest_bit_are_counted(x: int) -> None:
    assert leading_zeros(x) == 32 - x.bit_length()
