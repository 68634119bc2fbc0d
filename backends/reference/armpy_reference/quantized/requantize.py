"""Output stages of sums of products: bias, requantisation, activation.

References
----------
TFLite ``MultiplyByQuantizedMultiplier`` for 32-bit and for 64-bit accumulators.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from armpy.core.dataclass import dataclass
from armpy.core.numerics.fixed_point import Multiplier, Requantization, reduced_multiplier
from armpy.core.numerics.rounding import Int64Array, round_half_away
from armpy.ops.activations import FusedActivation

Array = npt.NDArray[Any]  # Any: sums are floats of either size, outputs of any type

_BLOCK_ELEMENTS = 1 << 14

_LARGEST_BIAS = 1 << 30
"""Largest bias: with it, sums below 2**31 times 2**31 and what rounding adds fit 63 bits."""

_MOST = 1 << 62
"""Larger biases of 64 bits saturate every output as well; a sum may be added to this one."""

_LARGEST_FACTOR = 2.0**30


class OutputRescaling(ABC):
    """Requantisation of integer sums to the output's scale, in one arithmetic of TFLite's."""

    @abstractmethod
    def rescaled(self, sums: Array, scratch: Int64Array) -> Int64Array:
        """Results that are rounded, but neither clamped nor moved to the zero point.

        Parameters
        ----------
        sums : ndarray, float32 or float64, shape (rows, channels)
            Exact integers.
        scratch : ndarray, int64, shape of `sums`
            Is overwritten.

        Returns
        -------
        ndarray, int64, shape of `sums`
            `scratch`.
        """


@dataclass(frozen=True, slots=True)
class FixedPointRescaling(OutputRescaling):
    """Requantisation in one multiplication and one shift."""

    arithmetic: Requantization

    @classmethod
    def rounding_twice(
        cls, multiplier: Multiplier, bias: Int64Array, keeps_negatives: bool
    ) -> OutputRescaling:
        """Requantisation as for 32-bit accumulators; `bias` of shape () or (channels,)."""
        if np.abs(bias).max(initial=0) > _LARGEST_BIAS:
            return WideRescaling(multiplier, bias)
        return cls(Requantization.rounding_twice(multiplier, bias, keeps_negatives))

    @classmethod
    def rounding_once(cls, multiplier: Multiplier, bias: Int64Array) -> OutputRescaling:
        """Requantisation as for 64-bit accumulators: a 16-bit multiplier, halves up."""
        reduced, shift = reduced_multiplier(multiplier)
        bias = np.clip(bias, -_MOST, _MOST)
        if (shift < 1).any() or np.abs(bias).max(initial=0) > _LARGEST_BIAS:
            return SaturatingRescaling(reduced, shift, bias)
        return cls(Requantization.rounding_once(multiplier, bias))

    def rescaled(self, sums: Array, scratch: Int64Array) -> Int64Array:
        """Compute in int64, in place."""
        return self.arithmetic.apply(sums, out=scratch)


@dataclass(frozen=True, slots=True)
class WideRescaling(OutputRescaling):
    """Requantisation that rounds twice, for any bias, in more passes."""

    multiplier: Multiplier
    bias: Int64Array  # shape () or (channels,)

    def rescaled(self, sums: Array, scratch: Int64Array) -> Int64Array:
        """Compute in int64; biased sums are below 2**32."""
        np.copyto(scratch, sums, casting="unsafe")
        np.add(scratch, self.bias, out=scratch)
        self.multiplier.apply(scratch, out=scratch)
        return scratch


@dataclass(frozen=True, slots=True)
class SaturatingRescaling(OutputRescaling):
    """Requantisation that rounds once, for any multiplier and bias, in more passes."""

    factor: Int64Array
    shift: Int64Array
    bias: Int64Array
    """`factor`, `shift` and `bias`: shape () or (channels,). The biased sum times ``factor *
    2**-shift``, for factors of 15 bits and shifts from -15 to 46. Sums that leave every output's
    range anyway are cut off first.
    """

    def rescaled(self, sums: Array, scratch: Int64Array) -> Int64Array:
        """Compute in int64, with halves up."""
        right = np.maximum(self.shift, 0)
        # Beyond it results leave 16 bits, as factors other than 0 have 15 bits; within it products
        # of 47 bits and 15, or of 17 and 30 where the shift goes left, fit 63.
        limit = np.left_shift(1, np.minimum(right + 17, 47))
        np.copyto(scratch, sums, casting="unsafe")
        np.add(scratch, self.bias, out=scratch)
        np.clip(scratch, -limit, limit, out=scratch)
        np.multiply(scratch, self.factor << np.maximum(-self.shift, 0), out=scratch)
        np.add(scratch, np.left_shift(1, right) >> 1, out=scratch)
        np.right_shift(scratch, right, out=scratch)
        return scratch


@dataclass(frozen=True, slots=True)
class RealRescaling(OutputRescaling):
    """Requantisation in float64, rounding half away from zero.

    Reference: TFLite ``reference_integer_ops::FullyConnected``.
    """

    factor: npt.NDArray[np.float64]  # shape () or (channels,)
    bias: Int64Array  # shape () or (channels,)

    def rescaled(self, sums: Array, scratch: Int64Array) -> Int64Array:
        """Compute in float64; the biased sum is exact below 2**53."""
        # Larger factors take any sum out of the output's range, and products out of int64's.
        factor = np.minimum(self.factor, _LARGEST_FACTOR)
        steps = np.add(sums, self.bias, dtype=np.float64) * factor
        # Floats outside of the output's range have no defined conversion to it; integers wrap.
        np.copyto(scratch, round_half_away(steps), casting="unsafe")
        return scratch


class OutputStage(ABC):
    """Output stage: turns sums of products into elements of the output."""

    @abstractmethod
    def finish(self, sums: Array, out: Array) -> None:
        """Write the output for a block of sums.

        Parameters
        ----------
        sums : ndarray, float32 or float64, shape (rows, channels)
            Is overwritten; may be `out` itself if the types agree.
        out : ndarray, dtype of the output, shape (rows, channels)
        """


@dataclass(frozen=True, slots=True)
class FloatStage(OutputStage):
    """Output stage in float32: bias and activation."""

    bias: Array | None  # float32, shape (channels,), or None
    activation: FusedActivation
    factors: Array | None = None
    """float32, shape (1, 1) or (rows, channels) with 1 for either, or None. Factors of the sums,
    applied first.
    """

    def finish(self, sums: Array, out: Array) -> None:
        """Round once if the output is float16."""
        if self.factors is not None:
            np.multiply(sums, self.factors, out=sums)
        if self.bias is not None:
            np.add(sums, self.bias, out=sums)
        low, high = self.activation.bounds
        if low is not None:
            np.maximum(sums, low, out=sums) if high is None else np.clip(sums, low, high, out=sums)
        if out is not sums:
            out[...] = sums


@dataclass(frozen=True, slots=True)
class SumStage(OutputStage):
    """Output stage of sums that are the output themselves."""

    bias: Int64Array  # shape () or (channels,)

    def finish(self, sums: Array, out: Array) -> None:
        """Wrap to 32 bits; exact for sums that are exact integers."""
        np.copyto(out, sums.astype(np.int64) + self.bias, casting="unsafe")


@dataclass(frozen=True, slots=True)
class QuantizedStage(OutputStage):
    """Output stage of integers: requantisation and activation."""

    rescaling: OutputRescaling
    zero_point: int
    lowest: int
    highest: int
    """`lowest` and `highest`: clamp of the stored integers."""

    def finish(self, sums: Array, out: Array) -> None:
        """Exact for sums that are exact integers."""
        rows, channels = sums.shape
        block = max(_BLOCK_ELEMENTS // max(channels, 1), 1)
        scratch = np.empty((min(block, rows), channels), np.int64)
        low, high = self.lowest - self.zero_point, self.highest - self.zero_point
        offset = np.array(self.zero_point).astype(out.dtype)
        for first in range(0, rows, block):
            part = sums[first : first + block]
            values = self.rescaling.rescaled(part, scratch[: len(part)])
            np.clip(values, low, high, out=values)
            # Both wrap: together they are exact, on elements of the output's size.
            target = out[first : first + block]
            np.copyto(target, values, casting="unsafe")
            np.add(target, offset, out=target)
