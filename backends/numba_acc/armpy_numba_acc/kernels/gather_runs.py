"""Gathers runs of bytes from a list of places."""

from __future__ import annotations

from collections.abc import Callable

from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.pointers import load_i64
from armpy_numba_acc.llvm.threads.sharing import share_items
from armpy_numba_acc.machine.calls.gathering import GatherRuns
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.blocks import make_copy_run


def make(isa: Isa) -> Callable[[int, int, int], None]:
    """Make the kernel; threads share the runs."""
    copy_run, read = make_copy_run(isa), reader(GatherRuns)

    def gather_runs(args: int, shares: int, num_shares: int) -> None:
        call = read(args)
        number, last = share_items(call.batches * call.outers * call.count, shares, num_shares)
        while number < last:
            outer = number // call.count
            first = number - outer * call.count
            end = min(call.count, first + last - number)
            origin = call.source + outer * call.outer_pitch
            offsets = call.offsets + outer // call.outers * call.count * 8
            to = call.target + number * call.run
            for i in range(first, end):
                copy_run(to, origin + load_i64(offsets, i), call.run)
                to += call.run
            number += end - first

    return gather_runs
