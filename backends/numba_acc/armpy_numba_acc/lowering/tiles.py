"""Which tile a matrix product is computed by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.program.choices import Choices, Option

_TILES_U8: Mapping[str, tuple[tuple[int, int], ...]] = {
    "avx512vnni": ((16, 1), (14, 2), (8, 2), (7, 3), (5, 4), (1, 4)),
    "avx512": ((20, 1), (8, 2), (4, 4), (1, 4)),
    "avx2vnni": ((12, 1), (6, 2), (3, 4), (1, 4)),
    "avx2": ((8, 1), (4, 2), (1, 4)),
    "neon": ((24, 1), (12, 2), (6, 4), (1, 4)),
    "portable": ((4, 2), (1, 4)),
}
"""Rows and vectors of the tiles that were fastest, by instruction set."""


_MORE_TILES_U8: Mapping[str, tuple[tuple[int, int], ...]] = {
    "avx512vnni": ((14, 1), (7, 1), (7, 2), (7, 4), (10, 2), (4, 4), (2, 4)),
    "avx512": ((10, 1), (7, 2), (4, 2), (2, 4)),
    "avx2vnni": ((7, 1), (4, 2), (2, 4)),
    "avx2": ((7, 1), (2, 2), (2, 4)),
    "neon": ((14, 1), (7, 2), (3, 4)),
    "portable": ((7, 1), (2, 2)),
}
"""Those that a measurement can prefer: they suit small images, or other caches."""


class Tile(NamedTuple):
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

    def __str__(self) -> str:
        return f"{self.rows}x{self.vectors}{' with table' if self.has_table else ''}"


def tile_of_u8(choices: Choices, lines: int, width: int, columns: int, steps: int) -> Tile:
    """The tile that computes a convolution or a matrix product fastest.

    Parameters
    ----------
    choices : Choices
    lines, width : int
        Rows of the output and pixels of each.
    columns : int
        Channels of the output.
    steps : int
        Groups of four products that are added up for each element.
    """
    isa = choices.isa
    return choices.choose(
        "convolution_u8 tile",
        (lines, width, columns, steps),
        _with_tables(_TILES_U8[isa.name], lines),
        lambda tile: _cycles(isa, tile, lines, width, columns, steps),
        _with_tables(_MORE_TILES_U8[isa.name], lines),
    )


def _with_tables(sizes: Sequence[tuple[int, int]], lines: int) -> list[Tile]:
    """Tiles of some sizes, with a table and without one where that makes a difference."""
    return [
        Tile(rows, vectors, has_table)
        for rows, vectors in sizes
        for has_table in (False, True)
        if not has_table or lines > 1
    ]


def tile_of_i16(choices: Choices, lines: int, width: int, columns: int, steps: int) -> Tile:
    """The tile that computes a product of 16-bit elements fastest.

    Parameters
    ----------
    choices, lines, width, columns
        As for `tile_of_u8`.
    steps : int
        Pairs of products that are added up for each element.

    Notes
    -----
    Accumulators are as many as for bytes; what follows the steps takes 64 bits, and longer.
    """
    isa = choices.isa
    return choices.choose(
        "convolution_i16 tile",
        (lines, width, columns, steps),
        _with_tables(_TILES_U8[isa.name], lines),
        lambda tile: _cycles(isa, tile, lines, width, columns, steps, 10.0),
        _with_tables(_MORE_TILES_U8[isa.name], lines),
    )


def rows_of_channels(isa: Isa, width: int) -> int:
    """How many pixels of a depthwise layer of 16-bit elements are computed at once.

    Parameters
    ----------
    width : int
        Pixels of a row of the output.
    """
    sizes = (8, 7, 6, 5, 4, 3, 2, 1) if isa.num_registers > 16 else (6, 5, 4, 3, 2, 1)
    return min(sizes, key=lambda rows: -(-width // rows) * (rows + 2))


def _cycles(
    isa: Isa,
    tile: Tile,
    lines: int,
    width: int,
    columns: int,
    steps: int,
    finish_of_vector: float = 1.5,
) -> float:
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
    finish = 8 + finish_of_vector * rows * vectors + rows * (2 if vectors == 1 else 0.8)
    if tile.has_table:
        return -(-lines * width // rows) * (panels * (steps * step + finish + rows) + 3 * rows)
    return lines * -(-width // rows) * panels * (steps * step + finish)


_TILES_F32: Mapping[int, tuple[Option, ...]] = {
    64: ((7, 1, 0), (9, 1, 0), (7, 2, 1), (9, 0, 3), (10, 0, 1), (1, 8, 0)),
    32: ((6, 2, 0), (12, 1, 0), (4, 3, 0), (1, 8, 0)),
    16: ((4, 2, 0), (8, 1, 0), (1, 4, 0)),
}
"""Rows, vectors and half vectors of the tiles that were fastest, by the registers' bytes.

