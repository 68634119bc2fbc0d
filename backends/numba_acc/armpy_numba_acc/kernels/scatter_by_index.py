"""Writes runs of elements where indices say that are known only when they are read."""

from __future__ import annotations

from collections.abc import Callable

from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.pointers import INTEGERS, load_i64
from armpy_numba_acc.llvm.threads.fork_join import fail
from armpy_numba_acc.llvm.threads.sharing import share
from armpy_numba_acc.machine.calls.gathering import ScatterByIndex
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.updates import make_update_run


def make(
    isa: Isa, format_: str, index_bytes: int, reduction: str
) -> Callable[[int, int, int], None]:
    """Make the kernel; threads share the bytes of each run, so that runs keep their order.

    Nothing is written where an index is out of range: the kernel ends there.
    """
    update, read = make_update_run(isa, reduction, format_), reader(ScatterByIndex)
    load_index, _ = INTEGERS[index_bytes]

    def scatter_by_index(args: int, shares: int, num_shares: int) -> None:
        call = read(args)
        first, last = share(call.run, shares, num_shares)
        if first >= last:
            return
        from_ = call.updates + first
        for number in range(call.count):
            to = call.target + first
            for axis in range(call.depth):
                index = load_index(call.indices, number * call.depth + axis)
                size = load_i64(call.axes, 3 * axis)
                if index < load_i64(call.axes, 3 * axis + 2) or index >= size:
                    fail(call.failure, size, index)
                    return
                if index < 0:
                    index += size
                to += index * load_i64(call.axes, 3 * axis + 1)
            update(to, from_, last - first)
            from_ += call.run

    return scatter_by_index
