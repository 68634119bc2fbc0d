"""Sums of each element and its neighbours along an axis, or of their squares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.pointers import load_f32, store_f32
from armpy_numba_acc.llvm.primitives import compiled
from armpy_numba_acc.llvm.threads.sharing import share, share_items
from armpy_numba_acc.machine.call import Pointer
from armpy_numba_acc.machine.calls.rows import WindowSums
from armpy_numba_acc.machine.isa import Isa


def make(isa: Isa, squares: int) -> Callable[[int, int, int], None]:
    """Make the kernel; threads share the planes, or if these are too few, each of them."""
    read = reader(WindowSums)

    @compiled
    def summand(source: Pointer, index: int) -> Any:  # Any: a float32
        """Return the summand of an element."""
        element = load_f32(source, index)
        return element * element if squares else element

    def window_sums(args: int, shares: int, num_shares: int) -> None:
        call = read(args)
        length, pitch = call.length, call.pitch
        first, last, begin, end = 0, call.planes, 0, length
        if call.planes >= num_shares:
            first, last = share_items(call.planes, shares, num_shares)
        else:
            begin, end = share(length, shares, num_shares)
        for plane in range(first, last):
            source = call.source + 4 * plane * length
            target = call.target + 4 * plane * length
            for i in range(begin, end):
                store_f32(target, i, summand(source, i))
            for distance in range(pitch, min(call.radius * pitch + 1, length), pitch):
                for i in range(max(begin, distance), end):
                    store_f32(target, i, load_f32(target, i) + summand(source, i - distance))
                for i in range(begin, min(end, length - distance)):
                    store_f32(target, i, load_f32(target, i) + summand(source, i + distance))

    return window_sums
