"""Fixed-point arithmetic of the gates of integer LSTMs: int16 held in int64 arrays."""

from __future__ import annotations

from functools import cache

import numpy as np

from armpy.core.numerics import gemmlowp
from armpy.core.numerics.rounding import Int64Array, rounding_shift_right

LARGEST = 32767
"""The largest int16, which is 1 where there are no integer bits."""


def saturate(values: Int64Array) -> Int64Array:
    """Bring into the range of int16."""
    return np.clip(values, -LARGEST - 1, LARGEST)


def shifted_product(lhs: Int64Array, rhs: Int64Array, exponent: int) -> Int64Array:
    """Product divided by a power of two, rounded half away from zero."""
    product = lhs * rhs
    return rounding_shift_right(product, exponent, out=product)


def truncated_quotient(values: Int64Array, divisor: int) -> Int64Array:
    """Quotient rounded towards zero."""
    quotient: Int64Array = np.abs(values) // divisor
    return quotient * np.sign(values)


def sigmoid(values: Int64Array) -> Int64Array:
    """Logistic function of int16 with three integer bits."""
    return _sigmoid_table()[values + LARGEST + 1]


def tanh(values: Int64Array, integer_bits: int) -> Int64Array:
    """Hyperbolic tangent of int16."""
    return _tanh_table(integer_bits)[values + LARGEST + 1]


@cache
def _sigmoid_table() -> Int64Array:
    return gemmlowp.logistic(np.arange(-LARGEST - 1, LARGEST + 1), 3, bits=16)


@cache
def _tanh_table(integer_bits: int) -> Int64Array:
    return gemmlowp.tanh(np.arange(-LARGEST - 1, LARGEST + 1), integer_bits, bits=16)
