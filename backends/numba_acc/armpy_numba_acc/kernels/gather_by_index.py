"""Gathers runs of bytes by indices that are known only when they are read."""

from __future__ import annotations

from collections.abc import Callable

from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.pointers import INTEGERS, load_i64
from armpy_numba_acc.llvm.threads.fork_join import fail
from armpy_numba_acc.llvm.threads.sharing import share_items
from armpy_numba_acc.machine.calls.gathering import GatherByIndex
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.blocks import make_copy_run


def make(isa: Isa, index_bytes: int) -> Callable[[int, int, int], None]:
    """Make the kernel; threads share the runs.

    Nothing is read where an index is out of range: the kernel ends there.
    """
    copy_run, read = make_copy_run(isa), reader(GatherByIndex)
    load_index, _ = INTEGERS[index_bytes]

    def gather_by_index(args: int, shares: int, num_shares: int) -> None:
        call = read(args)
        pitch = call.depth * index_bytes
        number, last = share_items(call.batches * call.outers * call.count, shares, num_shares)
        while number < last:
            outer = number // call.count
            first = number - outer * call.count
            end = min(call.count, first + last - number)
            origin = call.source + outer * call.outer_pitch
            place = call.indices + (outer // call.outers * call.count + first) * pitch
            to = call.target + number * call.run
            for _ in range(first, end):
                from_ = origin
                for axis in range(call.depth):
                    index = load_index(place, axis)
                    size = load_i64(call.axes, 3 * axis)
                    if index < load_i64(call.axes, 3 * axis + 2) or index >= size:
                        fail(call.failure, size, index)
                        return
                    if index < 0:
                        index += size
                    from_ += index * load_i64(call.axes, 3 * axis + 1)
                copy_run(to, from_, call.run)
                place += pitch
                to += call.run
            number += end - first

    return gather_by_index
