"""Rounding, saturation and shifts.

References
----------
gemmlowp ``fixedpoint/fixedpoint.h``.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = [
    "Int64Array",
    "leading_zeros",
    "round_half_away",
    "rounding_shift_right",
    "saturate",
    "saturating_shift_left",
]

Int64Array: TypeAlias = npt.NDArray[np.int64]
Integers: TypeAlias = npt.NDArray[Any] | int  # Any: of every integer type


def round_half_away(values: Any) -> Any:  # Any: a scalar or an array of either float type
    """Round half away from zero to whole floats, as C's ``round`` does; NaN and infinities stay."""
    half = np.asarray(values).dtype.type(0.5)
    # The largest number below one half: added to 0.49999997 it does not round up to 1.
    below_half = np.nextafter(half, half.dtype.type(0))
    return np.trunc(values + np.copysign(below_half, values))


def rounding_shift_right(
    values: Integers, exponent: Integers, out: Int64Array | None = None
) -> Int64Array:
    """Rounding right shift: divide by a power of two, rounding half away from zero.

    Exponents are from 0 to 62 and broadcast to the values. Returns `out`, which may be
    `values`, or a new array.

    Reference: gemmlowp ``RoundingDivideByPOT``.
    """
    stored, exponents = np.asarray(values, np.int64), np.asarray(exponent, np.int64)
    half = np.where(exponents > 0, np.left_shift(1, np.maximum(exponents - 1, 0)), 0)
    # A negative value's half goes away from zero, which is down: subtract one before.
    sign = stored >> 63
    sign *= exponents > 0
    result: Int64Array = np.add(stored, sign, out=out)
    result += half
    result >>= exponents
    return result


def saturate(values: Integers, bits: int = 32) -> Int64Array:
    """Saturate: clamp to the range of a signed integer of 1 to 63 bits."""
    highest = (1 << (bits - 1)) - 1
    return np.clip(np.asarray(values, np.int64), -highest - 1, highest)


def saturating_shift_left(values: Integers, exponent: Integers, bits: int = 32) -> Int64Array:
    """Saturating left shift: multiply by a power of two and clamp to so many bits.

    Exponents are at least 0 and broadcast to the values, which fit 63 bits when shifted.

    Reference: gemmlowp ``SaturatingRoundingMultiplyByPOT`` for exponents that are not negative.
    """
    return saturate(np.left_shift(np.asarray(values, np.int64), exponent), bits)


def leading_zeros(values: Integers) -> Int64Array:
    """Count leading zeros of unsigned 32-bit integers, 0 to 32."""
    # The exponent of a float64 is the bit length, as it holds 53 bits exactly.
    return 32 - np.frexp(np.asarray(values, np.float64))[1].astype(np.int64)
