"""Matrix unit in plain code: what AMX does and forbids, for processors without it."""

from __future__ import annotations

from armpy_numba_acc.llvm.arithmetic.matrix_unit import Amx, MatrixUnit, Operands
from armpy_numba_acc.llvm.control import loop, when
from armpy_numba_acc.llvm.values import F32, I8, I16, I32, I64, Code, CodeValue, Kind, vector
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.machine.processors.matrix_unit import CONFIGURATION_BYTES, ROW_BYTES, ROWS

NUM_TILES = 8

_TILE_BYTES = ROWS * ROW_BYTES
_LANES = ROW_BYTES // 4

STATE_BYTES = NUM_TILES * _TILE_BYTES + CONFIGURATION_BYTES
"""Of memory for the emulated unit: its tiles and its configuration."""


def matrix_unit(isa: Isa, code: Code, state: CodeValue) -> MatrixUnit:
    """The unit of an instruction set; parameters as of a `MatrixUnit`."""
    return (Emulation if isa.matrix_unit == "emulated" else Amx)(code, state)


class Emulation(MatrixUnit):
    """The operations on memory: every processor can, and everything that AMX forbids is a trap.

    Where the instructions raise an exception, so does this: for tiles that are not configured or
    given back, and for shapes that do not fit each other; and for a unit that is configured twice.
    Loads and stores cover a tile's shape, not a byte more.

    bfloat16 is added up as AMX does: products of the first of each pair and those of the second
    one apart, and both sums together to the total.
    """

    def begin(self) -> None:
        for number in range(8):
            self._at_config.store(self.code.integer(0), number)

    def configure(self, place: CodeValue) -> None:
        self._expect(self._config(I8, 0).equals(0))
        self._expect(place.load(I8).equals(1))
        for number in range(8):
            self._at_config.store(place.load(I64, number), number)
        for tile in range(NUM_TILES):
            rows, size = self._shape(tile)
            self._expect((rows <= ROWS) & (size <= ROW_BYTES))
            self.zero_all(tile)

    def release(self) -> None:
        self._expect(self._config(I8, 0).equals(1))
        self.begin()

    def zero(self, tile: int) -> None:
        self._used(tile)
        self.zero_all(tile)

    def zero_all(self, tile: int) -> None:
        """Make zeros also of what a tile's shape leaves out."""
        kind = vector(I8, ROW_BYTES)
        for row in range(ROWS):
            self._tile(tile).store(self.code.constant(kind), row)

    def load(self, tile: int, place: CodeValue, pitch: CodeValue) -> None:
        rows, size = self._used(tile)
        self.zero_all(tile)

        def copy(row: CodeValue, _: list[CodeValue]) -> list[CodeValue]:
            return self._copy(place + row * pitch, self._tile(tile) + row * ROW_BYTES, size)

        loop(self.code, rows, [], copy)

    def store(self, tile: int, place: CodeValue, pitch: CodeValue) -> None:
        rows, size = self._used(tile)

        def copy(row: CodeValue, _: list[CodeValue]) -> list[CodeValue]:
            return self._copy(self._tile(tile) + row * ROW_BYTES, place + row * pitch, size)

        loop(self.code, rows, [], copy)

    def _copy(self, source: CodeValue, target: CodeValue, size: CodeValue) -> list[CodeValue]:
        """Copy some groups of four bytes."""

        def word(number: CodeValue, _: list[CodeValue]) -> list[CodeValue]:
            target.store(source.load(I32, number, align=1), number)
            return []

        return loop(self.code, size / 4, [], word)

    def dot(self, operands: Operands, total: int, elements: int, weights: int) -> None:
        rows, size = self._used(total)
        element_rows, element_size = self._used(elements)
        weight_rows, weight_size = self._used(weights)
        self._expect(rows.equals(element_rows) & size.equals(weight_size))
        self._expect(element_size.equals(weight_rows * 4))
        add = self._bytes if operands == "bytes" else self._pairs
        add(rows, weight_rows, *map(self._tile, (total, elements, weights)))

    def _bytes(
        self,
        rows: CodeValue,
        groups: CodeValue,
        total: CodeValue,
        rows_at: CodeValue,
        by: CodeValue,
    ) -> None:
        """Products of bytes, row by row."""
        kind = vector(I32, _LANES)

        def row(number: CodeValue, _: list[CodeValue]) -> list[CodeValue]:
            def group(k: CodeValue, sums: list[CodeValue]) -> list[CodeValue]:
                four = (rows_at + number * ROW_BYTES).load(I32, k)
                weights, (result,) = by.load(kind, k), sums
                for shift in (0, 8, 16, 24):
                    element = (four.shifted_right(shift) & 0xFF).splat(_LANES)
                    result = result + element * ((weights << (24 - shift)) >> 24)
                return [result]

            (sums,) = loop(self.code, groups, [total.load(kind, number)], group)
            total.store(sums, number)
            return []

        loop(self.code, rows, [], row)

    def _pairs(
        self,
        rows: CodeValue,
        groups: CodeValue,
        total: CodeValue,
        rows_at: CodeValue,
        by: CodeValue,
    ) -> None:
        """Products of bfloat16, row by row."""
        kind, zeros = vector(I32, _LANES), self.code.constant(vector(F32, _LANES))

        def row(number: CodeValue, _: list[CodeValue]) -> list[CodeValue]:
            def group(k: CodeValue, sums: list[CodeValue]) -> list[CodeValue]:
                two = (rows_at + number * ROW_BYTES).load(I32, k).splat(_LANES)
                weights, (first, second) = by.load(kind, k), sums
                lower = [(pair << 16).as_float() for pair in (two, weights)]
                upper = [(pair & -(1 << 16)).as_float() for pair in (two, weights)]
                return [
                    lower[0].call("fma", lower[1], first),
                    upper[0].call("fma", upper[1], second),
                ]

            first, second = loop(self.code, groups, [zeros, zeros], group)
            total.store(total.load(zeros.kind, number) + (first + second), number)
            return []

        loop(self.code, rows, [], row)

    def _tile(self, tile: int) -> CodeValue:
        """Address of a tile's memory."""
        return self.state + tile * _TILE_BYTES

    @property
    def _at_config(self) -> CodeValue:
        return self.state + NUM_TILES * _TILE_BYTES

    def _config(self, kind: Kind, number: int) -> CodeValue:
        return self._at_config.load(kind, number)

    def _shape(self, tile: int) -> tuple[CodeValue, CodeValue]:
        """Rows of a tile, and bytes of each."""
        rows = self._config(I8, 48 + tile).unsigned(I64)
        return rows, self._config(I16, 8 + tile).unsigned(I64)

    def _used(self, tile: int) -> tuple[CodeValue, CodeValue]:
        """The same of a tile that is used now."""
        rows, size = self._shape(tile)
        self._expect(self._config(I8, 0).equals(1) & (rows > 0) & (size > 0))
        return rows, size

    def _expect(self, condition: CodeValue) -> None:
        """Stop the process where AMX would raise an exception."""

        def trap() -> list[CodeValue]:
            self.code.call("llvm.trap", None)
            return []

        when(condition.equals(0), trap, likely=False)
