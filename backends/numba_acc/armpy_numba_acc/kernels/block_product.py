"""Products of float32, or of bytes in its place, with numbers of few bits in blocks."""

from __future__ import annotations

from collections.abc import Callable

from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.threads.sharing import share_items
from armpy_numba_acc.machine.calls.vectors import BlockProduct
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.block_weights import BlockFormat, tile

_SOURCE_BYTES = 1 << 19
"""Bytes of rows that panels of weights are multiplied with one after the other."""


def make(
    isa: Isa, bits: int, block: int, has_points: int, has_bias: int, source: str
) -> Callable[[int, int, int], None]:
    """Make the kernel for the record's parameters; threads share the units."""
    form = BlockFormat(isa, bits, block, has_points, has_bias, source == "bytes")
    rows_at_once, panels_at_once = (8, 4) if isa.num_registers >= 32 else (4, 2)
    many, wide, single = (
        tile(form, *sizes) for sizes in ((rows_at_once, 1), (1, panels_at_once), (1, 1))
    )
    read = reader(BlockProduct)
    lanes, row_bytes = isa.lanes, block * (1 if source == "bytes" else 4)

    def block_product(args: int, shares: int, num_shares: int) -> None:
        call = read(args)
        rows = call.rows
        panels = (call.units + lanes - 1) // lanes
        first, last = share_items(panels, shares, num_shares)
        if rows < rows_at_once:
            # Panels at once are far from each other: each is read on from where the last one ended.
            stride = (last - first) // panels_at_once
            for row in range(rows):
                for panel in range(first, first + stride):
                    wide(args, row, panel, stride)
                for panel in range(first + stride * panels_at_once, last):
                    single(args, row, panel, 0)
            return
        group = max(_SOURCE_BYTES // (call.blocks * row_bytes) // rows_at_once, 1) * rows_at_once
        for begin in range(0, rows, group):
            end = min(begin + group, rows)
            for panel in range(first, last):
                # The last rows overlap the ones in front of them.
                for row in range(begin, end, rows_at_once):
                    many(args, min(row, rows - rows_at_once), panel, 0)

    return block_product
