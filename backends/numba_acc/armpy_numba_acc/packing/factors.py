"""Factors of the sums of 8-bit layers, which scale them to the output."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from armpy.core import numerics
from armpy.core.dataclass import dataclass

Int64Array = npt.NDArray[np.int64]
Float32Array = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Rounding:
    """Rounding of scaled sums in float32.

    Numbers of either range below are 2**14 or 2**15 units of a float32's last place apart from
    each other. A result that is off by less than a unit can only have been rounded the wrong
    way if no fraction is left; one that is off by less than two, if it is within two.
    """

    has_negatives: bool  # whether results below the zero point matter
    is_imprecise: bool  # whether float32 may be off by a unit of its last place or more

    @property
    def base(self) -> int:
        """Added to results so that all that bytes hold lie between two powers of two."""
        return 768 if self.has_negatives else 256

    @property
    def unit(self) -> float:
        """Return the value of the last bit of such numbers."""
        return 2.0**-14 if self.has_negatives else 2.0**-15

    @property
    def shift(self) -> float:
        """Return the shift of scaled sums before they are cut off."""
        return self.base + 0.5 + (2 * self.unit if self.is_imprecise else 0.0)

    @property
    def fraction_bits(self) -> int:
        """The last bits, of which one is set if float32 has got a result right."""
        bits = round(1 / self.unit) - 1
        return bits & ~3 if self.is_imprecise else bits


@dataclass(frozen=True, eq=False, slots=True)
class Factors:
    """Factors of a layer's output channels, for two ways to compute with them.

    Rounding twice, first to ``2**-r`` steps and then, halves away from zero, to steps, rounds up
    from ``n + 1/2 - 2**-(r + 1)`` on: `r` is the right shift.

    Reference: gemmlowp ``SaturatingRoundingDoublingHighMul``, ``RoundingDivideByPOT``.
    """

    scales: Float32Array  # ndarray, float32, shape (channels,)
    nudges: Float32Array  # how far scaled sums are moved away from zero before they are rounded
    # The bits of a float64 if sums are rounded once; else a negative number of which bits 0 to 31
    # are a multiplier, 32 to 39 a left shift and 40 to 47 a right shift.
    exact: Int64Array

    @classmethod
    def of(cls, real: npt.NDArray[np.float64], rounds_twice: bool) -> Factors:
        """Factors for real numbers of at least 0.

        Parameters
        ----------
        real : ndarray, float64, shape (channels,)
        rounds_twice
            Whether in fixed-point arithmetic, as of convolutions; else in float64.
        """
        if not rounds_twice:
            scales = real.astype(np.float32)
            return cls(scales, np.zeros_like(scales), real.astype(np.float64).view(np.int64))
        fixed = numerics.Multiplier.from_real(real)
        multipliers, left, right = fixed.multiplier, fixed.left_shift, fixed.right_shift
        scales = np.ldexp(multipliers.astype(np.float64), left - right - 31).astype(np.float32)
        nudges = np.where(right > 0, np.exp2(-(right + 1.0)), 0.0).astype(np.float32)
        exact = multipliers | left << 32 | right << 40 | np.int64(-1 << 63)
        return cls(scales, nudges, exact)

    def chosen(self, channels: slice | Int64Array) -> Factors:
        """Those of some channels."""
        return Factors(self.scales[channels], self.nudges[channels], self.exact[channels])

    def rounded(
        self, zero_point: int, has_negatives: bool, largest: npt.NDArray[np.float64]
    ) -> tuple[Factors, Rounding]:
        """Factors for a kernel, and how that rounds.

        If nothing is negative, what sums are moved by is part of the nudges.

        Parameters
        ----------
        zero_point
            Of the output.
        has_negatives
            See `Rounding`.
        largest : ndarray, float64, shape (channels,)
            Magnitudes that no sum exceeds.
        """
        is_imprecise = bool((self._errors(zero_point, has_negatives, largest) >= 1).any())
        rounding = Rounding(has_negatives, is_imprecise)
        if has_negatives:
            return self, rounding
        nudges = self.nudges + np.float64(zero_point + rounding.shift)
        return Factors(self.scales, nudges.astype(np.float32), self.exact), rounding

    def _errors(
        self, zero_point: int, has_negatives: bool, largest: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.float64]:
        """Return how far off scaled sums may be, in units of the last place, by channel.

        The sum is rounded to that place. Before that, sums above 2**24 and scales have been
        rounded to 24 bits, and nudges to the place if they are added first.
        """
        rounding = Rounding(has_negatives, False)
        scales = self.scales.astype(np.float64)
        # A byte holds no more than 256.
        sizes = np.minimum(largest, 256.0 / np.maximum(scales, 2.0**-126))
        real_errors = np.abs(self._real() - scales) * sizes
        sums = np.where(sizes > 2.0**24, sizes * scales * 2.0**-24, 0.0)
        if has_negatives:  # rounded once more, where numbers are below 256
            others = np.full(scales.shape, 2.0**-17)
        else:
            moved = self.nudges + np.float64(zero_point + rounding.shift)
            others = np.abs(moved - moved.astype(np.float32))
        errors: npt.NDArray[np.float64] = 0.5 + (real_errors + sums + others) / rounding.unit
        return errors

    def _real(self) -> npt.NDArray[np.float64]:
        """The factors that `scales` are rounded from."""
        multipliers = (self.exact & 0xFFFFFFFF).astype(np.float64)
        shifts = (self.exact >> 32 & 0xFF) - (self.exact >> 40 & 0x7F)
        fixed = np.ldexp(multipliers, shifts.astype(np.int64) - 31)
        result: npt.NDArray[np.float64] = np.where(
            self.exact < 0, fixed, self.exact.view(np.float64)
        )
        return result
