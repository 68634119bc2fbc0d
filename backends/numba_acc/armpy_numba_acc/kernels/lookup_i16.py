"""Looks up what becomes of 16-bit elements."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# What Numba compiles has no types for mypy: everything is an integer or an address.

from __future__ import annotations

from armpy_numba_acc.llvm.pointers import load_i16, load_i64, store_i16
from armpy_numba_acc.llvm.sharing import share
from armpy_numba_acc.machine.isa import Isa

ARGUMENTS = ("input", "output", "table", "size")
"""`table` has 65,536 entries of 16 bits, by the elements' bits."""


def make(isa: Isa):
    """Make the kernel; threads share the elements."""

    def lookup_i16(args, thread, num_threads):
        source, target, table = load_i64(args, 0), load_i64(args, 1), load_i64(args, 2)
        first, last = share(load_i64(args, 3), thread, num_threads)
        for i in range(first, last):
            store_i16(target, i, load_i16(table, load_i16(source, i) & 0xFFFF))

    return lookup_i16
