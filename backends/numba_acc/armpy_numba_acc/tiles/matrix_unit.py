"""Products of bytes by a matrix unit: 16 pixels by 16 columns by 64 bytes of depth at a time."""

from __future__ import annotations

from functools import partial

from armpy_numba_acc.llvm.control import loop, when
from armpy_numba_acc.llvm.dots import dot_products
from armpy_numba_acc.llvm.values import I8, I16, I32, I64, Value, choose, smaller, vector
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.product import Tile
from armpy_numba_acc.tiles.products import IntegerProducts

ROWS = 16
"""Pixels of a tile, and groups of four elements that one instruction multiplies."""

_ROW_BYTES = 64
_ELEMENTS, _WEIGHTS, _LAST_ELEMENTS, _LAST_WEIGHTS = 4, 5, 6, 7
"""Numbers of the unit's tiles; those of the sums come before them, one for each vector."""


class MatrixProducts(IntegerProducts):
    """Dot products of unsigned and signed bytes, whose sums are in the matrix unit's own tiles.

    Notes
    -----
    Weights lie as for `ByteProducts`: 16 lines are 16 rows of a tile of the unit. Sums are exact
    in int32, in whatever order they are added.
    """

    def __init__(self, isa: Isa) -> None:
        super().__init__(dot_products(isa))

    def sums(self, tile: Tile, line: Value, totals: list[Value]) -> list[Value]:
        """Add up in the unit's tiles; as `Products.sums` otherwise."""
        code, call, shape = tile.code, tile.call, tile.shape
        vectors, line_bytes = len(shape.widths), self.line_bytes(shape)
        whole, rest = call.steps / ROWS, call.steps % ROWS
        _configure(tile, choose(rest > 0, rest, 1))
        for number in range(vectors):
            _run(tile, "tilezero", number)

        def multiply(elements: int, weights: int, place: Value, line: Value) -> None:
            _move(tile, "tileloadd64", elements, place, call.pixel_pitch)
            for number in range(vectors):
                at_line = line + number * _ROW_BYTES
                _move(tile, "tileloadd64", weights, at_line, code.integer(line_bytes))
                _run(tile, "tdpbusd", number, elements, weights)

        def tap(number: Value, carried: list[Value]) -> list[Value]:
            place = tile.address + call.taps.load(I64, number)

            def step(number: Value, carried: list[Value]) -> list[Value]:
                (at_line,) = carried
                multiply(_ELEMENTS, _WEIGHTS, place + number * _ROW_BYTES, at_line)
                return [at_line + ROWS * line_bytes]

            (at_line,) = loop(code, whole, carried, step)

            def last() -> list[Value]:
                multiply(_LAST_ELEMENTS, _LAST_WEIGHTS, place + whole * _ROW_BYTES, at_line)
                return []

            when(rest > 0, last)
            return [at_line + rest * line_bytes]

        loop(code, call.num_taps, [line], tap)
        return self._stored(tile, totals)

    def _stored(self, tile: Tile, totals: list[Value]) -> list[Value]:
        """What is in the unit's tiles, added to what sums begin with."""
        code, vectors = tile.code, len(tile.shape.widths)
        kind = vector(I32, ROWS)
        room, pitch = code.stack(kind, ROWS * vectors), vectors * _ROW_BYTES
        for number in range(vectors):
            place = room + number * _ROW_BYTES
            _move(tile, "tilestored64", number, place, code.integer(pitch))
        code.call("llvm.x86.tilerelease", None)
        result, last = [], tile.count - 1
        for row, some in enumerate(tile.by_row(totals)):
            place = room + smaller(last.like(row), last) * pitch  # those behind are not there
            result += [total + place.load(kind, number) for number, total in enumerate(some)]
        return result


def _configure(tile: Tile, rest: Value) -> None:
    """Say how many rows and bytes of each the unit's tiles have.

    Notes
    -----
    64 bytes: the first is 1, which means that the rest is as follows; from byte 16 on the bytes of
    each tile's rows in 16 bits, from byte 48 on the number of its rows.
    """
    code, full = tile.code, tile.code.integer(ROWS)
    place = code.stack(I64, 8)
    for number in range(8):
        place.store(code.integer(number == 0), number)
    sizes = dict.fromkeys(range(len(tile.shape.widths)), (tile.count, full))
    sizes |= {_ELEMENTS: (tile.count, full), _WEIGHTS: (full, full)}
    sizes |= {_LAST_ELEMENTS: (tile.count, rest), _LAST_WEIGHTS: (rest, full)}
    for number, (rows, groups) in sizes.items():
        (place + 16).store((groups * 4).narrowed(I16), number)
        (place + 48).store(rows.narrowed(I8), number)
    code.call("llvm.x86.ldtilecfg", None, _pointer(place))


def _run(tile: Tile, name: str, *numbers: int) -> None:
    """An instruction of the unit whose operands are some of its tiles."""
    tile.code.call(f"llvm.x86.{name}", None, *map(partial(tile.code.constant, I8), numbers))


def _move(tile: Tile, name: str, number: int, place: Value, pitch: Value) -> None:
    """Load or store a tile of the unit, whose rows are so many bytes apart in memory."""
    code = tile.code
    code.call(f"llvm.x86.{name}", None, code.constant(I8, number), _pointer(place), pitch)


def _pointer(place: Value) -> Value:
    """An address as LLVM's own functions take it."""
    return place.converted("inttoptr", I8.as_pointer())
