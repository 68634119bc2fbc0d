"""Bilinear interpolation of images of 16-bit elements."""

from __future__ import annotations

from collections.abc import Callable

from armpy_numba_acc.kernels.resize_bilinear import FRACTION_BITS
from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.pointers import load_i16, load_i32, load_i64, store_i16, store_i64
from armpy_numba_acc.llvm.threads.sharing import share_items, thread_of
from armpy_numba_acc.machine.calls.images import Interpolation
from armpy_numba_acc.machine.isa import Isa

_BITS = 2 * FRACTION_BITS


def make(isa: Isa) -> Callable[[int, int, int], None]:
    """Make the kernel; threads share the output's rows.

    Products of two weights have 20 fraction bits; sums of them are exact in 64 bits and rounded,
    ties away from zero.
    """
    read = reader(Interpolation)

    def resize_bilinear_i16(args: int, shares: int, num_shares: int) -> None:
        call = read(args)
        rows, row_weights = call.rows, call.row_weights
        columns, column_weights = call.columns, call.column_weights
        out_height, out_width, channels = call.out_height, call.out_width, call.channels
        blended = call.scratch + thread_of(shares) * call.scratch_pitch
        first, last = share_items(call.images * out_height, shares, num_shares)
        for row in range(first, last):
            image = row // out_height
            y = row - image * out_height
            origin = call.source + image * call.image_pitch
            upper, lower = origin + load_i64(rows, 2 * y), origin + load_i64(rows, 2 * y + 1)
            above, below = load_i32(row_weights, 2 * y), load_i32(row_weights, 2 * y + 1)
            for i in range(call.row_elements):
                store_i64(blended, i, load_i16(upper, i) * above + load_i16(lower, i) * below)
            place = call.target + row * out_width * channels * 2
            for x in range(out_width):
                from_left = blended + load_i64(columns, 2 * x) * 8
                from_right = blended + load_i64(columns, 2 * x + 1) * 8
                left, right = load_i32(column_weights, 2 * x), load_i32(column_weights, 2 * x + 1)
                for c in range(channels):
                    total = load_i64(from_left, c) * left + load_i64(from_right, c) * right
                    size = (abs(total) + (1 << (_BITS - 1))) >> _BITS
                    store_i16(place, c, size if total >= 0 else -size)
                place += channels * 2

    return resize_bilinear_i16
