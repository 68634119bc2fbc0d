"""Gathers runs of bytes by indices that are known only when they are read."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# What Numba compiles has no types for mypy: everything is an integer or an address.

from __future__ import annotations

from armpy_numba_acc.llvm.fork_join import fail
from armpy_numba_acc.llvm.pointers import load_i16, load_i32, load_i64
from armpy_numba_acc.llvm.sharing import share_items
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.blocks import make_copy_run

ARGUMENTS = (
    "source",
    "target",
    "indices",
    "axes",
    "depth",
    "batches",
    "outers",
    "count",
    "run",
    "outer_pitch",
    "failure",
)
"""Every batch has `count` places of `depth` indices each, and `outers` slices, `outer_pitch` bytes
apart, that they are looked up in one after the other. `axes` has the size of each indexed axis, and
bytes from one of its elements to the next. `failure` is as `fail` takes it."""

_LOADS = {2: load_i16, 4: load_i32, 8: load_i64}


def make(isa: Isa, index_bytes: int):
    """Make the kernel; threads share the runs.

    Notes
    -----
    Nothing is read where an index is out of range: the kernel ends there.
    """
    copy_run = make_copy_run(isa)
    load_index = _LOADS[index_bytes]

    def gather_checked(args, thread, num_threads):
        source, target, indices = load_i64(args, 0), load_i64(args, 1), load_i64(args, 2)
        axes, depth, batches = load_i64(args, 3), load_i64(args, 4), load_i64(args, 5)
        outers, count, run = load_i64(args, 6), load_i64(args, 7), load_i64(args, 8)
        outer_pitch, failure = load_i64(args, 9), load_i64(args, 10)
        number, last = share_items(batches * outers * count, thread, num_threads)
        while number < last:
            outer = number // count
            first = number - outer * count
            end = min(count, first + last - number)
            origin = source + outer * outer_pitch
            place = indices + (outer // outers * count + first) * depth * index_bytes
            to = target + number * run
            for _ in range(first, end):
                from_ = origin
                for axis in range(depth):
                    index = load_index(place, axis)
                    size = load_i64(axes, 2 * axis)
                    if index < 0 or index >= size:
                        fail(failure, size, index)
                        return
                    from_ += index * load_i64(axes, 2 * axis + 1)
                copy_run(to, from_, run)
                place += depth * index_bytes
                to += run
            number += end - first

    return gather_checked
