"""gemmlowp's fixed-point functions, written down in Python's integers from its C++ templates.

Python's integers do not overflow, and there is one number at a time: what can go wrong with
arrays, shifts of negative numbers and saturation goes wrong elsewhere than here.

References
----------
gemmlowp ``fixedpoint/fixedpoint.h``; TFLite ``kernels/internal/common.h``.
"""

from __future__ import annotations

from hypothesis import strategies as st

_EDGES = [0, 1, 2, 3, 1 << 15, (1 << 24) - 1, 1 << 24, (1 << 30) - 1, 1 << 30, (1 << 31) - 1]

accumulators = st.one_of(
    st.sampled_from([*_EDGES, *(-edge for edge in _EDGES), -(1 << 31)]),
    st.integers(-(1 << 31), (1 << 31) - 1),
    st.integers(-1000, 1000),
)
"""Sums of 32 bits."""

multipliers = st.one_of(
    st.sampled_from([1 << 30, (1 << 30) + 1, (1 << 31) - 1, 3 << 29, 0]),
    st.integers(1 << 30, (1 << 31) - 1),
)
"""Of 31 bits; with a shift they are quantised multipliers."""

_EXPONENTIALS = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)
"""``exp(-2**e)`` with 31 fraction bits for e from -2."""


def truncated(numerator: int, denominator: int) -> int:
    """C's division."""
    quotient = abs(numerator) // abs(denominator)
    return quotient if (numerator < 0) == (denominator < 0) else -quotient


def doubling_high_multiply(a: int, b: int, bits: int = 32) -> int:
    """SaturatingRoundingDoublingHighMul."""
    if a == b == -(1 << (bits - 1)):
        return (1 << (bits - 1)) - 1
    nudge = 1 << (bits - 2) if a * b >= 0 else 1 - (1 << (bits - 2))
    return truncated(a * b + nudge, 1 << (bits - 1))


def divide_by_power(x: int, exponent: int) -> int:
    """RoundingDivideByPOT."""
    mask = (1 << exponent) - 1
    threshold = (mask >> 1) + (1 if x < 0 else 0)
    return (x >> exponent) + (1 if (x & mask) > threshold else 0)


def multiply_by_power(x: int, exponent: int, bits: int = 32) -> int:
    """SaturatingRoundingMultiplyByPOT."""
    if exponent <= 0:
        return divide_by_power(x, -exponent)
    highest = (1 << (bits - 1)) - 1
    return max(min(x << exponent, highest), -highest - 1)


def multiply(x: int, multiplier: int, shift: int) -> int:
    """MultiplyByQuantizedMultiplier."""
    high = doubling_high_multiply(x << max(shift, 0), multiplier)
    return divide_by_power(high, max(-shift, 0))


def constant(raw: int, bits: int) -> int:
    """A constant given with 32 bits."""
    return divide_by_power(raw, 32 - bits)


def exp_on_negative_values(a: int, integer_bits: int, bits: int = 32) -> int:
    """exp_on_negative_values; also its result for an interval, of which it makes use."""
    fraction_bits = bits - 1 - integer_bits
    quarter = 1 << (fraction_bits - 2)
    part = (a & (quarter - 1)) - quarter
    result = _exp_on_interval(multiply_by_power(part, integer_bits, bits), bits)
    for exponent, raw in enumerate(_EXPONENTIALS, -2):
        if integer_bits > exponent and (part - a) & (1 << (fraction_bits + exponent)):
            result = doubling_high_multiply(result, constant(raw, bits), bits)
    if integer_bits > 5 and a < -(32 << fraction_bits):
        result = 0
    return (1 << (bits - 1)) - 1 if a == 0 else result


def _exp_on_interval(a: int, bits: int) -> int:
    """exp_on_interval_between_negative_one_quarter_and_0_excl."""
    term, third = constant(1895147668, bits), constant(715827883, bits)
    x = a + (1 << (bits - 4))
    x2 = doubling_high_multiply(x, x, bits)
    x3 = doubling_high_multiply(x2, x, bits)
    x4_over_4 = multiply_by_power(doubling_high_multiply(x2, x2, bits), -2)
    rest = multiply_by_power(doubling_high_multiply(x4_over_4 + x3, third, bits) + x2, -1)
    return min(term + doubling_high_multiply(term, x + rest, bits), (1 << (bits - 1)) - 1)


def _two_over_one_plus(a: int, bits: int) -> int:
    """The Newton-Raphson division, with two integer bits."""
    total = a + (1 << (bits - 1)) - 1
    half_denominator = truncated(total + (1 if total >= 0 else -1), 2)
    x = constant(1515870810, bits)
    x += doubling_high_multiply(half_denominator, constant(-1010580540, bits), bits)
    for _ in range(3):
        error = (1 << (bits - 3)) - doubling_high_multiply(half_denominator, x, bits)
        x += multiply_by_power(doubling_high_multiply(x, error, bits), 2, bits)
    return x


def one_over_one_plus(a: int, bits: int = 32) -> int:
    """one_over_one_plus_x_for_x_in_0_1."""
    return multiply_by_power(_two_over_one_plus(a, bits), 1, bits)


def logistic(a: int, integer_bits: int, bits: int = 32) -> int:
    """Logistic function."""
    if a == 0:
        return 1 << (bits - 2)
    positive = one_over_one_plus(exp_on_negative_values(-abs(a), integer_bits, bits), bits)
    return positive if a > 0 else (1 << (bits - 1)) - 1 - positive


def tanh(a: int, integer_bits: int, bits: int = 32) -> int:
    """Hyperbolic tangent."""
    exponential = exp_on_negative_values(-abs(a), integer_bits + 1, bits)
    quotient = _two_over_one_plus(exponential, bits) - (1 << (bits - 3))
    sign = (a > 0) - (a < 0)
    return sign * multiply_by_power(quotient, 2, bits)
