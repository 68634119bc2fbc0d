"""Affine quantisation: what stored integers stand for, and how they are clamped."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from armpy.core.dataclass import dataclass
from armpy.core.numerics.rounding import Int64Array, Integers, round_half_away

__all__ = ["QuantizationParameters"]

_FAR = 1 << 31
"""Steps that no stored integer is away from another."""


@dataclass(frozen=True, slots=True)
class QuantizationParameters:
    """Parameters of affine quantisation: ``real = scale * (stored - zero_point)``."""

    scale: np.float32  # as file formats store it, which is what TFLite's kernels compute with
    zero_point: int
    lowest: int  # of the stored integers
    highest: int

    @classmethod
    def of(cls, scale: float, zero_point: int, dtype: npt.DTypeLike) -> QuantizationParameters:
        """Make the parameters of a tensor whose integers take the whole range of their type."""
        limits = np.iinfo(np.dtype(dtype))
        return cls(np.float32(scale), zero_point, int(limits.min), int(limits.max))

    @property
    def real_range(self) -> tuple[np.float32, np.float32]:
        """Real numbers of the lowest and of the highest stored integer."""
        return (
            self.scale * np.float32(self.lowest - self.zero_point),
            self.scale * np.float32(self.highest - self.zero_point),
        )

    def centred(self, stored: Integers) -> Int64Array:
        """Subtract the zero point."""
        # A scalar stays an array, so that it can be written, too.
        return np.asarray(np.subtract(stored, self.zero_point, dtype=np.int64))

    def saturated(self, steps: Integers) -> Int64Array:
        """Add the zero point and clamp to the range."""
        return self.clamped(steps, self.lowest, self.highest)

    def clamped(self, steps: Integers, lowest: int, highest: int) -> Int64Array:
        """Add the zero point and clamp; where the bounds changed places, to `highest`."""
        moved: Int64Array = np.add(steps, self.zero_point)
        return np.clip(moved, lowest, highest)

    def nearest(self, real: float) -> int:
        """Quantise a real number, not NaN, without saturation.

        It is divided by the scale in float32; halves go away from zero.
        """
        with np.errstate(over="ignore", divide="ignore"):
            steps = round_half_away(np.float32(real) / self.scale)
        return self.zero_point + int(np.clip(steps, -_FAR, _FAR))

    def clamp_of(self, bounds: tuple[float | None, float | None]) -> tuple[int, int]:
        """Quantise the clamp of an activation function; a bound of None is the range's.

        Reference: TFLite ``CalculateActivationRangeQuantized``.
        """
        low, high = bounds
        return (
            self.lowest if low is None else max(self.lowest, self.nearest(low)),
            self.highest if high is None else min(self.highest, self.nearest(high)),
        )
