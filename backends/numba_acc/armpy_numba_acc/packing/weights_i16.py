"""Weights of 16-bit layers as kernels want them, and what sums are multiplied by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from armpy.core import numerics
from armpy.core.dataclass import dataclass
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.packing.origins import Origin, PackedArray
from armpy_numba_acc.packing.panels import by_element, in_groups, in_panels

Array = npt.NDArray[Any]  # Any: integers of any type
Int64Array = npt.NDArray[np.int64]

LARGEST_SUM = (1 << 16) - 1
"""Of weights' magnitudes: times 2**15, the largest element's, it is below 2**31."""

_DEEPEST = 510
"""Products of elements and weights whose sum always fits: 510 * 2**7 is below 2**16."""

_NUM_LINES = 5


@dataclass(frozen=True, eq=False, slots=True)
class SumRescaling:
    """Rescaling of a layer's sums to elements."""

    rounding: str  # see `armpy_numba_acc.tiles.finish.rescaling.WideFinish`
    # Factor, addend, shift, half and step; or factor and addend as the bits of float64.
    lines: Int64Array

    @classmethod
    def once(cls, real: npt.NDArray[np.float64], bias: Int64Array) -> SumRescaling:
        """Multiply by 16 bits, ties up: as for accumulators of 64 bits.

        Parameters
        ----------
        real : ndarray, float64, shape (channels,)
            What sums are multiplied by; below 2**14.
        bias : ndarray, int64, shape (channels,)
        """
        return cls._made(
            numerics.Requantization.rounding_once(numerics.Multiplier.from_real(real), bias)
        )

    @classmethod
    def twice(
        cls, real: npt.NDArray[np.float64], bias: Int64Array, has_negatives: bool
    ) -> SumRescaling:
        """Multiply by 32 bits: ties up, then ties away from zero.

        Parameters
        ----------
        has_negatives
            Whether results below the zero point matter.
        """
        multiplier = numerics.Multiplier.from_real(real)
        return cls._made(numerics.Requantization.rounding_twice(multiplier, bias, has_negatives))

    @classmethod
    def _made(cls, arithmetic: numerics.Requantization) -> SumRescaling:
        """Lay out the numbers as lines."""
        zeros = np.zeros_like(arithmetic.shift)
        half, step = arithmetic.half, arithmetic.step
        rounding = "plain" if step is None else "signed"
        ends = (zeros if half is None else half, zeros if step is None else step)
        lines = (arithmetic.factor, arithmetic.addend, arithmetic.shift, *ends)
        return cls(rounding, np.stack(lines))

    @classmethod
    def in_floats(cls, real: npt.NDArray[np.float64], bias: Int64Array) -> SumRescaling:
        """Multiply by the number itself, ties away from zero."""
        lines = np.zeros((_NUM_LINES, len(real)), np.int64)
        lines[0] = real.view(np.int64)
        lines[1] = bias.astype(np.float64).view(np.int64)
        return cls("real", lines)

    @classmethod
    def none(cls) -> SumRescaling:
        """Sums of one channel as they are."""
        return cls("plain", np.array([[1], [0], [0], [0], [0]], np.int64))

    def heads(self, width: int) -> Int64Array:
        """The lines of each panel, shape (panels, 5, width)."""
        return np.ascontiguousarray(in_panels(self.lines.T, width).swapaxes(1, 2))


@dataclass(frozen=True, eq=False, slots=True)
class Pieces:
    """Weights tap by tap, and how many taps' products fit 32 bits together."""

    values: Array  # ndarray, integers, shape (columns, taps, depth)
    # Element of the given taps at which each of these begins, counted from the first one's pixel;
    # see `offsets`.
    starts: Int64Array
    at_once: int  # taps that are added up in 32 bits
    cut: Callable[[Array], Array]  # gives an array of the given weights' shape as the values are

    @classmethod
    def of(cls, values: Array) -> Pieces:
        """Leave taps whole where their products fit, or else cut them up.

        Pieces of a tap are of one length; the last one begins earlier than it ends the one
        before, and has zeros where they overlap.

        Parameters
        ----------
        values : ndarray, integers of 8 bits, shape (columns, taps, depth)
        """
        _, taps, depth = values.shape
        magnitudes = np.abs(values.astype(np.int64))
        if magnitudes.sum(axis=(1, 2)).max() <= LARGEST_SUM:
            return cls(values, np.zeros(taps, np.int64), taps, _as_they_are)
        starts, cut = [0], _as_they_are
        if depth > _DEEPEST:
            even = depth + depth % 2
            length = -(-even // -(-even // _DEEPEST))
            length += length % 2
            starts = [min(start, even - length) for start in range(0, even, length)]
            cut = partial(_cut, starts=starts, length=length)
            values = cut(values)
        sums = np.abs(values.astype(np.int64)).sum(axis=2)
        return cls(values, np.tile(np.array(starts, np.int64), taps), _together(sums), cut)

    def offsets(self, taps: tuple[int, ...], element_bytes: int) -> Int64Array:
        """Return where the taps begin that stand for those given, in bytes."""
        tap_offsets = np.repeat(np.array(taps, np.int64), len(self.starts) // len(taps))
        return tap_offsets + element_bytes * self.starts


def _as_they_are(values: Array) -> Array:
    """Taps that are not cut up."""
    return values


def _cut(values: Array, starts: Sequence[int], length: int) -> Array:
    """Taps (columns, taps, depth) in pieces; see `Pieces.of`."""
    columns, taps, depth = values.shape
    even = starts[-1] + length
    padded = np.zeros((columns, taps, even), values.dtype)
    padded[..., :depth] = values
    parts = np.stack([padded[..., s : s + length] for s in starts], axis=2)
    parts[:, :, -1, : len(starts) * length - even] = 0
    return parts.reshape(columns, -1, length)


def _together(sums: Int64Array) -> int:
    """Taps in succession whose weights' magnitudes, (columns, taps), add up to little enough."""
    taps: int = sums.shape[1]
    for pieces in range(2, taps):
        size = -(-taps // pieces)
        if np.add.reduceat(sums, range(0, taps, size), axis=1).max() <= LARGEST_SUM:
            return size
    return 1


def pack_pairs(isa: Isa, values: Array, width: int) -> PackedArray:
    """Weights in the order in which pairs of elements are multiplied.

    Parameters
    ----------
    values : ndarray, integers of at most 16 bits, shape (columns, taps, depth)
    width
        Columns of a panel; the last one is filled up with zeros.

    Returns
    -------
    PackedArray
        int16, shape (panels, taps * pairs, width, 2). Where the depth is odd the last element of
        each tap has a zero beside it. Or the same `by_element`, if the instruction set multiplies
        these.
    """

    def moved(values: Array) -> Array:
        pairs = in_groups(values, width, 2)
        return by_element(pairs, isa.lanes) if isa.has_long_products else pairs

    panels = np.ascontiguousarray(moved(values.astype(np.int16)))
    origin = Origin.of(values, moved, 2, pitch=panels[0].nbytes)
    return PackedArray(panels, (origin,))


def pack_channels(values: Array, width: int) -> PackedArray:
    """Weights of channels that stay apart.

    Parameters
    ----------
    values : ndarray, integers of at most 16 bits, shape (channels, taps)

    Returns
    -------
    PackedArray
        int32, shape (panels, taps, width).
    """

    def moved(values: Array) -> Array:
        return in_panels(values, width).swapaxes(1, 2)

    panels = np.ascontiguousarray(moved(values.astype(np.int32)))
    origin = Origin.of(values, moved, 4, pitch=panels[0].nbytes)
    return PackedArray(panels, (origin,))
