"""Transposes tensors tile by tile."""

from __future__ import annotations

from collections.abc import Callable

from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.threads.sharing import share_items
from armpy_numba_acc.machine.calls.moves import MoveTiles
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.blocks import make_transpose_tile, nested_offsets

STRIP = 8
"""Tiles that are read side by side before the next ones of a column: whole cache lines."""


def make(isa: Isa, size: int, length: int) -> Callable[[int, int, int], None]:
    """Make the kernel for elements of `size` bytes and tiles of `length` rows and columns.

    The last tiles overlap those in front of them. Threads share strips of tiles.
    """
    transpose, read = make_transpose_tile(size, length), reader(MoveTiles)

    def move_tiles(args: int, shares: int, num_shares: int) -> None:
        call = read(args)
        tiles = (call.width + length - 1) // length
        strips = (tiles + STRIP - 1) // STRIP
        first, last = share_items(call.num_items * strips, shares, num_shares)
        for number in range(first, last):
            item = number // strips
            strip = number - item * strips
            from_, to = nested_offsets(item, call.table, call.num_dims)
            for row in range(0, call.height, length):
                y = min(row, call.height - length)
                for tile in range(strip * STRIP, min(strip * STRIP + STRIP, tiles)):
                    x = min(tile * length, call.width - length)
                    transpose(
                        call.target + to + x * call.target_pitch + y * size,
                        call.source + from_ + y * call.source_pitch + x * size,
                        call.target_pitch,
                        call.source_pitch,
                    )

    return move_tiles
