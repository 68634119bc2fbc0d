"""Micro-kernel of a matrix unit: 32 rows by 32 columns, whose sums are finished from memory.

Notes
-----
Four of the unit's tiles are sums, two are rows (pixels) and two columns of weights: each that is
loaded is multiplied twice. Sums are stored in a buffer that stays in the first level of the cache,
and a `Finish` makes of them what it makes of sums in registers, `ROWS_AT_ONCE` rows at a time.
While it does, the unit computes the next ones: `armpy_numba_acc.tiles.products.matrix_walk` says in
which order.
"""

from __future__ import annotations

from collections.abc import Callable

from armpy.core.dataclass import dataclass
from armpy_numba_acc.llvm.arithmetic.matrix_emulation import matrix_unit
from armpy_numba_acc.llvm.arithmetic.matrix_unit import Operands
from armpy_numba_acc.llvm.calls import CallFields
from armpy_numba_acc.llvm.control import loop, when
from armpy_numba_acc.llvm.primitives import Definition, defined, linked
from armpy_numba_acc.llvm.values import F32, I32, I64, Code, CodeValue, choose, smaller, vector
from armpy_numba_acc.machine.calls.products import MatrixWalk, ProductCall
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.machine.processors.matrix_unit import CONFIGURATION_BYTES, ROW_BYTES
from armpy_numba_acc.tiles.products.engine import Finish, Shape, Tile
from armpy_numba_acc.tiles.products.gather import gather_definition

COLUMNS = 32
"""Of a panel."""

ROWS_AT_ONCE = 8
"""That are finished."""

KEPT_BYTES = 32 * COLUMNS * 4
"""Of the sums of a tile of the product."""

ROW_PITCH = COLUMNS * 4
"""Of the stored values of each row."""

_SUMS, _ELEMENTS, _WEIGHTS = (0, 1, 2, 3), (4, 5), (6, 7)
"""Numbers of the unit's tiles; sums are those of the first rows, then those of the second."""

begin_part = linked("armpy_matrix_begin", 2)
"""``(args, unit)`` configures the unit for a thread's part of a command."""

end_part = linked("armpy_matrix_end", 1)
"""``(unit)`` gives its tiles back."""

multiply = linked("armpy_matrix_multiply", 5)
"""``(args, unit, address, pitch, panel)`` computes sums of some rows and a panel's columns."""

keep = linked("armpy_matrix_keep", 4)
"""``(args, unit, kept, panel)`` stores them."""

begin_rows = linked("armpy_matrix_begin_rows", 5)
"""``(args, address, room, pixel, count)`` is called for neighbouring pixels before they are
finished: with the address of the first one, or of a table."""

finish_rows = linked("armpy_matrix_finish_rows", 6)
"""``(args, kept, room, pixel, count, panel)`` finishes and writes neighbouring pixels' sums."""


