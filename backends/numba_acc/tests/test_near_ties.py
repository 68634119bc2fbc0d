"""Factors with which sums near ties are rounded."""

from __future__ import annotations

import numpy as np
from armpy_numba_acc.packing.factors import Factors


def test_rounding_is_imprecise_where_sums_are_beyond_float32() -> None:
    # Halfway between two numbers of float32; 2**28 of these steps are 256 of the output's.
    small = 2.0**-20 * (1 + 2.0**-24)
    factors = Factors.of(np.array([0.01, small]), rounds_twice=True)
    for largest, is_imprecise in (([2.0**15, 2.0**15], False), ([2.0**15, 2.0**28], True)):
        _, rounding = factors.rounded(0, True, np.array(largest))
        assert rounding.is_imprecise is is_imprecise


def test_nudges_follow_the_scales_exponent() -> None:
    # 0.75 = 0.75 * 2**0, 0.01 = 0.64 * 2**-6, 3 = 0.75 * 2**2
    factors = Factors.of(np.array([0.75, 0.01, 3.0]), rounds_twice=True)
    np.testing.assert_array_equal(factors.nudges, np.array([0.0, 2.0**-7, 0.0], np.float32))


def test_zero_points_join_nudges_where_nothing_is_negative() -> None:
    factors = Factors.of(np.array([0.01]), rounds_twice=True)
    rounded, rounding = factors.rounded(7, False, np.array([1000.0]))
    # 0.01 = 0.64 * 2**-6: the nudge is 2**-7; the bytes lie between 256 and 512.
    assert rounded.nudges[0] == 2.0**-7 + 7 + 256.5
    assert rounding.base == 256
