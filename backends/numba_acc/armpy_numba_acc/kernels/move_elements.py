"""Moves single elements between tensors with any pitches."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# What Numba compiles has no types for mypy: everything is an integer or an address.

from __future__ import annotations

from armpy_numba_acc.llvm.pointers import load_i64
from armpy_numba_acc.llvm.sharing import share_items
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.blocks import make_copy_vector, nested_offsets

ARGUMENTS = (
    "source",
    "target",
    "table",
    "num_dims",
    "num_items",
    "rows",
    "source_row",
    "target_row",
    "columns",
    "source_column",
    "target_column",
)
"""As for `move_runs`."""


def make(isa: Isa, size: int):
    """Make the kernel for elements of `size` bytes; threads share the rows of all items."""
    copy = make_copy_vector(size)

    def move_elements(args, thread, num_threads):
        source, target, table = load_i64(args, 0), load_i64(args, 1), load_i64(args, 2)
        num_dims, num_items, rows = load_i64(args, 3), load_i64(args, 4), load_i64(args, 5)
        source_row, target_row = load_i64(args, 6), load_i64(args, 7)
        columns, source_column = load_i64(args, 8), load_i64(args, 9)
        target_column = load_i64(args, 10)
        number, last = share_items(num_items * rows, thread, num_threads)
        while number < last:
            item = number // rows
            row = number - item * rows
            last_row = min(rows, row + last - number)
            from_, to = nested_offsets(item, table, num_dims)
            for y in range(row, last_row):
                for x in range(columns):
                    copy(
                        target + to + y * target_row + x * target_column,
                        source + from_ + y * source_row + x * source_column,
                    )
            number += last_row - row

    return move_elements
