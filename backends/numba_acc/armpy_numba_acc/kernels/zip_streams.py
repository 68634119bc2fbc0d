"""Interleaves a few streams of elements, or takes them apart: images with few channels."""

from __future__ import annotations

from collections.abc import Callable

from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.pointers import INTEGERS
from armpy_numba_acc.llvm.threads.sharing import share
from armpy_numba_acc.machine.calls.moves import ZipStreams
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.blocks import nested_offsets


def make(isa: Isa, size: int, count: int, direction: str) -> Callable[[int, int, int], None]:
    """Make the kernel for `count` streams of elements; threads share the streams' length."""
    (load, store), read, is_in = INTEGERS[size], reader(ZipStreams), direction == "in"

    def zip_streams(args: int, shares: int, num_shares: int) -> None:
        call = read(args)
        first, last = share(call.length, shares, num_shares)
        for item in range(call.num_items):
            from_, to = nested_offsets(item, call.table, call.num_dims)
            source, target = call.source + from_, call.target + to
            for i in range(first, last):
                for j in range(count):
                    if is_in:
                        store(target, i * count + j, load(source + j * call.pitch, i))
                    else:
                        store(target + j * call.pitch, i, load(source, i * count + j))

    return zip_streams
