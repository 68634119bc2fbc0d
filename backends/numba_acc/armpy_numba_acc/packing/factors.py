"""What sums of 8-bit layers are multiplied by for their output."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from armpy_numba_acc.packing.fixed_point import multiplier_of

Int64Array = npt.NDArray[np.int64]
Float32Array = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False, slots=True)
class Factors:
    """Factors of a layer's output channels, for two ways to compute with them.

    Parameters
    ----------
    scales : ndarray, float32, shape (channels,)
    nudges : ndarray, float32, shape (channels,)
        How far scaled sums are moved away from zero before they are rounded.
    exact : ndarray, int64, shape (channels,)
        The bits of a float64 if sums are rounded once; else a negative number of which bits 0
        to 31 are a multiplier, 32 to 39 a left shift and 40 to 47 a right shift.

    Notes
    -----
    Rounding twice, first to ``2**-r`` steps and then, halves away from zero, to steps, rounds up
    from ``n + 1/2 - 2**-(r + 1)`` on: `r` is the right shift.

    References
    ----------
    gemmlowp ``SaturatingRoundingDoublingHighMul``, ``RoundingDivideByPOT``.
    """

    scales: Float32Array
    nudges: Float32Array
    exact: Int64Array

    @classmethod
    def of(cls, real: npt.NDArray[np.float64], rounds_twice: bool) -> Factors:
        """Factors for real numbers of at least 0.

        Parameters
        ----------
        real : ndarray, float64, shape (channels,)
        rounds_twice : bool
            Whether in fixed-point arithmetic, as of convolutions; else in float64.
        """
        if not rounds_twice:
            scales = real.astype(np.float32)
            return cls(scales, np.zeros_like(scales), real.astype(np.float64).view(np.int64))
        pairs = [multiplier_of(float(number)) for number in real]
        multipliers, shifts = np.array(pairs, np.int64).reshape(-1, 2).T
        left, right = np.maximum(shifts, 0), np.maximum(-shifts, 0)
        scales = np.ldexp(multipliers.astype(np.float64), shifts - 31).astype(np.float32)
        nudges = np.where(right > 0, np.exp2(-(right + 1.0)), 0.0).astype(np.float32)
        exact = multipliers | left << 32 | right << 40 | np.int64(-1 << 63)
        return cls(scales, nudges, exact)

    def chosen(self, channels: slice) -> Factors:
        """Those of some channels."""
        return Factors(self.scales[channels], self.nudges[channels], self.exact[channels])
