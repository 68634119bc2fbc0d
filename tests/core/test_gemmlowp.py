"""Functions in fixed point, against gemmlowp's rules in Python's integers and real functions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from armpy.core.numerics import gemmlowp
from armpy.core.numerics.logarithm import logarithm, reciprocal
from armpy_testing import gemmlowp_in_integers as integers

LOWEST = -(1 << 31)
arguments = st.sampled_from([LOWEST, LOWEST + 1, -1, 0, 1, (1 << 31) - 1])
arguments |= st.integers(LOWEST, (1 << 31) - 1)
integer_bits_32 = st.integers(0, 12)


@given(arguments, integer_bits_32)
def test_32_bit_functions_are_gemmlowps(x: int, integer_bits: int) -> None:
    negative = min(x, -x)
    assert gemmlowp.exp_on_negative_values(negative, integer_bits) == (
        integers.exp_on_negative_values(negative, integer_bits)
    )
    assert gemmlowp.logistic(x, integer_bits) == integers.logistic(x, integer_bits)
    results = gemmlowp.tanh(np.array([x, 0, -1]), integer_bits).tolist()
    assert results == [integers.tanh(value, integer_bits) for value in (x, 0, -1)]


@pytest.mark.parametrize("integer_bits", [0, 3, 4, 6, 8])
def test_16_bit_functions_are_gemmlowps(integer_bits: int) -> None:
    stored = np.unique(np.concatenate([np.arange(-32768, 32768, 37), [-1, 0, 1, 32767]]))
    for name in ("logistic", "tanh"):
        results = getattr(gemmlowp, name)(stored, integer_bits, bits=16)
        expected = [getattr(integers, name)(x, integer_bits, 16) for x in stored.tolist()]
        assert results.tolist() == expected


@given(st.integers(0, (1 << 31) - 1))
def test_a_reciprocal_is_gemmlowps(x: int) -> None:
    assert gemmlowp.one_over_one_plus(x) == integers.one_over_one_plus(x)


@pytest.mark.parametrize("zero", [0, np.array([0]), np.array(0)])
def test_functions_are_exact_at_zero(zero: int) -> None:
    assert gemmlowp.exp_on_negative_values(zero, 5).item() == 2**31 - 1
    assert gemmlowp.logistic(zero, 4).item() == 2**30
    assert gemmlowp.tanh(zero, 4).item() == 0


def test_an_inverse_square_root_is_near_the_real_one() -> None:
    stored = np.array([2, 3, 4, 1000, 2**20 + 1, 2**29 - 1, 2**29, 2**31 - 1])
    multiplier, shift = gemmlowp.inverse_sqrt_multiplier(stored)
    assert shift.max() <= 0
    np.testing.assert_allclose(multiplier * 2.0 ** (shift - 31), 1 / np.sqrt(stored), rtol=2e-6)
    for value, *expected in zip(stored.tolist(), multiplier, shift, strict=True):
        assert list(gemmlowp.inverse_sqrt_multiplier(value)) == expected


def test_an_inverse_square_root_of_zero_counts_as_that_of_one() -> None:
    multiplier, shift = gemmlowp.inverse_sqrt_multiplier(np.array([0, 1]))
    assert multiplier.tolist() == [2**31 - 1] * 2
    assert shift.tolist() == [0, 0]


@given(st.integers(1, (1 << 31) - 1), st.sampled_from([12, 31]))
def test_a_reciprocal_is_near_the_real_one(x: int, integer_bits: int) -> None:
    fraction, bits = reciprocal(x, integer_bits)
    real = x * 2.0 ** (integer_bits - 31)
    assert fraction / 2**31 * 2.0**-bits == pytest.approx(1 / real, rel=1e-8)
    assert (1 << 30) - 8 <= fraction < 1 << 31


@given(st.integers(1 << 19, (1 << 31) - 1))
def test_a_logarithm_is_near_the_real_one(x: int) -> None:
    # 12 integer bits, of numbers of at least 1; the result has 5.
    assert logarithm(x, 12) * 2.0**-26 == pytest.approx(math.log(x / 2**19), abs=2e-7)
    assert logarithm(np.array([x]), 12).tolist() == [logarithm(x, 12)]
