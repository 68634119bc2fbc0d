"""Floats of 16 (bfloat16), 8 and 4 bits: values of bit patterns, and the nearest patterns."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from armpy.core.dataclass import dataclass

__all__ = ["bfloat16_bits", "bfloat16_values", "float_bits", "float_values"]

Reals = npt.NDArray[Any]  # Any: reals of any width


@dataclass(frozen=True, slots=True)
class _Format:
    """Format of a small float: division of its bits, and their meaning."""

    mantissa_bits: int
    bias: int
    num_finite: int  # patterns without the sign that are finite numbers, from 0 on
    nan: int  # the pattern of NaN; -1 if there is none
    infinity: int = -1  # the pattern of positive infinity; -1 if there is none
    sign_bit: int = 0x80  # 0 if numbers have no sign
    has_negative_zero: bool = True


_FORMATS = {
    "FLOAT8_E4M3FN": _Format(3, 7, 127, 0x7F),
    "FLOAT8_E4M3FNUZ": _Format(3, 8, 128, 0x80, has_negative_zero=False),
    "FLOAT8_E5M2": _Format(2, 15, 124, 0x7E, infinity=0x7C),
    "FLOAT8_E5M2FNUZ": _Format(2, 16, 128, 0x80, has_negative_zero=False),
    "FLOAT8_E8M0": _Format(0, 127, 255, 0xFF, sign_bit=0),
    "FLOAT4_E2M1": _Format(1, 1, 8, -1, sign_bit=8),
}


def float_values(bits: Reals, name: str) -> npt.NDArray[np.float32]:
    """Numbers that bit patterns stand for, exactly.

    The format is called ``FLOAT8_E4M3FN``, ``FLOAT8_E4M3FNUZ``, ``FLOAT8_E5M2``,
    ``FLOAT8_E5M2FNUZ``, ``FLOAT8_E8M0``, ``FLOAT4_E2M1`` or ``BFLOAT16``.
    """
    if name == "BFLOAT16":
        return bfloat16_values(bits)
    return np.asarray(_table(name)[bits])


def float_bits(
    values: Reals, name: str, *, saturate: bool = True, rounding: str = "nearest"
) -> npt.NDArray[Any]:  # Any: uint8 or uint16
    """Bit patterns of the nearest numbers of a format, ties to even; NaN stays NaN.

    With `saturate`, numbers that are too large become the largest finite one; otherwise infinity,
    or NaN in formats without it. FLOAT4_E2M1, which has neither, always saturates; BFLOAT16 never
    does. FLOAT8_E8M0 is rounded to ``nearest``, with ties up, ``up`` or ``down``.

    Reference: ONNX Cast, "Float 8" and "Float stored in 4 bits".
    """
    if name == "BFLOAT16":
        return bfloat16_bits(values)
    wide = np.asarray(values, np.float64)
    if name == "FLOAT8_E8M0":
        return _powers_of_two(wide, saturate, rounding)
    form = _FORMATS[name]
    middles = _middles(name)
    distances = np.abs(wide)
    places = np.searchsorted(middles, distances, side="left")  # ties are below
    is_tie = (places < len(middles)) & (middles[np.minimum(places, len(middles) - 1)] == distances)
    places += is_tie & (places % 2 == 1)
    is_too_large = places >= form.num_finite
    places = np.minimum(places, form.num_finite - 1)
    is_negative = np.signbit(wide) & (form.has_negative_zero | (places > 0))
    if not saturate and form.infinity >= 0:
        places = np.where(is_too_large, form.infinity, places)
    places = places | np.where(is_negative, form.sign_bit, 0)
    lost = np.isnan(wide)
    if not saturate and form.infinity < 0:
        lost = lost | is_too_large
    if form.nan < 0:  # a type without NaN makes -0 of it
        places = np.where(np.isnan(wide), form.sign_bit, places)
    else:
        places = np.where(lost, form.nan, places)
    return np.asarray(places, np.uint8)


def _powers_of_two(wide: Reals, saturate: bool, rounding: str) -> npt.NDArray[np.uint8]:
    """Exponents of numbers, with 127 added."""
    mantissa, exponent = np.frexp(np.abs(wide))
    exponent = exponent - 1 + 127  # frexp's mantissa is from 1/2 to 1
    if rounding == "up":
        exponent = exponent + (mantissa > 0.5)
    elif rounding == "nearest":
        exponent = exponent + (mantissa >= 0.75)
    exponent = np.where(wide == 0, 0, exponent)
    highest = 254 if saturate else 255
    exponent = np.where(np.isinf(wide), highest, np.clip(exponent, 0, highest))
    return np.where(np.isnan(wide), 255, exponent).astype(np.uint8)


@cache
def _middles(name: str) -> Reals:
    """Return the middles between consecutive numbers without a sign."""
    form = _FORMATS[name]
    magnitudes = np.array([_magnitude(form, bits) for bits in range(form.num_finite + 1)])
    return np.asarray((magnitudes[1:] + magnitudes[:-1]) / 2)


def _magnitude(form: _Format, bits: int) -> float:
    """The number of a pattern without a sign, were all of them finite."""
    exponent, mantissa = divmod(bits, 1 << form.mantissa_bits)
    fraction = mantissa / (1 << form.mantissa_bits)
    if form.sign_bit == 0:
        return float(2.0 ** (exponent - form.bias))
    if exponent == 0:
        return float(fraction * 2.0 ** (1 - form.bias))
    return float((1 + fraction) * 2.0 ** (exponent - form.bias))


@cache
def _table(name: str) -> npt.NDArray[np.float32]:
    """The number of every byte."""
    form = _FORMATS[name]
    numbers = np.full(256, np.nan, np.float32)
    for bits in range(256):
        magnitude = bits & (form.sign_bit - 1) if form.sign_bit else bits
        if magnitude < form.num_finite:
            sign = -1 if bits & form.sign_bit else 1
            numbers[bits] = sign * np.float32(_magnitude(form, magnitude))
        elif magnitude == form.infinity:
            numbers[bits] = -np.inf if bits & form.sign_bit else np.inf
    if form.nan >= 0:
        numbers[form.nan] = np.nan
    numbers.flags.writeable = False
    return numbers


def bfloat16_bits(values: npt.NDArray[Any]) -> npt.NDArray[np.uint16]:  # Any: any real type
    """Bit patterns of the nearest bfloat16 numbers, ties to even; NaN stays NaN.

    bfloat16 is the upper half of a float32, to which values are converted first.
    """
    bits = values.astype(np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(values), 0x7FC0, rounded).astype(np.uint16)


def bfloat16_values(bits: npt.NDArray[np.uint16]) -> npt.NDArray[np.float32]:
    """The numbers that bit patterns of bfloat16 stand for, exactly."""
    return (bits.astype(np.uint32) << 16).view(np.float32)
