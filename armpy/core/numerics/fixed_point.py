"""Quantised multipliers: real factors in fixed point, and the products with them.

References
----------
TFLite ``kernels/internal/common.h`` and ``quantization_util.cc``; gemmlowp
``fixedpoint/fixedpoint.h``; Jacob et al., "Quantization and Training of Neural Networks for
Efficient Integer-Arithmetic-Only Inference", 2018, section 2.2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from armpy.core.numerics.rounding import Int64Array, Integers, rounding_shift_right

__all__ = [
    "Multiplier",
    "mean_multiplier",
    "multiply_high",
    "quantize_multiplier",
    "short_multiplier",
]

_TOO_LARGE = 2.0**32


def multiply_high(lhs: Integers, rhs: Integers, bits: int = 32) -> Int64Array:
    """Saturating rounding doubling high multiply: the high half of twice the product.

    Operands and result have 32 or 16 bits. Rounded half up; of all products only that of the
    two lowest integers saturates.

    Reference: gemmlowp ``SaturatingRoundingDoublingHighMul``; Arm's SQRDMULH.
    """
    product: Int64Array = np.asarray(lhs, np.int64) * np.asarray(rhs, np.int64)
    product += 1 << (bits - 2)
    product >>= bits - 1
    return np.minimum(product, (1 << (bits - 1)) - 1)


def quantize_multiplier(real: float) -> tuple[int, int]:
    """Quantised multiplier of a real number: ``multiplier * 2**(shift - 31)``.

    The number is at least 0 and not NaN. The multiplier is 0 or in [2**30, 2**31). The shift is
    from -31 to 30; positive is to the left. Numbers too small to matter become (0, 0), and
    those that are too large, infinity too, the largest pair.

    Reference: TFLite ``QuantizeMultiplier``.
    """
    if real >= _TOO_LARGE:
        return (1 << 31) - 1, 30
    fraction, shift = math.frexp(real)
    # C's round(), half away from zero; the fraction is positive.
    multiplier = math.floor(fraction * (1 << 31) + 0.5)
    # Rounded up to a whole, which 31 bits do not hold.
    if multiplier == 1 << 31:
        multiplier, shift = multiplier // 2, shift + 1
    if shift < -31:
        return 0, 0
    return (multiplier, shift) if shift <= 30 else ((1 << 31) - 1, 30)


def short_multiplier(real: float) -> tuple[int, int]:
    """Quantised multiplier of 16 bits: ``multiplier * 2**(shift - 15)``.

    The multiplier is 0 or in [2**14, 2**15); the shift is that of `quantize_multiplier`.

    Reference: TFLite ``DownScaleInt32ToInt16Multiplier``.
    """
    multiplier, shift = quantize_multiplier(real)
    return min((multiplier + (1 << 15)) >> 16, (1 << 15) - 1), shift


def mean_multiplier(multiplier: int, shift: int, count: int) -> tuple[int, int]:
    """Quantised multiplier divided by the number of elements of a mean, which is at least 1.

    The multiplier keeps as many bits as the shift has room for; it is rounded down.

    Reference: TFLite ``reference_ops::QuantizedMeanOrSum``.
    """
    left = min(count.bit_length() - 1, 32, 31 + shift)
    return (multiplier << left) // count, shift - left


@dataclass(frozen=True, slots=True)
class Multiplier:
    """Quantised multiplier of a tensor, or one per output channel."""

    multiplier: Int64Array
    """Shape () or (channels,). Magnitudes in [2**30, 2**31), or 0."""
    left_shift: Int64Array
    right_shift: Int64Array
    """`left_shift` and `right_shift`: at least 0, the former at most 30; at most one of them is
    above 0.
    """

    @classmethod
    def from_real(cls, real: float | Sequence[float] | npt.NDArray[np.float64]) -> Multiplier:
        """Quantise real factors."""
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
        """Take multipliers and shifts as `quantize_multiplier` gives them.

        Multipliers may have been negated, and shifts changed. A shift that is too large gives
        the largest multiplier. `shape` is () or (channels,).
        """
        columns = np.array(pairs, np.int64).reshape(-1, 2)
        multiplier, shift = columns[:, 0].reshape(shape), columns[:, 1].reshape(shape)
        multiplier = np.where(shift > 30, np.sign(multiplier) * ((1 << 31) - 1), multiplier)
        shift = np.minimum(shift, 30)
        return cls(multiplier, np.maximum(shift, 0), np.maximum(-shift, 0))

    def apply(self, accumulators: Any, out: Int64Array | None = None) -> Int64Array:
        """Multiply integers, shape (..., channels), by the quantised multiplier, rounding twice.

        Magnitudes are below 2**32; floats that are integers are taken, too. Returns `out`,
        which may be `accumulators`, or a new array; not saturated. Nothing overflows: integers
        below 2**32 times multipliers below 2**31 and what is added need 63 bits.

        Double rounding: the doubled high product rounds half up, the right shift half away from
        zero. Left shifts are part of the former: for integers, ``(v 2**l m + 2**30) >> 31`` is
        ``(v m + 2**(30 - l)) >> (31 - l)``, which needs 63 bits.

        Reference: TFLite ``MultiplyByQuantizedMultiplier``.
        """
        if out is None:
            values = np.array(accumulators, np.int64)
        else:
            values = out
            if out is not accumulators:
                np.copyto(out, accumulators, casting="unsafe")
        np.multiply(values, self.multiplier, out=values)
        # Less to the right behind instead of to the left before: that would not fit 64 bits.
        values += np.left_shift(1, 30 - self.left_shift)
        values >>= 31 - self.left_shift
        if self.right_shift.any():
            rounding_shift_right(values, self.right_shift, out=values)
        return values
