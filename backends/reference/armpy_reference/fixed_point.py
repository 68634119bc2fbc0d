"""Fixed-point arithmetic exactly as TFLite's reference kernels define it.

References
----------
TFLite ``kernels/internal/common.h`` and ``quantization_util.cc``; gemmlowp
``fixedpoint.h``; Jacob et al., "Quantization and Training of Neural Networks for
Efficient Integer-Arithmetic-Only Inference", 2018, section 2.2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from armpy.records import dataclass

Int64Array: TypeAlias = npt.NDArray[np.int64]

_TOO_LARGE = 2.0**32


def quantize_multiplier(real: float) -> tuple[int, int]:
    """Write a non-negative real number as ``multiplier * 2**(shift - 31)``.

    Returns
    -------
    multiplier : int
        0, or in [2**30, 2**31).
    shift : int
        Positive is to the left. Numbers too small to matter become (0, 0), and those that are too
        large, infinity too, the largest pair.
    """
    if real == 0.0:
        return 0, 0
    if real >= _TOO_LARGE:
        return (1 << 31) - 1, 30
    fraction, shift = math.frexp(real)
    # C's round(), half away from zero; the fraction is positive.
    multiplier = math.floor(fraction * (1 << 31) + 0.5)
    if multiplier == 1 << 31:
        multiplier //= 2
        shift += 1
    if shift < -31:
        return 0, 0
    if shift > 30:
        return (1 << 31) - 1, 30
    return multiplier, shift


@dataclass(frozen=True, slots=True)
class Multiplier:
    """One fixed-point multiplier, or one per output channel.

    Parameters
    ----------
    multiplier : ndarray, int64, shape () or (channels,)
        In [2**30, 2**31), or 0.
    left_shift, right_shift : ndarray, int64, shape of `multiplier`
        At least 0, the former at most 30; at most one of them is above 0.
    """

    multiplier: Int64Array
    left_shift: Int64Array
    right_shift: Int64Array

    @classmethod
    def from_real(cls, real: float | Sequence[float] | npt.NDArray[np.float64]) -> Multiplier:
        """Multiplier(s) for real factors >= 0."""
        fraction, exponent = np.frexp(np.minimum(np.asarray(real, np.float64), _TOO_LARGE))
        rounded = np.asarray(np.floor(fraction * (1 << 31) + 0.5), np.int64)
        is_one = rounded == 1 << 31
        shift = np.where(is_one, exponent + 1, exponent).astype(np.int64)
        too_small, too_large = shift < -31, shift > 30
        multiplier = np.where(is_one, 1 << 30, rounded)
        multiplier = np.where(too_large, (1 << 31) - 1, np.where(too_small, 0, multiplier))
        shift = np.where(too_large, 30, np.where(too_small, 0, shift))
        return cls(multiplier, np.maximum(shift, 0), np.maximum(-shift, 0))

    @classmethod
    def from_pairs(cls, pairs: Sequence[tuple[int, int]], shape: tuple[int, ...]) -> Multiplier:
        """Multiplier(s) from (multiplier, shift) as `quantize_multiplier` gives them.

        Notes
        -----
        Shifts may have been changed since; one that is too large gives the largest multiplier.
        """
        columns = np.array(pairs, np.int64).reshape(-1, 2)
        multiplier, shift = columns[:, 0].reshape(shape), columns[:, 1].reshape(shape)
        multiplier = np.where(shift > 30, np.sign(multiplier) * ((1 << 31) - 1), multiplier)
        shift = np.minimum(shift, 30)
        return cls(multiplier, np.maximum(shift, 0), np.maximum(-shift, 0))

    def apply(self, accumulators: npt.NDArray[Any]) -> Int64Array:
        """Multiply integers and round, as ``MultiplyByQuantizedMultiplier`` does.

        Parameters
        ----------
        accumulators : ndarray, any integer dtype, shape (..., channels)
            Their magnitude is below 2**32.

        Returns
        -------
        ndarray, int64, shape of `accumulators`
            A new array. Nothing overflows: multipliers of at most 2**30 give less than 2**62.

        Notes
        -----
        Double rounding: the doubled high product rounds half up, the right shift half
        away from zero. Left shifts are part of the former: for integers,
        ``(v 2**l m + 2**30) >> 31`` is ``(v m + 2**(30 - l)) >> (31 - l)``, which needs 63 bits.
        """
        result = accumulators.astype(np.int64)
        self.apply_in_place(result)
        return result

    def apply_in_place(self, values: Int64Array) -> None:
        """`apply`, overwriting int64 accumulators."""
        np.multiply(values, self.multiplier, out=values)
        values += np.left_shift(1, 30 - self.left_shift)
        values >>= 31 - self.left_shift
        if self.right_shift.any():
            rounding_shift_right(values, self.right_shift)


def rounding_shift_right(values: Int64Array, exponent: int | Int64Array) -> None:
    """Divide by a power of two in place, rounding half away from zero.

    References
    ----------
    gemmlowp ``RoundingDivideByPOT``.
    """
    exponents = np.asarray(exponent, np.int64)
    half = np.where(exponents > 0, np.left_shift(1, np.maximum(exponents - 1, 0)), 0)
    # A negative value's half goes away from zero, which is down: subtract one before.
    sign = values >> 63
    sign *= exponents > 0
    values += sign
    values += half
    values >>= exponents
