"""Reciprocal and logarithm in fixed point, on top of gemmlowp's functions.

References
----------
TFLite ``kernels/internal/common.h`` (``GetReciprocal``,
``log_x_for_x_greater_than_or_equal_to_1``).
"""

from __future__ import annotations

import numpy as np

from armpy.core.numerics.fixed_point import multiply_high
from armpy.core.numerics.gemmlowp import one_over_one_plus
from armpy.core.numerics.rounding import (
    Int64Array,
    Integers,
    leading_zeros,
    rounding_shift_right,
    saturate,
    saturating_shift_left,
)

# With 31 fraction bits; the last four are the coefficients of the rational function.
LOG_OF_TWO = 1488522236
ROOT_OF_HALF = 1518500250
FOURTH_ROOT_OF_HALF = 1805811301
NUMERATOR = 117049297
DENOMINATOR_SQUARE = 127690142
DENOMINATOR_CONSTANT = 1057819769
DENOMINATOR_LINEAR = 638450708

_RESULT_INTEGER_BITS = 5
_SUM_INTEGER_BITS = _RESULT_INTEGER_BITS + 1
_SUM_FRACTION_BITS = 31 - _SUM_INTEGER_BITS
_QUARTER = 1 << (_SUM_FRACTION_BITS - 2)


def reciprocal(values: Integers, integer_bits: int) -> tuple[Int64Array, Int64Array]:
    """Reciprocal in fixed point: a number in [1/2, 1] and a power of two.

    Arguments are in [1, 2**31), stored with `integer_bits` and 31 bits in all. ``1 / x`` is
    ``fraction / 2**bits_over_unit``, the fraction stored with 31 fraction bits.

    Reference: TFLite ``GetReciprocal``.
    """
    stored, headroom = np.asarray(values, np.int64), leading_zeros(values)
    return one_over_one_plus((stored << headroom) - (1 << 31)), integer_bits - headroom


def logarithm(values: Integers, integer_bits: int) -> Int64Array:
    """Natural logarithm in fixed point, of numbers of at least 1.

    Arguments are stored with `integer_bits` and 31 bits in all, results with 5 integer bits.
    Writes x as ``2**k r`` with r around the fourth root of 1/2, where a rational function
    approximates the logarithm of r.

    Reference: TFLite ``log_x_for_x_greater_than_or_equal_to_1_impl``.
    """
    headroom_a = leading_zeros(values) - 1
    normalized = saturating_shift_left(values, headroom_a)
    r_a = saturating_shift_left(multiply_high(normalized, ROOT_OF_HALF), 1)
    power_a = saturating_shift_left(integer_bits - headroom_a - 1, _SUM_FRACTION_BITS) + _QUARTER
    headroom_b = leading_zeros(multiply_high(values, ROOT_OF_HALF)) - 1
    r_b = saturating_shift_left(values, headroom_b)
    power_b = saturating_shift_left(integer_bits - headroom_b, _SUM_FRACTION_BITS) - _QUARTER
    power = np.maximum(saturate(power_a), saturate(power_b))
    total = multiply_high(power, LOG_OF_TWO) + _logarithm_around_root(np.minimum(r_a, r_b))
    return saturating_shift_left(total, 1)


def _logarithm_around_root(r: Int64Array) -> Int64Array:
    """Logarithm of ``r / fourth root of 1/2``, with one integer bit more than the result."""
    middle = (r + FOURTH_ROOT_OF_HALF + 1) >> 1
    q = 2 * (r - FOURTH_ROOT_OF_HALF)
    square = multiply_high(q, q)
    numerator = multiply_high(q, r) + multiply_high(multiply_high(q, square), NUMERATOR)
    factor = DENOMINATOR_CONSTANT + q + multiply_high(square, DENOMINATOR_SQUARE)
    denominator = multiply_high(middle, factor) + multiply_high(q, DENOMINATOR_LINEAR)
    numerator = rounding_shift_right(numerator, _SUM_INTEGER_BITS)
    return multiply_high(numerator, one_over_one_plus(denominator))
