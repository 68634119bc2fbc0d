"""Kinds of products: how operands are multiplied and added up, see `Products`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from armpy_numba_acc.llvm.arithmetic.bfloat16 import add_pairs
from armpy_numba_acc.llvm.arithmetic.dots import Dots, PairProducts, spread_pairs
from armpy_numba_acc.llvm.control import repeat
from armpy_numba_acc.llvm.values import F32, I16, I32, I64, CodeValue, smaller, vector
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.products.engine import Products, Shape, Tile

_LINE_BYTES = 64
_PREFETCH_BYTES = 16 << 10
"""How far ahead weights are asked for: they are in no cache near when a layer begins."""


class FloatProducts(Products):
    """Products of float32, added up one by one in the order of taps and depth."""

    def line_bytes(self, shape: Shape) -> int:
        return 4 * shape.width

    def weights(self, line: CodeValue, shape: Shape) -> list[CodeValue]:
        for start in range(0, self.line_bytes(shape), _LINE_BYTES):
            (line + _PREFETCH_BYTES + start).prefetch()
        return [
            (line + 4 * start).load(vector(F32, width))
            for start, width in zip(shape.starts, shape.widths, strict=True)
        ]

    def spread(self, place: CodeValue, lanes: int) -> CodeValue:
        return place.load(F32).splat(lanes)

    def add(self, total: CodeValue, elements: CodeValue, weights: CodeValue) -> CodeValue:
        return elements.times_plus(weights, total)


class Bfloat16Products(Products):
    """Dot products of two bfloat16 each, added up in float32.

    Parameters
    ----------
    is_odd : bool
        Whether each tap has one more element after its pairs.
    """

    def __init__(self, isa: Isa, *, is_odd: bool) -> None:
        self._isa, self.has_rest = isa, is_odd

    def line_bytes(self, shape: Shape) -> int:
        return 4 * shape.width

    def weights(self, line: CodeValue, shape: Shape) -> list[CodeValue]:
        return [line.load(vector(I32, width), j) for j, width in enumerate(shape.widths)]

    def spread(self, place: CodeValue, lanes: int) -> CodeValue:
        return place.load(I32, align=2).splat(lanes)

    def last_spread(self, place: CodeValue, lanes: int) -> CodeValue:
        """One element: what lies after it may be anything, also NaN."""
        return place.load(I16).unsigned(I32).splat(lanes)

    def add(self, total: CodeValue, elements: CodeValue, weights: CodeValue) -> CodeValue:
        return add_pairs(self._isa, total, weights, elements)


class IntegerProducts(Products):
    """Dot products of integers in 4 bytes each, added up exactly in int32.

    Parameters
    ----------
    dots : Dots
        How an instruction set computes them.
    """

    def __init__(self, dots: Dots) -> None:
        self._dots = dots
        self.steps_at_once = dots.steps_at_once

    def line_bytes(self, shape: Shape) -> int:
        return len(shape.widths) * self._dots.bytes_per_vector

    def weights(self, line: CodeValue, shape: Shape) -> list[Any]:
        return [self._dots.weights(line, j) for j in range(len(shape.widths))]

    def spread(self, place: CodeValue, lanes: int) -> Any:
        return self._dots.elements(place.load(I32, align=1).splat(lanes))

    def several_spread(self, place: CodeValue, lanes: int) -> list[Any]:
        loaded = place.load(vector(I32, lanes), align=1)
        return self._dots.elements_of_each(loaded)

    def add(self, total: CodeValue, elements: Any, weights: Any) -> CodeValue:
        return self._dots.add(total, elements, weights)


class WideProducts(IntegerProducts):
    """Dot products of two 16-bit elements each; the sums of all taps may need 64 bits.

    Parameters
    ----------
    has_pieces : bool
        Whether they may: see `sums_in_pieces`.
    """

    def __init__(self, isa: Isa, *, has_pieces: bool) -> None:
        super().__init__(spread_pairs(isa))
        self._has_pieces = has_pieces

    def sums(self, tile: Tile, line: CodeValue, totals: list[CodeValue]) -> list[CodeValue]:
        sums = sums_in_pieces if self._has_pieces else sums_at_once
        return sums(self, tile, tile.sources, line, totals)


class ChannelProducts(Products):
    """Products of one 16-bit element and one weight of each channel: channels stay apart.

    Weights are as wide as sums. A step takes one element of every channel of a panel.

    Parameters
    ----------
    has_pieces : bool
        As of `WideProducts`.
    """

    def __init__(self, isa: Isa, *, has_pieces: bool) -> None:
        self._has_pieces = has_pieces
        self._pairs = PairProducts(isa) if "avx" in isa.name else None

    def line_bytes(self, shape: Shape) -> int:
        return 4 * shape.width

    def weights(self, line: CodeValue, shape: Shape) -> list[CodeValue]:
        return [line.load(vector(I32, lanes), j) for j, lanes in enumerate(shape.widths)]

    def elements(self, place: CodeValue, shape: Shape) -> list[CodeValue]:
        return [place.load(vector(I16, lanes), j) for j, lanes in enumerate(shape.widths)]

    def add(self, total: CodeValue, elements: CodeValue, weights: CodeValue) -> CodeValue:
        if self._pairs is None:
            return total + elements.signed(I32) * weights
        # The upper half of each lane is 0, whatever its weight is there.
        pairs = self._pairs.elements(elements.unsigned(I32))
        return self._pairs.add(total, pairs, self._pairs.elements(weights))

    def sums(self, tile: Tile, line: CodeValue, totals: list[CodeValue]) -> list[CodeValue]:
        # A panel has the weights of some channels, so that it begins at these in every row.
        rows = [place + tile.panel * (2 * tile.shape.width) for place in tile.sources]
        sums = sums_in_pieces if self._has_pieces else sums_at_once
        return sums(self, tile, rows, line, totals)


def sums_at_once(
    products: Products,
    tile: Tile,
    rows: Sequence[CodeValue],
    line: CodeValue,
    totals: list[CodeValue],
) -> list[CodeValue]:
    """The sums of all taps in 32 bits; parameters as for `sums_in_pieces`."""
    call = tile.call
    return products.sums_of_taps(tile, rows, call.taps, call.num_taps, line, totals)


def sums_in_pieces(
    products: Products,
    tile: Tile,
    rows: Sequence[CodeValue],
    line: CodeValue,
    totals: list[CodeValue],
) -> list[CodeValue]:
    """The sums of all taps in 64 bits; `taps_at_once` are added up in 32 bits first.

    Parameters
    ----------
    rows
        Addresses of the tile's rows.
    line, totals
        As of `Products.sums`.
    """
    call, code = tile.call, tile.code
    taps, num_taps, at_once = call.taps, call.num_taps, call.taps_at_once
    wide = vector(I64, tile.isa.lanes)
    # On the stack: there are too few registers for sums of both widths.
    room = code.stack(wide, len(totals))
    for number in range(len(totals)):
        room.store(code.constant(wide), number)
    line_bytes = call.steps * products.line_bytes(tile.shape)

    def piece(number: CodeValue, carried: list[CodeValue]) -> list[CodeValue]:
        """Add up some taps, and add that to the others' sum."""
        (at_line,) = carried
        first = number * at_once
        count = smaller(num_taps - first, at_once)
        some = products.sums_of_taps(tile, rows, taps + first * 8, count, at_line, totals)
        for k, total in enumerate(some):
            room.store(room.load(wide, k) + total.signed(I64), k)
        return [at_line + count * line_bytes]

    repeat(code, (num_taps + (at_once - 1)) / at_once, [line], piece)
    return [room.load(wide, number) for number in range(len(totals))]
