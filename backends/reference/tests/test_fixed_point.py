"""Fixed-point arithmetic against gemmlowp's rules written down in plain Python integers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from armpy_reference.fixed_point import Multiplier, quantize_multiplier, rounding_shift_right
from armpy_reference.requantize import FixedPointRescaling, RealRescaling
from hypothesis import given
from hypothesis import strategies as st

EDGES = [0, 1, 2, 3, (1 << 15), (1 << 24) - 1, 1 << 24, (1 << 30) - 1, (1 << 30), (1 << 31) - 1]

accumulators = st.one_of(
    st.sampled_from([*EDGES, *(-edge for edge in EDGES), -(1 << 31)]),
    st.integers(-(1 << 31), (1 << 31) - 1),
    st.integers(-1000, 1000),
)
multipliers = st.one_of(
    st.sampled_from([1 << 30, (1 << 30) + 1, (1 << 31) - 1, 3 << 29, 0]),
    st.integers(1 << 30, (1 << 31) - 1),
)
shifts = st.integers(-31, 0)


def rounding_doubling_high_multiply(a: int, b: int) -> int:
    """gemmlowp's SaturatingRoundingDoublingHighMul; C's division truncates."""
    product = a * b
    nudged = product + ((1 << 30) if product >= 0 else 1 - (1 << 30))
    return -(-nudged // (1 << 31)) if nudged < 0 else nudged // (1 << 31)


def rounding_divide_by_power(x: int, exponent: int) -> int:
    """gemmlowp's RoundingDivideByPOT."""
    mask = (1 << exponent) - 1
    threshold = (mask >> 1) + (1 if x < 0 else 0)
    return (x >> exponent) + (1 if (x & mask) > threshold else 0)


def multiply(x: int, multiplier: int, shift: int) -> int:
    """TFLite's MultiplyByQuantizedMultiplier."""
    high = rounding_doubling_high_multiply(x << max(shift, 0), multiplier)
    return rounding_divide_by_power(high, max(-shift, 0))


@given(accumulators, multipliers, shifts)
def test_a_product_is_rounded_twice(x: int, multiplier: int, shift: int) -> None:
    made = Multiplier.from_pairs([(multiplier, shift)], ())
    assert made.apply(np.array([x])).tolist() == [multiply(x, multiplier, shift)]


@given(accumulators, multipliers, st.integers(1, 30))
def test_a_product_may_be_shifted_left_as_far_as_multipliers_go(
    x: int, multiplier: int, shift: int
) -> None:
    made = Multiplier.from_pairs([(multiplier, shift)], ())
    expected = [multiply(x, multiplier, shift)]
    assert made.apply(np.array([x])).tolist() == expected
    assert rescaled(made, x, 0, keeps_negatives=True) == expected


@given(accumulators, accumulators, multipliers, st.integers(-31, 30), st.booleans())
def test_any_bias_may_be_added(
    x: int, bias: int, multiplier: int, shift: int, keeps_negatives: bool
) -> None:
    made = Multiplier.from_pairs([(multiplier, shift)], (1,))
    expected = multiply(x + bias, multiplier, shift)
    (found,) = rescaled(made, x, bias, keeps_negatives)
    assert found == expected if keeps_negatives else max(found, 0) == max(expected, 0)


def rescaled(multiplier: Multiplier, x: int, bias: int, keeps_negatives: bool) -> list[int]:
    """A sum of products rescaled together with a bias."""
    rescaling = FixedPointRescaling.rounding_twice(multiplier, np.array([bias]), keeps_negatives)
    sums = np.array([[x]], np.float64)
    results: list[int] = rescaling.rescaled(sums, np.empty((1, 1), np.int64))[0].tolist()
    return results


@given(accumulators, multipliers, shifts, st.integers(-1000, 1000))
def test_one_shift_rounds_like_two(x: int, multiplier: int, shift: int, bias: int) -> None:
    made = Multiplier.from_pairs([(multiplier, shift)], (1,))
    assert rescaled(made, x, bias, True) == [multiply(x + bias, multiplier, shift)]


@given(accumulators, multipliers, shifts, st.integers(-1000, 1000))
def test_rounding_of_negatives_does_not_matter_below_a_clamp_at_zero(
    x: int, multiplier: int, shift: int, bias: int
) -> None:
    made = Multiplier.from_pairs([(multiplier, shift)], (1,))
    expected = max(multiply(x + bias, multiplier, shift), 0)
    assert max(rescaled(made, x, bias, False)[0], 0) == expected


@given(
    st.integers(-(1 << 46), 1 << 46),
    st.one_of(st.integers(-(1 << 63), (1 << 63) - 1), st.integers(-(1 << 20), 1 << 20)),
    multipliers,
    st.integers(-31, 30),
)
def test_wide_sums_meet_a_multiplier_of_16_bits(
    x: int, bias: int, multiplier: int, shift: int
) -> None:
    made = Multiplier.from_pairs([(multiplier, shift)], (1,))
    rescaling = FixedPointRescaling.rounding_once(made, np.array([bias]))
    reduced = min((multiplier + (1 << 15)) >> 16, 0x7FFF)
    # One bit more on either side, so that there is a half to add for any shift.
    expected = ((x + bias) * reduced * 2 ** (shift + 31) + (1 << 45)) >> 46
    sums = np.array([[x]], np.float64)
    found = rescaling.rescaled(sums, np.empty((1, 1), np.int64)).item()
    assert saturated(found) == saturated(expected)


def saturated(value: int) -> int:
    """What an output of 16 bits holds, whatever its zero point is."""
    return min(max(value, -(1 << 16)), 1 << 16)


def test_factors_beyond_integers_keep_the_sign() -> None:
    sums = np.array([[-3.0, 0.0, 5.0]])
    for factor in (1e30, math.inf):
        rescaling = RealRescaling(np.array(factor), np.array(0))
        found = rescaling.rescaled(sums, np.empty((1, 3), np.int64))[0]
        assert np.sign(found).tolist() == [-1, 0, 1]
        assert np.abs(found)[[0, 2]].min() > 1 << 16


@given(accumulators, st.integers(0, 31))
def test_division_by_a_power_of_two_rounds_half_away_from_zero(x: int, exponent: int) -> None:
    values = np.array([x])
    rounding_shift_right(values, exponent)
    assert values.tolist() == [rounding_divide_by_power(x, exponent)]


@given(st.one_of(st.floats(0, 2.0**33), st.floats(0, 1e-6), st.floats(0.25, 4)))
def test_arrays_of_multipliers_are_those_of_single_numbers(real: float) -> None:
    made = Multiplier.from_real([real, 0.5])
    multiplier, shift = quantize_multiplier(real)
    assert made.multiplier.tolist() == [multiplier, 1 << 30]
    assert (made.left_shift - made.right_shift).tolist() == [shift, 0]


@pytest.mark.parametrize(
    ("real", "expected"),
    [
        (0.0, (0, 0)),
        (0.5, (1 << 30, 0)),
        (1.0, (1 << 30, 1)),
        (0.75, (3 << 29, 0)),
        (1 - 2.0**-40, (1 << 30, 1)),
        (2.0**-40, (0, 0)),
        (2.0**40, ((1 << 31) - 1, 30)),
        (math.inf, ((1 << 31) - 1, 30)),
    ],
)
def test_a_real_number_becomes_multiplier_and_shift(real: float, expected: tuple[int, int]) -> None:
    assert quantize_multiplier(real) == expected
    made = Multiplier.from_real(real)
    assert (int(made.multiplier), int(made.left_shift - made.right_shift)) == expected
