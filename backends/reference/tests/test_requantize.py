"""Rescaling of sums of any size, against gemmlowp's rules written down in Python's integers."""

from __future__ import annotations

import math

import numpy as np
from armpy_reference.quantized.requantize import FixedPointRescaling, RealRescaling
from hypothesis import given
from hypothesis import strategies as st

from armpy.core.numerics.fixed_point import Multiplier
from armpy_testing.gemmlowp_in_integers import accumulators, multipliers, multiply


@given(accumulators, accumulators, multipliers, st.integers(-31, 30), st.booleans())
def test_any_bias_may_be_added(
    x: int, bias: int, multiplier: int, shift: int, keeps_negatives: bool
) -> None:
    factors = Multiplier.from_pairs([(multiplier, shift)], (1,))
    expected = multiply(x + bias, multiplier, shift)
    (output,) = rescaled(factors, x, bias, keeps_negatives)
    assert output == expected if keeps_negatives else max(output, 0) == max(expected, 0)


def rescaled(multiplier: Multiplier, x: int, bias: int, keeps_negatives: bool) -> list[int]:
    """A sum of products rescaled together with a bias."""
    rescaling = FixedPointRescaling.rounding_twice(multiplier, np.array([bias]), keeps_negatives)
    sums = np.array([[x]], np.float64)
    results: list[int] = rescaling.rescaled(sums, np.empty((1, 1), np.int64))[0].tolist()
    return results


@given(
    st.integers(-(1 << 46), 1 << 46),
    st.one_of(st.integers(-(1 << 63), (1 << 63) - 1), st.integers(-(1 << 20), 1 << 20)),
    multipliers,
    st.integers(-31, 30),
)
def test_wide_sums_meet_a_multiplier_of_16_bits(
    x: int, bias: int, multiplier: int, shift: int
) -> None:
    factors = Multiplier.from_pairs([(multiplier, shift)], (1,))
    rescaling = FixedPointRescaling.rounding_once(factors, np.array([bias]))
    reduced = min((multiplier + (1 << 15)) >> 16, 0x7FFF)
    # One bit more on either side, so that there is a half to add for any shift.
    expected = ((x + bias) * reduced * 2 ** (shift + 31) + (1 << 45)) >> 46
    sums = np.array([[x]], np.float64)
    output = rescaling.rescaled(sums, np.empty((1, 1), np.int64)).item()
    assert saturated(output) == saturated(expected)


def saturated(value: int) -> int:
    """What an output of 16 bits holds, whatever its zero point is."""
    return min(max(value, -(1 << 16)), 1 << 16)


def test_factors_beyond_integers_keep_the_sign() -> None:
    sums = np.array([[-3.0, 0.0, 5.0]])
    for factor in (1e30, math.inf):
        rescaling = RealRescaling(np.array(factor), np.array(0))
        outputs = rescaling.rescaled(sums, np.empty((1, 3), np.int64))[0]
        assert np.sign(outputs).tolist() == [-1, 0, 1]
        assert np.abs(outputs)[[0, 2]].min() > 1 << 16
