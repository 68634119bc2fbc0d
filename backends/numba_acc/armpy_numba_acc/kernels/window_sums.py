"""Sums of each element and its neighbours along an axis, or of their squares."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"
# What Numba compiles has no types for mypy: everything is an integer or an address.

from __future__ import annotations

from numba import njit

from armpy_numba_acc.llvm.pointers import load_f32, load_i64, store_f32
from armpy_numba_acc.llvm.sharing import share, share_items
from armpy_numba_acc.machine.isa import Isa

ARGUMENTS = ("input", "output", "planes", "length", "pitch", "radius")
"""`length` elements of each plane, neighbours `pitch` elements apart; no further than `radius`."""


def make(isa: Isa, squares: int):
    """Make the kernel; threads share the planes, or if these are too few, each of them."""

    @njit(error_model="numpy")
    def summand(source, index):
        """What an element counts for."""
        element = load_f32(source, index)
        return element * element if squares else element

    def window_sums(args, thread, num_threads):
        planes, length = load_i64(args, 2), load_i64(args, 3)
        pitch, radius = load_i64(args, 4), load_i64(args, 5)
        first, last, begin, end = 0, planes, 0, length
        if planes >= num_threads:
            first, last = share_items(planes, thread, num_threads)
        else:
            begin, end = share(length, thread, num_threads)
        for plane in range(first, last):
            source = load_i64(args, 0) + 4 * plane * length
            target = load_i64(args, 1) + 4 * plane * length
            for i in range(begin, end):
                store_f32(target, i, summand(source, i))
            for distance in range(pitch, min(radius * pitch + 1, length), pitch):
                for i in range(max(begin, distance), end):
                    store_f32(target, i, load_f32(target, i) + summand(source, i - distance))
                for i in range(begin, min(end, length - distance)):
                    store_f32(target, i, load_f32(target, i) + summand(source, i + distance))

    return window_sums
