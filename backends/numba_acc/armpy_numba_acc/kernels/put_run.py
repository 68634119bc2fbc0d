"""Copies a run of bytes to a place that is known only when it is written."""

from __future__ import annotations

from collections.abc import Callable

from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.pointers import INTEGERS
from armpy_numba_acc.llvm.threads.sharing import share
from armpy_numba_acc.machine.calls.gathering import PutRun
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.blocks import make_copy_run


def make(isa: Isa, index_bytes: int) -> Callable[[int, int, int], None]:
    """Make the kernel; threads share the bytes."""
    copy_run, read = make_copy_run(isa), reader(PutRun)
    load_index, _ = INTEGERS[index_bytes]

    def put_run(args: int, shares: int, num_shares: int) -> None:
        call = read(args)
        index = load_index(call.index, 0)
        if index >= 0 and index < call.count:
            first, last = share(call.run, shares, num_shares)
            to = call.target + index * call.run + first
            copy_run(to, call.source + first, last - first)

    return put_run
