"""Flips the top bit of every byte: int8 elements as uint8 ones, and back."""

from __future__ import annotations

from collections.abc import Callable

from numba import uint8

from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.pointers import load_u8, store_u8
from armpy_numba_acc.llvm.threads.sharing import share
from armpy_numba_acc.machine.calls.elementwise import Flip
from armpy_numba_acc.machine.isa import Isa


def make(isa: Isa) -> Callable[[int, int, int], None]:
    """Make the kernel; threads share the elements."""
    top, read = uint8(0x80), reader(Flip)

    def flip(args: int, shares: int, num_shares: int) -> None:
        call = read(args)
        first, last = share(call.size, shares, num_shares)
        for i in range(first, last):
            store_u8(call.target, i, load_u8(call.source, i) ^ top)

    return flip
