"""Copies bytes."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# What Numba compiles has no types for mypy: everything is an integer or an address.

from __future__ import annotations

from armpy_numba_acc.llvm.pointers import load_i64, load_u8, store_u8
from armpy_numba_acc.llvm.sharing import share
from armpy_numba_acc.machine.isa import Isa

ARGUMENTS = ("input", "output", "size")


def make(isa: Isa):
    """Make the kernel; threads share the elements."""

    def copy(args, thread, num_threads):
        source, target, size = load_i64(args, 0), load_i64(args, 1), load_i64(args, 2)
        first, last = share(size, thread, num_threads)
        for i in range(first, last):
            store_u8(target, i, load_u8(source, i))

    return copy
