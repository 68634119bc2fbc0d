"""Products of bytes that 16 bits add up exactly, and of others: see `sorted_lines`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from armpy_numba_acc.llvm.arithmetic.dots import WordProducts, add_exact_bytes
from armpy_numba_acc.llvm.control import loop
from armpy_numba_acc.llvm.values import I8, I32, I64, CodeValue, vector
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.packing.sorted_steps import GROUP_SIZES, LINE_ALIGNMENT
from armpy_numba_acc.tiles.products.engine import Tile
from armpy_numba_acc.tiles.products.kinds import IntegerProducts


class SortedProducts(IntegerProducts):
    """Products of unsigned bytes with weights whose steps are sorted, added up exactly in int32.

    Steps are in groups of `GROUP_SIZES`, and after them those of products of 16-bit integers.
    """

    def __init__(self, isa: Isa) -> None:
        super().__init__(WordProducts(isa))
        self._isa = isa

    def sums(self, tile: Tile, line: CodeValue, totals: list[CodeValue]) -> list[CodeValue]:
        """The sums of all steps, where `line` is the address of a panel of `sorted_lines`."""
        code, call = tile.code, tile.call
        num_numbers = len(GROUP_SIZES) + 1
        place = line + 4 * num_numbers
        num_bytes = (call.num_taps * call.steps + num_numbers) * 4
        counts = [line.load(I32, number).signed(I64) for number in range(num_numbers)]
        first_line = line + ((num_bytes + (LINE_ALIGNMENT - 1)) & -LINE_ALIGNMENT)
        carried = [place, first_line, *totals]
        for size, count in zip((*GROUP_SIZES, 0), counts, strict=True):

            def step(_: CodeValue, carried: list[CodeValue], size: int = size) -> list[CodeValue]:
                place, line, *sums = carried
                add = self._add_group if size else self._add_words
                return [place + 4 * max(size, 1), *add(tile, size, place, line, sums)]

            carried = loop(code, count, carried, step)
        return carried[2:]

    def _add_group(
        self, tile: Tile, size: int, place: CodeValue, line: CodeValue, sums: list[CodeValue]
    ) -> list[CodeValue]:
        """Address of the next line, and the sums with a group of steps added."""
        bytes_kind, vectors = vector(I8, self._isa.vector_bytes), len(tile.shape.widths)
        offsets = [place.load(I32, number).signed(I64) for number in range(size)]
        weights = [line.load(bytes_kind, number) for number in range(size * vectors)]
        result: list[CodeValue] = []
        for row, some in zip(tile.sources, tile.by_row(sums), strict=True):
            loaded = [(row + offset).load(I32, align=1) for offset in offsets]
            elements = [word.splat(self._isa.lanes).bitcast(bytes_kind) for word in loaded]
            for j, total in enumerate(some):
                factors = weights[j * size : (j + 1) * size]
                result.append(add_exact_bytes(self._isa, total, elements, factors))
        return [line + size * vectors * self._isa.vector_bytes, *result]

    def _add_words(
        self, tile: Tile, _: int, place: CodeValue, line: CodeValue, sums: list[CodeValue]
    ) -> list[CodeValue]:
        """The same of a step of 16-bit integers."""
        weights: Sequence[Any] = self.weights(line, tile.shape)
        offset, result = place.load(I32).signed(I64), []
        for row, some in zip(tile.sources, tile.by_row(sums), strict=True):
            elements = self.elements(row + offset, tile.shape)
            result += list(map(self.add, some, elements, weights))
        return [line + self.line_bytes(tile.shape), *result]
