"""Copies bytes."""

from __future__ import annotations

from collections.abc import Callable

from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.pointers import load_u8, store_u8
from armpy_numba_acc.llvm.threads.sharing import share
from armpy_numba_acc.machine.calls.moves import Copy
from armpy_numba_acc.machine.isa import Isa


def make(isa: Isa) -> Callable[[int, int, int], None]:
    """Make the kernel; threads share the elements. Nothing is to do for what is there already."""
    read = reader(Copy)

    def copy(args: int, shares: int, num_shares: int) -> None:
        call = read(args)
        if call.source == call.target:
            return
        first, last = share(call.size, shares, num_shares)
        for i in range(first, last):
            store_u8(call.target, i, load_u8(call.source, i))

    return copy
