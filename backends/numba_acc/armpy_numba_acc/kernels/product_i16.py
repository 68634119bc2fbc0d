"""Products of two matrices of 16-bit elements, added up in 64 bits."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# What Numba compiles has no types for mypy: everything is an integer or an address.

from __future__ import annotations

from armpy_numba_acc.llvm.fixed_point import limited
from armpy_numba_acc.llvm.pointers import load_i16, load_i64, store_i16, store_i64
from armpy_numba_acc.llvm.sharing import share_items
from armpy_numba_acc.machine.isa import Isa

ARGUMENTS = (
    "x",
    "y",
    "output",
    "rows",
    "depth",
    "columns",
    "scratch",
    "scratch_bytes",
    "factor",
    "addend",
    "shift",
)
"""Matrices row by row; each thread has `scratch_bytes` for 8 bytes of every column. A sum becomes
``(sum * factor + addend) >> shift``."""


def make(isa: Isa):
    """Make the kernel; threads share the rows of x."""

    def product_i16(args, thread, num_threads):
        rows, depth, columns = load_i64(args, 3), load_i64(args, 4), load_i64(args, 5)
        totals = load_i64(args, 6) + thread * load_i64(args, 7)
        factor, addend, shift = load_i64(args, 8), load_i64(args, 9), load_i64(args, 10)
        first, last = share_items(rows, thread, num_threads)
        for row in range(first, last):
            x = load_i64(args, 0) + 2 * row * depth
            target = load_i64(args, 2) + 2 * row * columns
            for j in range(columns):
                store_i64(totals, j, 0)
            for k in range(depth):
                element = load_i16(x, k)
                y = load_i64(args, 1) + 2 * k * columns
                for j in range(columns):
                    store_i64(totals, j, load_i64(totals, j) + element * load_i16(y, j))
            for j in range(columns):
                value = (load_i64(totals, j) * factor + addend) >> shift
                store_i16(target, j, limited(value, -32768, 32767))

    return product_i16
