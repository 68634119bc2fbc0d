"""Interleaves a few streams of elements, or takes them apart: images with few channels."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# What Numba compiles has no types for mypy: everything is an integer or an address.

from __future__ import annotations

from armpy_numba_acc.llvm.pointers import (
    load_i16,
    load_i32,
    load_i64,
    load_u8,
    store_i16,
    store_i32,
    store_i64,
    store_u8,
)
from armpy_numba_acc.llvm.sharing import share
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.blocks import nested_offsets

ARGUMENTS = ("source", "target", "table", "num_dims", "num_items", "length", "pitch")
"""The table as for `move_runs`. The streams have `length` elements each and begin `pitch`
bytes apart on one side; on the other one, elements of all streams alternate."""

_ACCESS = {
    1: (load_u8, store_u8),
    2: (load_i16, store_i16),
    4: (load_i32, store_i32),
    8: (load_i64, store_i64),
}


def make(isa: Isa, size: int, count: int, direction: str):
    """Make the kernel for `count` streams of elements of `size` bytes.

    Parameters
    ----------
    direction : {"in", "out"}
        Whether streams are interleaved or taken apart. Threads share the streams' length.
    """
    load, store = _ACCESS[size]

    def zip_in(args, thread, num_threads):
        source, target, table = load_i64(args, 0), load_i64(args, 1), load_i64(args, 2)
        num_dims, num_items = load_i64(args, 3), load_i64(args, 4)
        length, pitch = load_i64(args, 5), load_i64(args, 6)
        first, last = share(length, thread, num_threads)
        for item in range(num_items):
            from_, to = nested_offsets(item, table, num_dims)
            for i in range(first, last):
                for j in range(count):
                    store(target + to, i * count + j, load(source + from_ + j * pitch, i))

    def zip_out(args, thread, num_threads):
        source, target, table = load_i64(args, 0), load_i64(args, 1), load_i64(args, 2)
        num_dims, num_items = load_i64(args, 3), load_i64(args, 4)
        length, pitch = load_i64(args, 5), load_i64(args, 6)
        first, last = share(length, thread, num_threads)
        for item in range(num_items):
            from_, to = nested_offsets(item, table, num_dims)
            for i in range(first, last):
                for j in range(count):
                    store(target + to + j * pitch, i, load(source + from_, i * count + j))

    return zip_in if direction == "in" else zip_out
