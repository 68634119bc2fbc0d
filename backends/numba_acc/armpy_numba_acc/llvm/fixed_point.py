"""Fixed-point arithmetic of TFLite's reference kernels, for code that Numba compiles."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"
# What Numba compiles has no types for mypy.

from __future__ import annotations

from numba import int32, int64, njit


@njit(error_model="numpy")
def rescaled(value, multiplier, shift):
    """An int64 below 2**32 times ``multiplier * 2**(shift - 31)``, rounded twice.

    Notes
    -----
    Left shifts of at most 30 bits are part of the first rounding, and overflow nothing.

    References
    ----------
    TFLite ``MultiplyByQuantizedMultiplier``.
    """
    left = max(shift, 0)
    high = (value * multiplier + (int64(1) << (30 - left))) >> (31 - left)
    return halved(high, max(-shift, 0))


@njit(error_model="numpy")
def halved(value, exponent):
    """An int64 divided by a power of two, rounded half away from zero."""
    half = (1 << exponent) >> 1
    return (value + half + ((value >> 63) if exponent > 0 else 0)) >> exponent


@njit(error_model="numpy")
def wrapped(value):
    """An int64 as an int32 holds it."""
    return int64(int32(value))


@njit(error_model="numpy")
def limited(value, low, high):
    """An int64 moved into a range."""
    return min(max(value, low), high)