@dataclass(frozen=True, slots=True)
class MatrixProduct:
    """Writes the functions above for a kind of product."""

    isa: Isa
    record: type[ProductCall]  # of the kernel's calls
    operands: Operands  # {"bytes", "bfloat16"}
    finish: Finish

    @property
    def shape(self) -> Shape:
        """Return the shape that is finished at once."""
        return Shape.of(self.isa, ROWS_AT_ONCE, COLUMNS // self.isa.lanes)

    def definitions(self) -> str:
        """The functions in LLVM's language."""
        return defined(
            *self.finish.definitions(self.isa),
            gather_definition(self.isa, self.record),
            Definition("armpy_matrix_begin", 2, self._begin),
            Definition("armpy_matrix_end", 1, self._end),
            Definition("armpy_matrix_multiply", 5, self._multiply),
            Definition("armpy_matrix_keep", 4, self._keep),
            Definition("armpy_matrix_begin_rows", 5, self._begin_rows),
            Definition("armpy_matrix_finish_rows", 6, self._finish_rows),
        )

    def _begin(self, code: Code, args: CodeValue, state: CodeValue) -> None:
        unit = matrix_unit(self.isa, code, state)
        unit.begin()
        unit.configure(CallFields(self.record, args).walk)

    def _end(self, code: Code, state: CodeValue) -> None:
        matrix_unit(self.isa, code, state).release()

    def _multiply(
        self,
        code: Code,
        args: CodeValue,
        state: CodeValue,
        address: CodeValue,
        pitch: CodeValue,
        panel: CodeValue,
    ) -> None:
        call, unit = CallFields(self.record, args), matrix_unit(self.isa, code, state)
        walk = CallFields(MatrixWalk, call.walk + CONFIGURATION_BYTES)
        head = call.weights + panel * call.panel_bytes
        line = head + self.finish.head_bytes(self.shape)
        second_rows = walk.first_rows * pitch
        block_lines = walk.block_bytes * (ROW_PITCH // 4)
        line_pitch = code.integer(ROW_PITCH)

        def products(columns: int) -> None:
            """All of one or two tiles of columns."""
            for tile in _SUMS:
                if tile % 2 >= columns:
                    continue
                if self.finish.begins_with_bias:
                    unit.load(tile, head + tile % 2 * ROW_BYTES, code.integer(0))
                else:
                    unit.zero(tile)

            def tap(number: CodeValue, carried: list[CodeValue]) -> list[CodeValue]:
                # Gathered elements lie together as one tap.
                offset = choose(call.has_table.differs(0), 0, call.taps.load(I64, number))
                place = address + offset

                def block(number: CodeValue, carried: list[CodeValue]) -> list[CodeValue]:
                    (line,) = carried
                    at = place + number * walk.block_bytes
                    unit.load(_WEIGHTS[0], line, line_pitch)
                    unit.load(_ELEMENTS[0], at, pitch)
                    unit.load(_ELEMENTS[1], at + second_rows, pitch)
                    for column in range(columns):
                        if column:
                            unit.load(_WEIGHTS[1], line + ROW_BYTES, line_pitch)
                        for row in range(2):
                            weights = _WEIGHTS[column]
                            unit.dot(self.operands, 2 * row + column, _ELEMENTS[row], weights)
                    return [line + block_lines]

                return loop(code, walk.blocks, carried, block)

            loop(code, walk.num_taps, [line], tap)

        self._by_columns(call, panel, products)

    def _keep(
        self, code: Code, args: CodeValue, state: CodeValue, results: CodeValue, panel: CodeValue
    ) -> None:
        call, unit = CallFields(self.record, args), matrix_unit(self.isa, code, state)
        walk = CallFields(MatrixWalk, call.walk + CONFIGURATION_BYTES)
        second = results + walk.first_rows * ROW_PITCH

        def store(columns: int) -> None:
            for tile in _SUMS:
                if tile % 2 < columns:
                    place = (results, second)[tile // 2] + tile % 2 * ROW_BYTES
                    unit.store(tile, place, code.integer(ROW_PITCH))

        self._by_columns(call, panel, store)

    def _by_columns(self, call: CallFields, panel: CodeValue, write: Callable[[int], None]) -> None:
        """Write code for one tile of columns, if the last panel has no more, and for two."""

        def columns(count: int) -> list[CodeValue]:
            write(count)
            return []

        has_two = call.columns - panel * COLUMNS > COLUMNS // 2
        when(has_two, lambda: columns(2), lambda: columns(1), likely=True)

    def _begin_rows(
        self,
        code: Code,
        args: CodeValue,
        address: CodeValue,
        room: CodeValue,
        pixel: CodeValue,
        count: CodeValue,
    ) -> None:
        call = CallFields(self.record, args)
        row_bytes = choose(call.has_table.differs(0), 8, call.pixel_pitch)

        def begin(first: CodeValue, some: CodeValue) -> None:
            place, at_room = address + first * row_bytes, room + first * 8
            rows = pixel + first, some, code.integer(0)
            self.finish.begin_rows(
                Tile(self.isa, code, call, self.shape, place, at_room, *rows, [])
            )

        _for_rows(count, begin)

    def _finish_rows(
        self,
        code: Code,
        args: CodeValue,
        results: CodeValue,
        room: CodeValue,
        pixel: CodeValue,
        count: CodeValue,
        panel: CodeValue,
    ) -> None:
        call, lanes = CallFields(self.record, args), self.isa.lanes
        kind = vector(I32 if self.operands == "bytes" else F32, lanes)

        def finish(first: CodeValue, some: CodeValue) -> None:
            place, at_room = results + first * ROW_PITCH, room + first * 8
            rows = pixel + first, some, panel
            tile = Tile(self.isa, code, call, self.shape, place, at_room, *rows, [])
            totals, last = [], some - 1
            for row in range(tile.rows):
                # Rows after the last one are computed as if they were that one.
                at_row = place + smaller(last.like(row), last) * ROW_PITCH
                totals += [at_row.load(kind, j) for j in range(len(tile.shape.widths))]
            if not self.finish.begins_with_bias:
                totals = [x + y for x, y in zip(self.finish.first(tile), totals, strict=True)]
            self.finish.write(tile, totals)

        _for_rows(count, finish)


def _for_rows(count: CodeValue, step: Callable[[CodeValue, CodeValue], None]) -> None:
    """``step(first, count)`` for some rows at a time.

    The last ones begin early where there are more: some are done twice. What rows become depends on
    them alone, and nothing that is read is written.
    """
    code = count.code

    def some(number: CodeValue, _: list[CodeValue]) -> list[CodeValue]:
        start, last = number * ROWS_AT_ONCE, count - ROWS_AT_ONCE
        last = choose(last > 0, last, 0)
        step(smaller(start, last), smaller(count, ROWS_AT_ONCE))
        return []

    loop(code, (count + (ROWS_AT_ONCE - 1)) / ROWS_AT_ONCE, [], some)
