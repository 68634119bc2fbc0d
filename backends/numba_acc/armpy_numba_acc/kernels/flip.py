"""Flips the top bit of every byte: int8 elements as uint8 ones, and back."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# What Numba compiles has no types for mypy: everything is an integer or an address.

from __future__ import annotations

from numba import uint8

from armpy_numba_acc.llvm.pointers import load_i64, load_u8, store_u8
from armpy_numba_acc.llvm.sharing import share
from armpy_numba_acc.machine.isa import Isa

ARGUMENTS = ("input", "output", "size")


def make(isa: Isa):
    """Make the kernel; threads share the elements."""
    top = uint8(0x80)

    def flip(args, thread, num_threads):
        source, target, size = load_i64(args, 0), load_i64(args, 1), load_i64(args, 2)
        first, last = share(size, thread, num_threads)
        for i in range(first, last):
            store_u8(target, i, load_u8(source, i) ^ top)

    return flip
