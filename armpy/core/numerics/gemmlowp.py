"""Exponential, logistic, tanh and reciprocal root in fixed point, as gemmlowp defines them.

A number is stored in `bits` bits (32 or 16), the sign included, of which `integer_bits`
stand before the binary point: it is ``stored * 2**(integer_bits + 1 - bits)``. Stored
integers are passed and returned as int64 arrays, whatever `bits` is. Results have no
integer bits: they lie in [-1, 1), and 1 is stored as the highest integer.

References
----------
gemmlowp ``fixedpoint/fixedpoint.h``; TFLite ``kernels/internal/common.h``
(``GetInvSqrtQuantizedMultiplierExp``).
"""

from __future__ import annotations

import numpy as np

from armpy.core.numerics.fixed_point import multiply_high
from armpy.core.numerics.rounding import (
    Int64Array,
    Integers,
    leading_zeros,
    rounding_shift_right,
    saturating_shift_left,
)

# Stored with 31 fraction bits (29 for the 17ths); narrower numbers round them.
_EXP_MINUS_EIGHTH = 1895147668
_THIRD = 715827883
PLUS_48_17THS = 1515870810
MINUS_32_17THS = -1010580540
HALF_ROOT_OF_TWO = 1518500250

# exp(-2**exponent) with 31 fraction bits.
_EXP_FACTORS = (
    (-2, 1672461947),
    (-1, 1302514674),
    (0, 790015084),
    (1, 290630308),
    (2, 39332535),
    (3, 720401),
    (4, 242),
)


def exp_on_negative_values(values: Integers, integer_bits: int, bits: int = 32) -> Int64Array:
    """Exponential function in fixed point, ``exp(x)`` for ``x <= 0``.

    A polynomial of degree 4 around -1/8 for the part of `x` in [-1/4, 0), times a constant per
    binary digit of the rest.

    Reference: gemmlowp ``exp_on_negative_values``.
    """
    stored = np.asarray(values, np.int64)
    fraction_bits = bits - 1 - integer_bits
    quarter = 1 << (fraction_bits - 2)
    part = (stored & (quarter - 1)) - quarter
    result = _exp_near_zero(saturating_shift_left(part, integer_bits, bits), bits)
    rest = part - stored
    for exponent, factor in _EXP_FACTORS:
        if integer_bits > exponent:
            digit = (rest & (1 << (fraction_bits + exponent))) != 0
            product = multiply_high(result, _constant(factor, bits), bits)
            result = np.where(digit, product, result)
    # Below -32 nothing is left of the result in 31 bits.
    if integer_bits > 5:
        result = np.where(stored < -(32 << fraction_bits), 0, result)
    return np.where(stored == 0, _one(bits), result)


def logistic(values: Integers, integer_bits: int, bits: int = 32) -> Int64Array:
    """Logistic function in fixed point, ``1 / (1 + exp(-x))``.

    Reference: gemmlowp ``logistic``.
    """
    stored = np.asarray(values, np.int64)
    exponential = exp_on_negative_values(-np.abs(stored), integer_bits, bits)
    positive = one_over_one_plus(exponential, bits)
    result = np.where(stored > 0, positive, _one(bits) - positive)
    return np.where(stored == 0, 1 << (bits - 2), result)


def tanh(values: Integers, integer_bits: int, bits: int = 32) -> Int64Array:
    """Hyperbolic tangent in fixed point.

    ``(1 - e) / (1 + e)`` with ``e = exp(-2 |x|)``; one integer bit more doubles ``|x|``.

    Reference: gemmlowp ``tanh``.
    """
    stored = np.asarray(values, np.int64)
    exponential = exp_on_negative_values(-np.abs(stored), integer_bits + 1, bits)
    quotient = _two_over_one_plus(exponential, bits) - (1 << (bits - 3))
    return np.sign(stored) * saturating_shift_left(quotient, 2, bits)


def one_over_one_plus(values: Integers, bits: int = 32) -> Int64Array:
    """Reciprocal in fixed point, ``1 / (1 + x)`` for x in [0, 1].

    Reference: gemmlowp ``one_over_one_plus_x_for_x_in_0_1``.
    """
    return saturating_shift_left(_two_over_one_plus(np.asarray(values, np.int64), bits), 1, bits)


def inverse_sqrt_multiplier(values: Integers) -> tuple[Int64Array, Int64Array]:
    """Reciprocal square root, ``1 / sqrt(x)``, as quantised multipliers of int32 range.

    Arguments have int32 range and are at least 0; 0 counts as 1. Shifts are at most 0: the
    result is ``multiplier * 2**(shift - 31)``. Five Newton steps from 1 on the argument,
    brought to three integer bits by an even shift, as the root halves it. Arguments of 2**29
    and above lose their last two bits.

    Reference: TFLite ``GetInvSqrtQuantizedMultiplierExp``.
    """
    stored = np.maximum(np.asarray(values, np.int64), 1)
    is_one = stored == 1
    down = (stored >= 1 << 29).astype(np.int64)
    stored = stored >> (2 * down)
    up = (leading_zeros(stored) - 3) // 2
    half = rounding_shift_right((stored << (2 * up)) >> 1, 1)
    x: Int64Array = np.full_like(stored, 1 << 28)
    # As many Newton steps as the reference makes, whether or not they change anything.
    for _ in range(5):
        cube = saturating_shift_left(multiply_high(multiply_high(x, x), x), 6)
        step = multiply_high(x, 3 << 27) - multiply_high(half, cube)
        x = saturating_shift_left(step, 3)
    right_shift = 11 + down - up
    multiplier = multiply_high(x, HALF_ROOT_OF_TWO) << np.maximum(-right_shift, 0)
    return (
        np.where(is_one, _one(32), multiplier),
        np.where(is_one, 0, -np.maximum(right_shift, 0)),
    )


def _exp_near_zero(a: Int64Array, bits: int) -> Int64Array:
    """``exp(x)`` for x in [-1/4, 0), without integer bits."""
    factor = _constant(_EXP_MINUS_EIGHTH, bits)
    x = a + (1 << (bits - 4))
    square = multiply_high(x, x, bits)
    cube = multiply_high(square, x, bits)
    fourth = rounding_shift_right(multiply_high(square, square, bits), 2)
    tail = multiply_high(fourth + cube, _constant(_THIRD, bits), bits) + square
    x += rounding_shift_right(tail, 1)
    return np.minimum(multiply_high(x, factor, bits) + factor, _one(bits))


def _two_over_one_plus(a: Int64Array, bits: int) -> Int64Array:
    """``2 / (1 + x)`` for x in [0, 1] with two integer bits, by three Newton steps."""
    half_denominator = (a + _one(bits) + 1) >> 1
    x = multiply_high(half_denominator, _constant(MINUS_32_17THS, bits), bits)
    x += _constant(PLUS_48_17THS, bits)
    for _ in range(3):
        error = (1 << (bits - 3)) - multiply_high(half_denominator, x, bits)
        x += saturating_shift_left(multiply_high(x, error, bits), 2, bits)
    return x


def _constant(stored: int, bits: int) -> int:
    """Round a constant of 32 bits to fewer, half away from zero."""
    dropped = 32 - bits
    half = (1 << dropped) >> 1
    rounded = (abs(stored) + half) >> dropped
    return rounded if stored >= 0 else -rounded


def _one(bits: int) -> int:
    """Highest stored integer, which is 1 where there are no integer bits."""
    return (1 << (bits - 1)) - 1
