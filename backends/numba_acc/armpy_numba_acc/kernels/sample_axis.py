"""Finds the elements along an axis that others are taken from, or interpolated between."""

from __future__ import annotations

from collections.abc import Callable

from numba import float32, int64

from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.pointers import store_f32, store_i64
from armpy_numba_acc.llvm.threads.sharing import share_items
from armpy_numba_acc.machine.calls.images import SampleAxis
from armpy_numba_acc.machine.isa import Isa


def make(isa: Isa) -> Callable[[int, int, int], None]:
    """Make the kernel; threads share the elements."""
    read = reader(SampleAxis)

    def sample_axis(args: int, shares: int, num_shares: int) -> None:
        call = read(args)
        first, last = share_items(call.out_size, shares, num_shares)
        for i in range(first, last):
            place = (float32(i) + call.centre) * call.scale - call.offset
            lower = int64(place)  # above -1 all are
            if call.weights == 0:
                store_i64(call.positions, i, min(lower, call.size - 1) * call.pitch)
                continue
            share = place - float32(lower)
            upper = min(lower + int64(share > 0), call.size - 1)
            store_i64(call.positions, 2 * i, lower * call.pitch)
            store_i64(call.positions, 2 * i + 1, upper * call.pitch)
            store_f32(call.weights, 2 * i, float32(1) - share)
            store_f32(call.weights, 2 * i + 1, share)

    return sample_axis
