"""Gathers runs of bytes from a list of places."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# What Numba compiles has no types for mypy: everything is an integer or an address.

from __future__ import annotations

from armpy_numba_acc.llvm.pointers import load_i64
from armpy_numba_acc.llvm.sharing import share_items
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.blocks import make_copy_run

ARGUMENTS = ("source", "target", "offsets", "batches", "outers", "count", "run", "outer_pitch")
"""`offsets` has `count` offsets per batch, in bytes. Every batch has `outers` slices,
`outer_pitch` bytes apart, that the offsets are taken from one after the other."""


def make(isa: Isa):
    """Make the kernel; threads share the runs."""
    copy_run = make_copy_run(isa)

    def gather_runs(args, thread, num_threads):
        source, target, offsets = load_i64(args, 0), load_i64(args, 1), load_i64(args, 2)
        batches, outers, count = load_i64(args, 3), load_i64(args, 4), load_i64(args, 5)
        run, outer_pitch = load_i64(args, 6), load_i64(args, 7)
        number, last = share_items(batches * outers * count, thread, num_threads)
        while number < last:
            outer = number // count
            first = number - outer * count
            end = min(count, first + last - number)
            origin = source + outer * outer_pitch
            list_ = offsets + outer // outers * count * 8
            to = target + number * run
            for i in range(first, end):
                copy_run(to, origin + load_i64(list_, i), run)
                to += run
            number += end - first

    return gather_runs
