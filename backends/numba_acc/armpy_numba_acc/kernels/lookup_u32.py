"""Looks up 32-bit elements by bytes."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# What Numba compiles has no types for mypy: everything is an integer or an address.

from __future__ import annotations

from armpy_numba_acc.llvm.pointers import load_i32, load_i64, load_u8, store_i32
from armpy_numba_acc.llvm.sharing import share
from armpy_numba_acc.machine.isa import Isa

ARGUMENTS = ("input", "output", "table", "size")
"""`table` has 256 elements of 32 bits."""


def make(isa: Isa):
    """Make the kernel; threads share the elements."""

    def lookup_u32(args, thread, num_threads):
        source, target = load_i64(args, 0), load_i64(args, 1)
        table, size = load_i64(args, 2), load_i64(args, 3)
        first, last = share(size, thread, num_threads)
        for i in range(first, last):
            store_i32(target, i, load_i32(table, load_u8(source, i)))

    return lookup_u32