Accumulators, the weights of a step and one element must fit: 7 by 4 of 64 bytes spill. The fewest
that keep the processor busy are best, as it begins with the next tile while it stores one."""


_MORE_TILES_F32: Mapping[int, tuple[Option, ...]] = {
    64: ((14, 2, 0), (14, 1, 0), (7, 2, 0), (9, 2, 0), (7, 3, 0), (6, 4, 0), (3, 3, 0), (2, 8, 0)),
    32: ((7, 1, 0), (4, 2, 0), (5, 2, 0), (2, 4, 0)),
    16: ((7, 1, 0), (3, 2, 0), (2, 4, 0)),
}
"""Those that a measurement can prefer."""

_SPLIT_REGISTERS = ("znver4",)
"""Processors that compute a register of 64 bytes as two halves, in twice the time of one."""


def width_of(isa: Isa, tile: Option) -> int:
    """Columns of a tile for float32."""
    _, vectors, halves = tile
    return vectors * isa.lanes + halves * (isa.lanes // 2)


def tile_of_f32(choices: Choices, num_pixels: int, columns: int, depth: int) -> Option:
    """Rows, vectors and half vectors of the tile that computes a float32 product fastest.

    Parameters
    ----------
    choices : Choices
    num_pixels, columns, depth : int
        The product is (num_pixels, depth) times (depth, columns).

    Notes
    -----
    A step multiplies once per accumulator, broadcasts an element per row, or loads its
    weights, from the second level of the cache at half a register per cycle. What follows the
    steps overlaps with the next tile's, unless it is too long. NEON has 32 registers of 16 bytes,
    twice as many as the tiles of that width are made for.
    """
    isa = choices.isa
    half_cost = 0.53 if isa.cpu in _SPLIT_REGISTERS else 1

    def cycles(tile: Option) -> float:
        rows, vectors = tile[0], tile[1] + tile[2] * half_cost
        panels = -(-columns // width_of(isa, tile))
        step = max(rows * vectors, 0.55 * rows + vectors, 2 * vectors)
        finish = max(rows * vectors, 5 * rows * vectors - 34)
        return -(-num_pixels // rows) * (panels * (depth * step + finish) + 5 * rows)

    return choices.choose(
        "convolution_f32 tile",
        (num_pixels, columns, depth),
        _TILES_F32[isa.vector_bytes],
        cycles,
        _MORE_TILES_F32[isa.vector_bytes],
    )


_TILES_BF16 = ((14, 1), (14, 2), (7, 3), (6, 4), (5, 5), (1, 8))
_MORE_TILES_BF16 = ((13, 2), (7, 1), (7, 2), (10, 2), (4, 4), (2, 8))
"""Those that were fastest, for registers of 64 bytes, and others for a measurement."""


def tile_of_bf16(choices: Choices, lines: int, width: int, columns: int, steps: int) -> Tile:
    """The tile that computes a product of bfloat16 fastest.

    Parameters
    ----------
    choices, lines, width, columns
        As for `tile_of_u8`.
    steps : int
        Pairs of products that are added up for each element.

    Notes
    -----
    What follows the steps was measured; it takes longer where a row has several vectors.
    """

    def cycles(tile: Tile) -> float:
        rows, vectors, has_table = tile
        panels = -(-columns // (vectors * choices.isa.lanes))
        step = max(rows * vectors, 2 * vectors)
        finish = rows * vectors * (2.6 if vectors == 1 else 3.2) + 5
        if has_table:
            return -(-lines * width // rows) * (panels * (steps * step + finish + rows) + 3 * rows)
        return lines * -(-width // rows) * panels * (steps * step + finish)

    return choices.choose(
        "convolution_bf16 tile",
        (lines, width, columns, steps),
        _with_tables(_TILES_BF16, lines),
        cycles,
        _with_tables(_MORE_TILES_BF16, lines),
    )


_CACHED_BYTES = (128 << 10, 256 << 10, 512 << 10, 1 << 20)
"""Amounts of weights that may be used for all pixels before the next ones are."""


def panels_at_once(
    choices: Choices, family: str, shape: Sequence[int], panel_bytes: int, cached_bytes: int
) -> int:
    """How many panels of weights are used for all pixels before the next ones.

    Parameters
    ----------
    choices : Choices
    family : str
        The kernel's.
    shape : sequence of int
        Pixels, panels and depth.
    panel_bytes : int
    cached_bytes : int
        How many of weights stay in the cache, as the model of the cost says.
    """
    num_panels = shape[1]
    modelled = min(max(cached_bytes // panel_bytes, 1), num_panels)
    sizes = [min(max(size // panel_bytes, 1), num_panels) for size in _CACHED_BYTES]
    options = [(size,) for size in dict.fromkeys((modelled, *sizes, num_panels))]
    (chosen,) = choices.choose(
        f"{family} panels at once", shape, options, lambda option: option != (modelled,)
    )
    return chosen
