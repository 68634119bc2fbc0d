"""Fills memory with one element."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# What Numba compiles has no types for mypy: everything is an integer or an address.

from __future__ import annotations

from armpy_numba_acc.llvm.pointers import load_i64, store_i64, store_u8
from armpy_numba_acc.llvm.sharing import share
from armpy_numba_acc.machine.isa import Isa

ARGUMENTS = ("target", "size", "pattern")
"""`pattern` is 8 bytes of elements."""


def make(isa: Isa):
    """Make the kernel; threads share the bytes."""

    def fill(args, thread, num_threads):
        target, size, pattern = load_i64(args, 0), load_i64(args, 1), load_i64(args, 2)
        first, last = share(size, thread, num_threads)
        words = (last - first) // 8
        for i in range(words):
            store_i64(target + first, i, pattern)
        for i in range(first + words * 8, last):
            store_u8(target, i, (pattern >> (8 * (i & 7))) & 255)

    return fill
