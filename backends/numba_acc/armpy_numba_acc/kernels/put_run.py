"""Copies a run of bytes to a place that is known only when it is written."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# What Numba compiles has no types for mypy: everything is an integer or an address.

from __future__ import annotations

from armpy_numba_acc.llvm.pointers import load_i32, load_i64
from armpy_numba_acc.llvm.sharing import share
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.blocks import make_copy_run

ARGUMENTS = ("source", "target", "index", "count", "run")
"""`target` has `count` places of `run` bytes each; the integer at `index` says which one. Nothing
is written where there is no such place."""

_LOADS = {4: load_i32, 8: load_i64}


def make(isa: Isa, index_bytes: int):
    """Make the kernel; threads share the bytes."""
    copy_run, load_index = make_copy_run(isa), _LOADS[index_bytes]

    def put_run(args, thread, num_threads):
        source, target = load_i64(args, 0), load_i64(args, 1)
        count, run = load_i64(args, 3), load_i64(args, 4)
        index = load_index(load_i64(args, 2), 0)
        if index >= 0 and index < count:
            first, last = share(run, thread, num_threads)
            copy_run(target + index * run + first, source + first, last - first)

    return put_run
