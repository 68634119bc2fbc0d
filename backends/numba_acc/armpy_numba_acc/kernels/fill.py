"""Fills memory with one element."""

from __future__ import annotations

from collections.abc import Callable

from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.pointers import store_i64, store_u8
from armpy_numba_acc.llvm.threads.sharing import share
from armpy_numba_acc.machine.calls.moves import Fill
from armpy_numba_acc.machine.isa import Isa


def make(isa: Isa) -> Callable[[int, int, int], None]:
    """Make the kernel; threads share the bytes."""
    read = reader(Fill)

    def fill(args: int, shares: int, num_shares: int) -> None:
        call = read(args)
        first, last = share(call.size, shares, num_shares)
        words = (last - first) // 8
        for i in range(words):
            store_i64(call.target + first, i, call.pattern)
        for i in range(first + words * 8, last):
            store_u8(call.target, i, (call.pattern >> (8 * (i & 7))) & 255)

    return fill
