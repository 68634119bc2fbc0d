"""Which tile a matrix product is computed by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from armpy_numba_acc.codegen.isa import Isa

_TILES_U8: Mapping[str, tuple[tuple[int, int], ...]] = {
    "avx512vnni": ((14, 1), (14, 2), (7, 3), (5, 4), (1, 4)),
    "avx512": ((20, 1), (8, 2), (4, 4), (1, 4)),
    "avx2vnni": ((12, 1), (6, 2), (3, 4), (1, 4)),
    "avx2": ((8, 1), (4, 2), (1, 4)),
    "neon": ((24, 1), (12, 2), (6, 4), (1, 4)),
    "portable": ((4, 2), (1, 4)),
}
"""Rows and vectors of the tiles that were fastest, by instruction set."""


@dataclass(frozen=True, slots=True)
class Tile:
    """What is computed at once.

    Parameters
    ----------
    rows, vectors : int
        Pixels, and registers of channels.
    has_table : bool
        Whether it goes on in the next row of the output where one ends: that needs a table
        of addresses, and leaves no registers idle.
    """

    rows: int
    vectors: int
    has_table: bool


def tile_of_u8(isa: Isa, lines: int, width: int, columns: int, steps: int) -> Tile:
    """The tile that computes a convolution or a matrix product fastest.

    Parameters
    ----------
    isa : Isa
    lines, width : int
        Rows of the output and pixels of each.
    columns : int
        Channels of the output.
    steps : int
        Groups of four products that are added up for each element.
    """
    tiles = [
        Tile(rows, vectors, has_table)
        for rows, vectors in _TILES_U8[isa.name]
        for has_table in (False, True)
        if not has_table or lines > 1
    ]
    return min(tiles, key=lambda tile: _cycles(isa, tile, lines, width, columns, steps))


def _cycles(isa: Isa, tile: Tile, lines: int, width: int, columns: int, steps: int) -> float:
    """About how long a product takes with a tile.

    Notes
    -----
    A step multiplies once per accumulator, or loads an element per row and its weights: these
    come from the second level of the cache, at half a register per cycle. What follows the
    steps, and what a table costs, was measured: both are more where rows of the output are
    single registers.
    """
    rows, vectors = tile.rows, tile.vectors
    panels = -(-columns // (vectors * isa.lanes))
    step = max(rows * vectors, rows + vectors, 2 * vectors)
    finish = 8 + 1.5 * rows * vectors + rows * (2 if vectors == 1 else 0.8)
    if tile.has_table:
        return -(-lines * width // rows) * (panels * (steps * step + finish + rows) + 3 * rows)
    return lines * -(-width // rows) * panels * (steps * step + finish)


_TILES_F32: Mapping[int, tuple[tuple[int, int], ...]] = {
    64: ((14, 2), (14, 1), (6, 4), (1, 8)),
    32: ((6, 2), (12, 1), (3, 4), (1, 8)),
    16: ((4, 2), (8, 1), (1, 4)),
}
"""Rows and vectors of the tiles that fill the registers, by their width in bytes.

Accumulators, the weights of a step and one element must fit: 7 by 4 of 64 bytes spill."""


def tile_of_f32(isa: Isa, num_pixels: int, columns: int, depth: int) -> tuple[int, int]:
    """Rows and vectors of the tile that computes a float32 product fastest.

    Parameters
    ----------
    isa : Isa
    num_pixels, columns, depth : int
        The product is (num_pixels, depth) times (depth, columns).

    Notes
    -----
    A step multiplies once per accumulator, broadcasts an element per row, or loads its
    weights, from the second level of the cache at half a register per cycle. NEON has 32
    registers of 16 bytes, twice as many as the tiles of that width are made for.
    """

    def cycles(tile: tuple[int, int]) -> float:
        rows, vectors = tile
        panels = -(-columns // (vectors * isa.lanes))
        step = max(rows * vectors, (rows + vectors) / 2 + vectors / 2, 2 * vectors)
        finish = 10 + 2 * rows * vectors + 2 * rows
        return -(-num_pixels // rows) * (panels * (depth * step + finish) + 4 * rows)

    return min(_TILES_F32[isa.vector_bytes], key=cycles)
