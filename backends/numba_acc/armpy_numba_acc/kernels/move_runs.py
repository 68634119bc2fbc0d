"""Moves runs of bytes, or single elements, between tensors with any pitches."""

from __future__ import annotations

from collections.abc import Callable

from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.threads.sharing import share_items
from armpy_numba_acc.machine.calls.moves import MoveRuns
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.blocks import make_copy_run, make_copy_size, nested_offsets


def make(isa: Isa, size: int) -> Callable[[int, int, int], None]:
    """Make the kernel; threads share the rows of all items."""
    copy, read = make_copy_size(size) if size else make_copy_run(isa), reader(MoveRuns)

    def move_runs(args: int, shares: int, num_shares: int) -> None:
        call = read(args)
        number, last = share_items(call.num_items * call.rows, shares, num_shares)
        while number < last:
            item = number // call.rows
            row = number - item * call.rows
            last_row = min(call.rows, row + last - number)
            from_, to = nested_offsets(item, call.table, call.num_dims)
            for y in range(row, last_row):
                for x in range(call.columns):
                    copy(
                        call.target + to + y * call.target_row + x * call.target_column,
                        call.source + from_ + y * call.source_row + x * call.source_column,
                        call.run,
                    )
            number += last_row - row

    return move_runs
