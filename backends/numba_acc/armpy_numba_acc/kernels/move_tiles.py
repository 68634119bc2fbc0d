"""Transposes tensors tile by tile."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# What Numba compiles has no types for mypy: everything is an integer or an address.

from __future__ import annotations

from armpy_numba_acc.llvm.pointers import load_i64
from armpy_numba_acc.llvm.sharing import share_items
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.blocks import make_transpose_tile, nested_offsets

ARGUMENTS = (
    "source",
    "target",
    "table",
    "num_dims",
    "num_items",
    "width",
    "target_pitch",
    "height",
    "source_pitch",
)
"""The table as for `move_runs`. `width` elements lie side by side in the source and
`target_pitch` bytes apart in the target, `height` elements the other way round."""

STRIP = 8
"""Tiles that are read side by side before the next ones of a column: whole cache lines."""


def make(isa: Isa, size: int, length: int):
    """Make the kernel for elements of `size` bytes and tiles of `length` rows and columns.

    Notes
    -----
    Width and height are `length` at least: the last tiles overlap those in front of them.
    Threads share strips of tiles.
    """
    transpose = make_transpose_tile(size, length)

    def move_tiles(args, thread, num_threads):
        source, target, table = load_i64(args, 0), load_i64(args, 1), load_i64(args, 2)
        num_dims, num_items = load_i64(args, 3), load_i64(args, 4)
        width, target_pitch = load_i64(args, 5), load_i64(args, 6)
        height, source_pitch = load_i64(args, 7), load_i64(args, 8)
        tiles = (width + length - 1) // length
        strips = (tiles + STRIP - 1) // STRIP
        first, last = share_items(num_items * strips, thread, num_threads)
        for number in range(first, last):
            item = number // strips
            strip = number - item * strips
            from_, to = nested_offsets(item, table, num_dims)
            for row in range(0, height, length):
                y = min(row, height - length)
                for tile in range(strip * STRIP, min(strip * STRIP + STRIP, tiles)):
                    x = min(tile * length, width - length)
                    transpose(
                        target + to + x * target_pitch + y * size,
                        source + from_ + y * source_pitch + x * size,
                        target_pitch,
                        source_pitch,
                    )

    return move_tiles
