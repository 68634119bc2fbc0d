"""Quantised multipliers against TFLite's published values and rules in Python's integers."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from armpy.core.numerics.fixed_point import (
    Multiplier,
    Requantization,
    mean_multiplier,
    multiply_high,
    quantize_multiplier,
    short_multiplier,
)
from armpy_testing.gemmlowp_in_integers import (
    accumulators,
    doubling_high_multiply,
    multipliers,
    multiply,
)

biases = st.integers(-(1 << 30), 1 << 30) | st.integers(-1000, 1000)


@pytest.mark.parametrize(
    ("real", "expected"),
    [
        # The values of TFLite's quantization_util_test.
        (0.25, (1073741824, -1)),
        (0.50 - 5e-9, (2147483627, -1)),
        (0.50 - 1e-10, (1073741824, 0)),
        (0.50, (1073741824, 0)),
        (0.75, (1610612736, 0)),
        (1 - 1e-9, (2147483646, 0)),
        (1 + 1e-9, (1073741825, 1)),
        (1.25, (1342177280, 1)),
        (1.50, (1610612736, 1)),
        (0.0, (0, 0)),
        (2.0**-32, (1 << 30, -31)),
        (2.0**-33, (0, 0)),
        (2.0**-40, (0, 0)),
        (2.0**29, (1 << 30, 30)),
        (2.0**30, ((1 << 31) - 1, 30)),
        (2.0**40, ((1 << 31) - 1, 30)),
        (math.inf, ((1 << 31) - 1, 30)),
    ],
)
def test_a_real_number_becomes_multiplier_and_shift(real: float, expected: tuple[int, int]) -> None:
    assert quantize_multiplier(real) == expected
    multiplier = Multiplier.from_real(real)
    assert (
        int(multiplier.multiplier),
        int(multiplier.left_shift - multiplier.right_shift),
    ) == expected


@given(st.one_of(st.floats(0, 2.0**33), st.floats(0, 1e-6), st.floats(0.25, 4)))
def test_arrays_of_multipliers_are_those_of_single_numbers(real: float) -> None:
    multipliers_made = Multiplier.from_real([real, 0.5])
    multiplier, shift = quantize_multiplier(real)
    assert multipliers_made.multiplier.tolist() == [multiplier, 1 << 30]
    assert (multipliers_made.left_shift - multipliers_made.right_shift).tolist() == [shift, 0]


def test_short_multipliers_round_up_and_stay_below_16_bits() -> None:
    assert short_multiplier(0.5) == (1 << 14, 0)
    assert short_multiplier(0.75 + 2.0**-16) == ((3 << 13) + 1, 0)  # half a step up
    assert short_multiplier(1 - 2.0**-20) == ((1 << 15) - 1, 0)  # not 1 << 15


@given(multipliers, st.integers(-31, 30), st.integers(1, 1 << 20))
def test_a_mean_divides_the_multiplier(multiplier: int, shift: int, count: int) -> None:
    reduced, moved = mean_multiplier(multiplier, shift, count)
    exact = Fraction(multiplier, count) * Fraction(2) ** shift
    assert 0 <= exact - reduced * Fraction(2) ** moved < Fraction(2) ** moved
    assert reduced < 1 << 31
    assert moved >= -31


@given(accumulators, accumulators)
def test_a_high_product_is_gemmlowps(a: int, b: int) -> None:
    assert multiply_high(a, b) == doubling_high_multiply(a, b)
    assert multiply_high(np.array([a, b]), b).tolist() == [
        doubling_high_multiply(a, b),
        doubling_high_multiply(b, b),
    ]


@given(st.integers(-32768, 32767), st.integers(-32768, 32767))
def test_a_high_product_of_16_bits_is_gemmlowps(a: int, b: int) -> None:
    assert multiply_high(a, b, 16) == doubling_high_multiply(a, b, 16)


@pytest.mark.parametrize("bits", [16, 32])
def test_only_the_product_of_the_lowest_integers_saturates(bits: int) -> None:
    lowest, highest = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    assert multiply_high(np.array([lowest]), lowest, bits).tolist() == [highest]
    assert multiply_high(lowest, highest, bits) == -highest


def test_halves_of_high_products_go_up() -> None:
    # (2**30 * 1) / 2**31 is one half, and its negative one goes up to 0.
    assert multiply_high(np.array([1, -1, 3, -3]), 1 << 30).tolist() == [1, 0, 2, -1]


@given(accumulators, multipliers, st.integers(-31, 30), st.booleans())
def test_a_product_is_rounded_twice(x: int, multiplier: int, shift: int, negated: bool) -> None:
    signed = -multiplier if negated else multiplier
    factor = Multiplier.from_pairs([(signed, shift)], ())
    expected = multiply(x, signed, shift)
    assert factor.apply(x) == expected
    assert factor.apply(np.array([x], np.int32)).tolist() == [expected]


def test_halves_are_rounded_up_first_and_then_away_from_zero() -> None:
    # 1/4 is 2**30 * 2**-32: the high product is rounded to halves, these to integers.
    quarter = Multiplier.from_real(0.25)
    assert quarter.apply(np.array([1, 2, 3, -1, -2, -3, 6])).tolist() == [1, 1, 1, 0, -1, -1, 2]


def test_each_channel_has_its_multiplier() -> None:
    factors = Multiplier.from_real([0.5, 1.0, 4.0])
    assert factors.apply(np.array([[4, 4, 4], [-6, -6, -6]])).tolist() == [
        [2, 4, 16],
        [-3, -6, -24],
    ]


def test_products_are_written_to_out_and_nowhere_else() -> None:
    factor, values, out = Multiplier.from_real(2.0), np.array([3, -3]), np.empty(2, np.int64)
    assert factor.apply(values, out=out) is out
    assert (values.tolist(), out.tolist()) == ([3, -3], [6, -6])
    assert factor.apply(values, out=values) is values
    assert values.tolist() == [6, -6]


def test_a_shift_that_is_too_large_gives_the_largest_multiplier() -> None:
    factors = Multiplier.from_pairs([(1 << 30, 31), (-(1 << 30), 40)], (2,))
    assert factors.multiplier.tolist() == [(1 << 31) - 1, 1 - (1 << 31)]
    assert factors.left_shift.tolist() == [30, 30]


# Requantisation


@given(accumulators, biases, multipliers, st.integers(-31, 30))
def test_one_shift_rounds_like_two(x: int, bias: int, multiplier: int, shift: int) -> None:
    factor = Multiplier.from_pairs([(multiplier, shift)], (1,))
    result = Requantization.rounding_twice(factor, np.array([bias])).apply(np.array([[x]]))
    assert result.tolist() == [[multiply(x + bias, multiplier, shift)]]


@given(accumulators, biases, multipliers, st.integers(-31, 30))
def test_rounding_of_negatives_does_not_matter_below_a_clamp_at_zero(
    x: int, bias: int, multiplier: int, shift: int
) -> None:
    factor = Multiplier.from_pairs([(multiplier, shift)], (1,))
    cheap = Requantization.rounding_twice(factor, np.array([bias]), keeps_negatives=False)
    assert cheap.step is None
    result = int(cheap.apply(np.array([x])).item())
    assert max(result, 0) == max(multiply(x + bias, multiplier, shift), 0)


@given(
    st.integers(-(1 << 46), 1 << 46),
    st.integers(-(1 << 46), 1 << 46),
    multipliers,
    st.integers(-31, 14),
)
def test_wide_sums_meet_a_multiplier_of_16_bits(
    x: int, bias: int, multiplier: int, shift: int
) -> None:
    factor = Multiplier.from_pairs([(multiplier, shift)], (1,))
    result = Requantization.rounding_once(factor, np.array([bias])).apply(np.array([float(x)]))
    reduced = min((multiplier + (1 << 15)) >> 16, 0x7FFF)
    assert result.tolist() == [((x + bias) * reduced + (1 << (14 - shift))) >> (15 - shift)]


def test_sums_are_requantised_where_they_stand() -> None:
    sums = np.array([[5, -5]])
    requantization = Requantization.rounding_twice(Multiplier.from_real(0.5), np.array(1))
    assert requantization.apply(sums, out=sums) is sums
    assert sums.tolist() == [[3, -2]]


def test_biases_beyond_48_bits_saturate() -> None:
    multiplier = Multiplier.from_real(np.array(0.005))
    for bias, largest in ((1 << 57, 1 << 39), (1 << 62, 1 << 39)):
        above = Requantization.rounding_once(multiplier, np.array(bias))
        below = Requantization.rounding_once(multiplier, np.array(-bias))
        assert above.apply(np.array(0)) > largest
        assert below.apply(np.array(0)) < -largest
