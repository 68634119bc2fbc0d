"""Rescaling of exact sums of products to an output's scale, in 64 bits."""

from __future__ import annotations

import math

from armpy_numba_acc.llvm.values import (
    F64,
    I8,
    I16,
    I32,
    I64,
    CodeValue,
    Kind,
    choose,
    vector,
)
from armpy_numba_acc.tiles.products.engine import Finish, Shape, Tile

_STORED = {"i32": I32, "i16": I16, "u8": I8}

_NUM_NUMBERS = {"real": 2, "plain": 3, "signed": 5}
"""Of 8 bytes, that a column has in a head."""


class WideFinish(Finish):
    """Sums, in int32 or int64, times a number per column, rounded and clamped.

    All of it is exact. The reference's two roundings are one here: its method is in the head,
    five lines with a number for each column: factor, addend, shift, half and step; or else, for
    ``real``, factor and addend as float64, then three that mean nothing.

    Parameters
    ----------
    output : {"i32", "i16", "u8"}
        How elements are stored.
    rounding : {"plain", "signed", "real"}
        ``(sum * factor + addend) >> shift``; the same with ``half``, less `step` where that is
        negative, added before the shift; or in float64, ties away from zero.

    References
    ----------
    TFLite ``MultiplyByQuantizedMultiplier`` for accumulators of 32 and of 64 bits; gemmlowp
    ``RoundingDivideByPOT``.
    """

    def __init__(self, output: str, rounding: str) -> None:
        self._stored, self._rounding = _STORED[output], rounding

    def head_bytes(self, shape: Shape) -> int:
        """None: how sums are rescaled is in memory of its own."""
        return 0

    def first(self, tile: Tile) -> list[CodeValue]:
        zeros = [tile.code.constant(vector(I32, width)) for width in tile.shape.widths]
        return zeros * tile.rows

    def write(self, tile: Tile, totals: list[CodeValue]) -> None:
        call, size = tile.call, self._stored.width // 8
        numbers, (low, high) = self._numbers(tile), (call.low, call.high)
        if self._rounding == "real":
            low, high = (bound.converted("sitofp", F64) for bound in (low, high))
        compute = self._in_floats if self._rounding == "real" else self._in_integers
        places = tile.places(call.target, call.out_pitch, size)
        zero_point = call.zero_point.narrowed(self._stored)
        rows = [
            [
                compute(total, number, low, high).narrowed(self._stored)
                + zero_point.splat(total.count)
                for total, number in zip(some, numbers, strict=True)
            ]
            for some in tile.by_row(totals)
        ]

        def write(masks: list[CodeValue | None]) -> None:
            for place, values in zip(places, rows, strict=True):
                for start, value, mask in zip(tile.shape.starts, values, masks, strict=True):
                    (place + start * size).store(value, mask=mask)

        tile.write(write)

    def _numbers(self, tile: Tile) -> list[list[CodeValue]]:
        """Return the numbers that rescale each vector's sums."""
        kind: Kind = F64 if self._rounding == "real" else I64
        head = tile.call.heads + tile.panel * tile.call.head_bytes
        lines = [
            tile.line(head + 8 * tile.shape.width * number, kind)
            for number in range(_NUM_NUMBERS[self._rounding])
        ]
        if self._rounding != "real":  # factors fit 32 bits: LLVM sees what their upper bits are
            lines[0] = [factor.narrowed(I32).signed(I64) for factor in lines[0]]
        return [list(numbers) for numbers in zip(*lines, strict=True)]

    def _in_integers(
        self, total: CodeValue, numbers: list[CodeValue], low: CodeValue, high: CodeValue
    ) -> CodeValue:
        factor, addend, shift, *rest = numbers
        value = total.signed(I64) * factor + addend
        # Negative numbers get `step` less, so that ties go away from zero on both sides.
        if rest:
            half, step = rest
            value = value + (half - ((value >> 63) & step))
        value = value >> shift
        bounded = value.call("smax", low.splat(value.count))
        return bounded.call("smin", high.splat(value.count))

    def _in_floats(
        self, total: CodeValue, numbers: list[CodeValue], low: CodeValue, high: CodeValue
    ) -> CodeValue:
        """The same in float64; sums are below 2**53, which it holds exactly."""
        factor, addend = numbers
        value = (total.converted("sitofp", F64) + addend) * factor
        lowest, highest = (bound.splat(value.count) for bound in (low, high))
        value = choose(value > lowest, value, lowest)
        value = choose(value < highest, value, highest)
        # Added to the number below one half, it does not round up to 1.
        half = value.like(math.nextafter(0.5, 0.0))
        return (value + half.with_sign_of(value)).to_integer()
