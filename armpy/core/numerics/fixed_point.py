"""Quantised multipliers: real factors in fixed point, products with them, and requantisation.

References
----------
TFLite ``kernels/internal/common.h`` and ``quantization_util.cc``; gemmlowp
``fixedpoint/fixedpoint.h``; Jacob et al., "Quantization and Training of Neural Networks for
Efficient Integer-Arithmetic-Only Inference", 2018, section 2.2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from armpy.core.dataclass import dataclass
from armpy.core.numerics.rounding import Int64Array, Integers, rounding_shift_right

__all__ = [
    "Multiplier",
    "Requantization",
    "mean_multiplier",
    "multiply_high",
    "quantize_multiplier",
    "reduced_multiplier",
    "short_multiplier",
]

_LARGEST_SUM = 1 << 47
"""Magnitude of sums in 64 bits that a multiplier of 16 bits leaves in this size."""

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
    left_shift: Int64Array  # from 0 to 30
    right_shift: Int64Array  # at least 0; at most one of the two shifts is above 0

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
        below 2**32 times multipliers below 2**31 and the addend need 63 bits.

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
        # A smaller right shift afterwards instead of a left shift before, which would overflow.
        values += np.left_shift(1, 30 - self.left_shift)
        values >>= 31 - self.left_shift
        if self.right_shift.any():
            rounding_shift_right(values, self.right_shift, out=values)
        return values


@dataclass(frozen=True, slots=True)
class Requantization:
    """Requantisation of sums with a bias: ``(sum * factor + addend) >> shift``.

    For sums below 2**31 and biases of at most 2**30 nothing leaves 64 bits.

    gemmlowp rounds twice: ``a = floor(p / 2**31 + 1/2)`` and then ``a / 2**r`` with halves away
    from zero, which is ``floor((a + 2**(r-1) - [a < 0]) / 2**r)``. As ``floor(floor(u) + n) =
    floor(u + n)`` for integers n, both are one shift of ``p + 2**30 + (2**(r-1) - [a < 0]) *
    2**31`` by ``31 + r``, and ``a < 0`` where ``p + 2**30 < 0``. Where the result is clamped at
    real 0 anyway, the term for negative values changes nothing and is left out. A shift of the
    sum to the left becomes a smaller shift to the right afterwards.
    """

    # Of shape () or (channels,).
    factor: Int64Array
    addend: Int64Array  # includes the bias
    shift: Int64Array
    # Both or neither: `half` is added before the shift, less `step` where the number is negative.
    half: Int64Array | None = None
    step: Int64Array | None = None

    @classmethod
    def rounding_twice(
        cls, multiplier: Multiplier, bias: Int64Array, keeps_negatives: bool = True
    ) -> Requantization:
        """Round as for 32-bit accumulators: halves up, then halves away from zero.

        `bias` has shape () or (channels,) and magnitudes of at most 2**30. Without
        `keeps_negatives` results below 0 may be one too high.
        """
        left, right, factor = multiplier.left_shift, multiplier.right_shift, multiplier.multiplier
        addend = bias * factor + np.left_shift(1, 30 - left)
        shift = 31 - left + right
        half = np.where(right > 0, np.left_shift(1, right + 30), 0)
        if not keeps_negatives or not right.any():
            return cls(factor, addend + half, shift)
        return cls(factor, addend, shift, half, np.where(right > 0, 1 << 31, 0))

    @classmethod
    def rounding_once(cls, multiplier: Multiplier, bias: Int64Array) -> Requantization:
        """Round as for 64-bit accumulators: a multiplier of 16 bits, halves up.

        The multiplier is shifted left by 14 bits at most; sums with the bias, of shape () or
        (channels,), have magnitudes of at most 2**47. Biases beyond saturate at 2**47, as the
        products with 16 bits would wrap around in 64 bits.

        Reference: TFLite ``MultiplyByQuantizedMultiplier(int64_t, ...)``, whose first operand has
        48 bits.
        """
        factor, shift = reduced_multiplier(multiplier)
        bias = np.clip(bias, -_LARGEST_SUM, _LARGEST_SUM)
        return cls(factor, bias * factor + np.left_shift(1, shift - 1), shift)

    def apply(self, sums: npt.NDArray[Any], out: Int64Array | None = None) -> Int64Array:
        """Requantise sums, shape (..., channels), without saturation.

        Sums may be floats that are integers. Returns `out`, which may be `sums`, or a new
        array.
        """
        values = np.empty(np.shape(sums), np.int64) if out is None else out
        np.copyto(values, sums, casting="unsafe")
        np.multiply(values, self.factor, out=values)
        np.add(values, self.addend, out=values)
        if self.half is not None and self.step is not None:
            # The sign of the rounded high product, a < 0 of the notes, as -1 or 0.
            correction = values >> 63
            correction &= self.step
            np.subtract(self.half, correction, out=correction)
            values += correction
        np.right_shift(values, self.shift, out=values)
        return values


def reduced_multiplier(multiplier: Multiplier) -> tuple[Int64Array, Int64Array]:
    """Quantised multiplier of 16 bits, as 64-bit accumulators are multiplied by.

    The real factor is ``factor * 2**-shift``, with 15 bits and a shift from -15 to 46.

    Reference: TFLite ``MultiplyByQuantizedMultiplier(int64_t, ...)``.
    """
    whole = multiplier.multiplier
    factor = np.where(whole < 0x7FFF0000, (whole + (1 << 15)) >> 16, 0x7FFF)
    return factor, 15 - multiplier.left_shift + multiplier.right_shift
