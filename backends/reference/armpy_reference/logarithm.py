"""Reciprocal and logarithm in fixed point, on top of gemmlowp's functions.

References
----------
TFLite ``kernels/internal/common.h`` (``GetReciprocal``,
``log_x_for_x_greater_than_or_equal_to_1``).
"""

from __future__ import annotations

import numpy as np

from armpy_reference.fixed_point import Int64Array, rounding_shift_right
from armpy_reference.gemmlowp import multiply_high, one_over_one_plus

# With 31 fraction bits; the last four are the coefficients of the rational function.
_LOG_OF_TWO = 1488522236
_ROOT_OF_HALF = 1518500250
_FOURTH_ROOT_OF_HALF = 1805811301
_NUMERATOR = 117049297
_DENOMINATOR_SQUARE = 127690142
_DENOMINATOR_CONSTANT = 1057819769
_DENOMINATOR_LINEAR = 638450708

_HIGHEST = (1 << 31) - 1
_RESULT_INTEGER_BITS = 5
_SUM_INTEGER_BITS = _RESULT_INTEGER_BITS + 1
_SUM_FRACTION_BITS = 31 - _SUM_INTEGER_BITS
_QUARTER = 1 << (_SUM_FRACTION_BITS - 2)


def leading_zeros(values: Int64Array) -> Int64Array:
    """Number of zero bits above the highest set bit of numbers in [0, 2**32)."""
    # The exponent of a float64 is the bit length, as it holds 53 bits exactly.
    return 32 - np.frexp(values.astype(np.float64))[1].astype(np.int64)


def reciprocal(values: Int64Array, integer_bits: int) -> tuple[Int64Array, Int64Array]:
    """``1 / x`` as a number in [1/2, 1] and a power of two.

    Parameters
    ----------
    values : ndarray, int64, shape (...)
        In [1, 2**31), stored with `integer_bits` and 31 bits in all.
    integer_bits : int

    Returns
    -------
    fraction : ndarray, int64, shape of `values`
        Stored with 31 fraction bits.
    bits_over_unit : ndarray, int64, shape of `values`
        ``1 / x`` is ``fraction / 2**bits_over_unit``.
    """
    headroom = leading_zeros(values)
    return one_over_one_plus((values << headroom) - (1 << 31)), integer_bits - headroom


def logarithm(values: Int64Array, integer_bits: int) -> Int64Array:
    """Natural logarithm of numbers of at least 1.

    Parameters
    ----------
    values : ndarray, int64, shape (...)
        Stored with `integer_bits` and 31 bits in all.
    integer_bits : int

    Returns
    -------
    ndarray, int64, shape of `values`
        Stored with 5 integer bits and 31 bits in all.

    Notes
    -----
    Writes x as ``2**k r`` with r around the fourth root of 1/2, where a rational function
    approximates the logarithm of r.
    """
    headroom_a = leading_zeros(values) - 1
    r_a = _shift_left(multiply_high(_shift_left(values, headroom_a), _ROOT_OF_HALF), 1)
    power_a = _shift_left(integer_bits - headroom_a - 1, _SUM_FRACTION_BITS) + _QUARTER
    headroom_b = leading_zeros(multiply_high(values, _ROOT_OF_HALF)) - 1
    r_b = _shift_left(values, headroom_b)
    power_b = _shift_left(integer_bits - headroom_b, _SUM_FRACTION_BITS) - _QUARTER
    power = np.maximum(_saturated(power_a), _saturated(power_b))
    total = multiply_high(power, _LOG_OF_TWO) + _logarithm_around_root(np.minimum(r_a, r_b))
    return _shift_left(total, 1)


def _logarithm_around_root(r: Int64Array) -> Int64Array:
    """Logarithm of ``r / fourth root of 1/2``, with one integer bit more than the result."""
    middle = (r + _FOURTH_ROOT_OF_HALF + 1) >> 1
    q = 2 * (r - _FOURTH_ROOT_OF_HALF)
    square = multiply_high(q, q)
    numerator = multiply_high(q, r) + multiply_high(multiply_high(q, square), _NUMERATOR)
    factor = _DENOMINATOR_CONSTANT + q + multiply_high(square, _DENOMINATOR_SQUARE)
    denominator = multiply_high(middle, factor) + multiply_high(q, _DENOMINATOR_LINEAR)
    rounding_shift_right(numerator, _SUM_INTEGER_BITS)
    return multiply_high(numerator, one_over_one_plus(denominator))


def _shift_left(values: Int64Array, exponent: int | Int64Array) -> Int64Array:
    """Multiply by a power of two and saturate to 32 bits."""
    return _saturated(np.left_shift(values, exponent))


def _saturated(values: Int64Array) -> Int64Array:
    """Clamp to 32 bits."""
    return np.clip(values, -_HIGHEST - 1, _HIGHEST)
