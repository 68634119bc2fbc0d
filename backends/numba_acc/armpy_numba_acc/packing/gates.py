"""Tables of the functions of integer LSTMs: sigmoid and tanh of 16-bit numbers.

References
----------
gemmlowp ``fixedpoint/fixedpoint.h``, whose 16-bit arithmetic is followed step by step.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

from armpy_numba_acc.packing.fixed_point import Int64Array, high_product, shifted_right

_ONE = (1 << 15) - 1
"""The highest int16, which is 1 where there are no integer bits."""

# 15 fraction bits; the 17ths have 13.
_EXP_MINUS_EIGHTH = 28918
_THIRD = 10923
_48_OVER_17 = 23130
_MINUS_32_OVER_17 = -15420

_EXP_FACTORS = (
    (-2, 25520),
    (-1, 19875),
    (0, 12055),
    (1, 4435),
    (2, 600),
    (3, 11),
    (4, 0),
)
"""Exponents ``e`` and ``exp(-2**e)`` with 15 fraction bits."""


@cache
def sigmoid_table() -> npt.NDArray[np.int16]:
    """Logistic function of every number with 3 integer bits, lowest first.

    Returns
    -------
    ndarray, int16, shape (65536,)
        With 15 fraction bits.
    """
    numbers = _every_number()
    exponential = _exp_of_negative(-np.abs(numbers), 3)
    positive = _saturated(_two_over_one_plus(exponential) << 1)
    result = np.where(numbers > 0, positive, _ONE - positive)
    result[numbers == 0] = 1 << 14
    return result.astype(np.int16)


@cache
def tanh_table(integer_bits: int) -> npt.NDArray[np.int16]:
    """Hyperbolic tangent of every number with some integer bits; otherwise as above."""
    numbers = _every_number()
    exponential = _exp_of_negative(-np.abs(numbers), integer_bits + 1)
    quotient = _saturated((_two_over_one_plus(exponential) - (1 << 13)) << 2)
    return (np.sign(numbers) * quotient).astype(np.int16)


def _every_number() -> Int64Array:
    """All of int16, lowest first."""
    return np.arange(-_ONE - 1, _ONE + 1, dtype=np.int64)


def _high(x: Int64Array, y: Int64Array | int) -> Int64Array:
    """High half of the doubled product of 16-bit numbers."""
    return high_product(x, y, 16)


def _saturated(numbers: Int64Array) -> Int64Array:
    """Clamp to 16 bits."""
    return np.clip(numbers, -_ONE - 1, _ONE)


def _exp_of_negative(numbers: Int64Array, integer_bits: int) -> Int64Array:
    """Exponentials of numbers that are not positive.

    Notes
    -----
    A polynomial around -1/8 for the part in [-1/4, 0), times a factor per binary digit of the
    rest.
    """
    fraction_bits = 15 - integer_bits
    quarter = 1 << (fraction_bits - 2)
    part = (numbers & (quarter - 1)) - quarter
    result = _exp_near_zero(_saturated(part << integer_bits))
    rest = part - numbers
    for exponent, factor in _EXP_FACTORS:
        if exponent < integer_bits:
            digit = rest & (1 << (fraction_bits + exponent))
            result = np.where(digit != 0, _high(result, factor), result)
    if integer_bits > 5:
        result[numbers < -(32 << fraction_bits)] = 0
    result[numbers == 0] = _ONE
    return result


def _exp_near_zero(numbers: Int64Array) -> Int64Array:
    """Exponentials of numbers in [-1/4, 0)."""
    x = numbers + (1 << 12)
    square = _high(x, x)
    cube = _high(square, x)
    fourth = shifted_right(_high(square, square), 2)
    tail = _high(fourth + cube, _THIRD) + square
    x = x + shifted_right(tail, 1)
    return np.minimum(_high(x, _EXP_MINUS_EIGHTH) + _EXP_MINUS_EIGHTH, _ONE)


def _two_over_one_plus(numbers: Int64Array) -> Int64Array:
    """``2 / (1 + x)`` for x in [0, 1], with two integer bits, by three Newton steps."""
    half_denominator = (numbers + _ONE + 1) >> 1
    x = _high(half_denominator, _MINUS_32_OVER_17) + _48_OVER_17
    for _ in range(3):
        error = (1 << 13) - _high(half_denominator, x)
        x = x + _saturated(_high(x, error) << 2)
    return x
