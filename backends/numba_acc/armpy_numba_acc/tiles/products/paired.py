"""Products of two rows with two columns at a time, eight bytes deep: Arm's matrix instructions."""

from __future__ import annotations

from collections.abc import Sequence

from armpy_numba_acc.llvm.arithmetic.bfloat16 import add_paired
from armpy_numba_acc.llvm.control import loop, repeat
from armpy_numba_acc.llvm.values import I8, I64, CodeValue, vector
from armpy_numba_acc.tiles.products.engine import Products, Shape, Tile

_BYTES = vector(I8, 16)
_HALF = 8
"""Bytes of a row that an instruction multiplies, and of each column's weights."""

_FIRST, _LAST = (0, 1, 4, 5), (2, 3, 6, 7)
"""The first two columns of two rows, and the last two."""

Blocks = list[CodeValue]
"""Sums of 2 by 2: for each two rows and each vector of columns one of its first two columns, row by
row, and one of its last two."""


class PairedProducts(Products):
    """Products of unsigned and signed bytes, added up exactly in int32.

    Weights: for each column eight signed bytes. Sums are in the instruction's order while they are
    added up, and row by row before and after that.
    """

    step_bytes = _HALF

    def line_bytes(self, shape: Shape) -> int:
        return _HALF * shape.width

    def weights(self, line: CodeValue, shape: Shape) -> list[CodeValue]:
        return [line.load(_BYTES, number) for number in range(2 * len(shape.widths))]

    def spread(self, place: CodeValue, lanes: int) -> CodeValue:
        raise NotImplementedError  # no element is in all lanes

    def add(self, total: CodeValue, elements: CodeValue, weights: CodeValue) -> CodeValue:
        name = "llvm.aarch64.neon.usmmla.v4i32.v16i8"
        return total.code.call(name, total.kind, total, elements, weights)

    def without_others(self, elements: CodeValue) -> CodeValue:
        """Elements of the last step of a tap with zeros after those that are its own."""
        raise NotImplementedError  # others have weights of 0

    def sums(self, tile: Tile, line: CodeValue, totals: list[CodeValue]) -> list[CodeValue]:
        """The sums of all taps, of two rows at a time; as `Products.sums` otherwise."""
        code, call, shape = tile.code, tile.call, tile.shape
        line_bytes = self.line_bytes(shape)

        def tap(number: CodeValue, carried: list[CodeValue]) -> list[CodeValue]:
            offset = call.taps.load(I64, number)
            rows = [source + offset for source in tile.sources]

            def step(
                number: CodeValue, carried: list[CodeValue], *, is_rest: bool = False
            ) -> list[CodeValue]:
                line, *blocks = carried
                elements = _paired([row + number * _HALF for row in rows])
                if is_rest:
                    elements = list(map(self.without_others, elements))
                size = 2 * len(shape.widths)
                # Each vector of weights is used for all rows before the next one is needed: there
                # are registers for all sums and elements, not for all weights.
                for column, factor in enumerate(self.weights(line, shape)):
                    for pair, row_elements in enumerate(elements):
                        at = pair * size + column
                        blocks[at] = self.add(blocks[at], row_elements, factor)
                return [line + line_bytes, *blocks]

            if self.has_rest:
                return step(call.steps, loop(code, call.steps, carried, step), is_rest=True)
            return repeat(code, call.steps, carried, step)

        blocks = repeat(code, call.num_taps, [line, *_in_blocks(tile, totals)], tap)[1:]
        return _by_row(blocks, tile)


class PairedBfloat16Products(PairedProducts):
    """Products of bfloat16, added up in float32.

    Weights: for each column four numbers.

    Parameters
    ----------
    rest : int
        Elements that each tap has after its last four.
    """

    def __init__(self, rest: int) -> None:
        self._rest, self.has_rest = rest, rest > 0

    def add(self, total: CodeValue, elements: CodeValue, weights: CodeValue) -> CodeValue:
        return add_paired(total, elements, weights)

    def without_others(self, elements: CodeValue) -> CodeValue:
        """Clear the elements after the last one, which may be anything, also NaN."""
        own = (1 << (16 * self._rest)) - 1
        return (elements.bitcast(vector(I64, 2)) & own).bitcast(_BYTES)


def _paired(places: Sequence[CodeValue]) -> list[CodeValue]:
    """Eight bytes of each two rows beside each other."""
    halves = [place.load(vector(I8, _HALF)) for place in places]
    return [
        left.shuffled(range(2 * _HALF), other)
        for left, other in zip(halves[::2], halves[1::2], strict=True)
    ]


def _in_blocks(tile: Tile, totals: list[CodeValue]) -> Blocks:
    """Sums row by row as blocks."""
    return _rearranged(tile.by_row(totals))


def _rearranged(rows: Sequence[Sequence[CodeValue]]) -> Blocks:
    """Two vectors of each two rows, or of each two blocks of two rows, as two others."""
    return [
        left.shuffled(lanes, other)
        for above, below in zip(rows[::2], rows[1::2], strict=True)
        for left, other in zip(above, below, strict=True)
        for lanes in (_FIRST, _LAST)
    ]


def _by_row(blocks: Blocks, tile: Tile) -> list[CodeValue]:
    size, result = 2 * len(tile.shape.widths), []
    for first in range(0, len(blocks), size):
        some = blocks[first : first + size]
        for lanes in (_FIRST, _LAST):
            result += [
                left.shuffled(lanes, other)
                for left, other in zip(some[::2], some[1::2], strict=True)
            ]
    return result
