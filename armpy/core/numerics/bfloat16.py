"""bfloat16: the upper halves of float32 numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["bfloat16_bits", "bfloat16_values"]


def bfloat16_bits(values: npt.NDArray[Any]) -> npt.NDArray[np.uint16]:  # Any: any real type
    """Bit patterns of the nearest bfloat16 numbers, ties to even; NaN stays NaN.

    Parameters
    ----------
    values : ndarray of any real type, shape (...)
        Converted to float32 first.
    """
    bits = values.astype(np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(values), 0x7FC0, rounded).astype(np.uint16)


def bfloat16_values(bits: npt.NDArray[np.uint16]) -> npt.NDArray[np.float32]:
    """The numbers that bit patterns of bfloat16 stand for, exactly."""
    return (bits.astype(np.uint32) << 16).view(np.float32)
