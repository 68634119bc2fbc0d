"""Requantisation of integer sums with few instructions: one multiplication and one shift.

References
----------
TFLite ``MultiplyByQuantizedMultiplier`` for 32-bit and for 64-bit accumulators.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from armpy.core.numerics.fixed_point import Multiplier
from armpy.core.numerics.rounding import Int64Array

__all__ = [
    "Requantization",
    "reduced_multiplier",
]


@dataclass(frozen=True, slots=True)
class Requantization:
    """Requantisation of sums with a bias: ``(sum * factor + addend) >> shift``.

    For sums below 2**31 and biases of at most 2**30 nothing leaves 64 bits.

    gemmlowp rounds twice: ``a = floor(p / 2**31 + 1/2)`` and then ``a / 2**r`` with halves away
    from zero, which is ``floor((a + 2**(r-1) - [a < 0]) / 2**r)``. As ``floor(floor(u) + n) =
    floor(u + n)`` for integers n, both are one shift of ``p + 2**30 + (2**(r-1) - [a < 0]) *
    2**31`` by ``31 + r``, and ``a < 0`` where ``p + 2**30 < 0``. Where the result is clamped at
    real 0 anyway, the term for negative values changes nothing and is left out. A shift of the
    sum to the left is one by less to the right behind.
    """

    factor: Int64Array
    addend: Int64Array
    shift: Int64Array
    """`factor`, `addend` and `shift`: shape () or (channels,). The bias is part of `addend`."""
    half: Int64Array | None = None
    step: Int64Array | None = None
    """`half` and `step`: both or neither. With them, `half` is added before the shift, less `step`
    where what is to be shifted is negative.
    """

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
        (channels,), have magnitudes of at most 2**47.
        """
        factor, shift = reduced_multiplier(multiplier)
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

    Reference: TFLite ``MultiplyByQuantizedMultiplier(int64_t, ...)``.

    Returns
    -------
    factor : ndarray, int64, shape of the multiplier
        Of 15 bits.
    shift : ndarray, int64, shape of the multiplier
        The real factor is ``factor * 2**-shift``; from -15 to 46.
    """
    whole = multiplier.multiplier
    factor = np.where(whole < 0x7FFF0000, (whole + (1 << 15)) >> 16, 0x7FFF)
    return factor, 15 - multiplier.left_shift + multiplier.right_shift
