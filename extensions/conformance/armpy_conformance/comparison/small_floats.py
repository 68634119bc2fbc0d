"""Floats that NumPy has no type for, read from their descriptions, bit field by bit field."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from armpy.types import DataType

_FIELDS: dict[DataType, tuple[int, int, int, int]] = {
    DataType.FLOAT8_E4M3FN: (4, 3, 7, 0x7E),
    DataType.FLOAT8_E4M3FNUZ: (4, 3, 8, 0x7F),
    DataType.FLOAT8_E5M2: (5, 2, 15, 0x7B),
    DataType.FLOAT8_E5M2FNUZ: (5, 2, 16, 0x7F),
    DataType.FLOAT8_E8M0: (8, 0, 127, 0xFE),
    DataType.FLOAT4_E2M1: (2, 1, 1, 0x7),
}
"""Bits of the exponent and of the mantissa, the exponent's bias, the largest number's pattern."""


def real_numbers(bits: npt.NDArray[Any], data_type: DataType) -> npt.NDArray[np.float64]:
    """The numbers that bit patterns stand for; NaN for whatever is not finite."""
    if data_type is DataType.BFLOAT16:
        return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return np.asarray(_numbers(data_type)[bits])


def nearest_bits(reals: npt.NDArray[Any], data_type: DataType) -> npt.NDArray[Any]:
    """Patterns of the nearest finite numbers; of bfloat16, those that are not further from 0."""
    if data_type is DataType.BFLOAT16:
        return (np.asarray(reals, np.float32).view(np.uint32) >> 16).astype(np.uint16)
    numbers = np.nan_to_num(_numbers(data_type), nan=np.inf)
    wide = np.asarray(reals, np.float64)[..., None]
    return np.asarray(np.abs(wide - numbers).argmin(axis=-1)).astype(np.uint8)


@cache
def _numbers(data_type: DataType) -> npt.NDArray[np.float64]:
    """The number of every pattern, by the pattern."""
    exponent_bits, mantissa_bits, bias, largest = _FIELDS[data_type]
    sign_bit = 0 if data_type is DataType.FLOAT8_E8M0 else 1 << (exponent_bits + mantissa_bits)
    numbers = np.full(256, np.nan)
    for pattern in range(largest + 1):
        exponent, mantissa = pattern >> mantissa_bits, pattern & ((1 << mantissa_bits) - 1)
        fraction = mantissa / (1 << mantissa_bits)
        if exponent or not sign_bit:
            number = (1 + fraction) * 2.0 ** (exponent - bias)
        else:
            number = fraction * 2.0 ** (1 - bias)
        numbers[pattern] = number
        if sign_bit and (number or not data_type.name.endswith("FNUZ")):
            numbers[pattern | sign_bit] = -number
    return numbers
