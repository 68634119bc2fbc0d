"""Fixed-point arithmetic of TFLite's reference kernels, for code that Numba compiles."""

from __future__ import annotations

from numba import int32, int64

from armpy_numba_acc.llvm.primitives import compiled


@compiled
def rescaled(value: int, multiplier: int, shift: int) -> int:
    """An int64 below 2**32 times ``multiplier * 2**(shift - 31)``, rounded twice.

    Left shifts of at most 30 bits are part of the first rounding, and overflow nothing.

    Reference: TFLite ``MultiplyByQuantizedMultiplier``.
    """
    left = max(shift, 0)
    high = (value * multiplier + (int64(1) << (30 - left))) >> (31 - left)
    return halved(high, max(-shift, 0))


@compiled
def rescaled_once(value: int, multiplier: int, shift: int) -> int:
    """`rescaled` of an int32: adds what both roundings add, and shifts once.

    Vectors shift by what differs, and multiply 64 bits, in several instructions each.
    """
    first, right = 31 - max(shift, 0), max(-shift, 0)
    added = (int64(1) << (first - 1)) + (((int64(1) << right) >> 1) << first)
    below = int64(1) << first if right > 0 else int64(0)
    product = int64(int32(value)) * int64(int32(multiplier))
    result: int = (product + added - ((product >> 63) & below)) >> (first + right)
    return result


@compiled
def halved(value: int, exponent: int) -> int:
    """An int64 divided by a power of two, rounded half away from zero."""
    # Negative numbers get one less, so that their ties go down as those of positive ones go up.
    half = (1 << exponent) >> 1
    return (value + half + ((value >> 63) if exponent > 0 else 0)) >> exponent


@compiled
def wrapped(value: int) -> int:
    """An int64 as an int32 holds it."""
    result: int = int64(int32(value))
    return result


@compiled
def limited(value: int, low: int, high: int) -> int:
    """An int64 moved into a range."""
    return min(max(value, low), high)
