"""Interpolates images of 16-bit elements."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# What Numba compiles has no types for mypy: everything is an integer or an address.

from __future__ import annotations

from armpy_numba_acc.kernels import resize_bilinear
from armpy_numba_acc.llvm.pointers import load_i16, load_i32, load_i64, store_i16, store_i64
from armpy_numba_acc.llvm.sharing import share_items
from armpy_numba_acc.machine.isa import Isa

ARGUMENTS = resize_bilinear.ARGUMENTS
"""Each thread has scratch memory for 8 bytes of every element of a row of the input."""

_BITS = 2 * resize_bilinear.FRACTION_BITS


def make(isa: Isa):
    """Make the kernel; threads share the output's rows.

    Notes
    -----
    Products of two weights have 20 fraction bits; sums of them are exact in 64 bits and rounded
    half away from zero.
    """

    def resize_bilinear_i16(args, thread, num_threads):
        source, target = load_i64(args, 0), load_i64(args, 1)
        rows, row_weights = load_i64(args, 2), load_i64(args, 3)
        columns, column_weights = load_i64(args, 4), load_i64(args, 5)
        blended = load_i64(args, 6) + thread * load_i64(args, 7)
        images, image_pitch = load_i64(args, 8), load_i64(args, 9)
        row_elements, out_height = load_i64(args, 10), load_i64(args, 11)
        out_width, channels = load_i64(args, 12), load_i64(args, 13)
        first, last = share_items(images * out_height, thread, num_threads)
        for row in range(first, last):
            image = row // out_height
            y = row - image * out_height
            origin = source + image * image_pitch
            upper, lower = origin + load_i64(rows, 2 * y), origin + load_i64(rows, 2 * y + 1)
            above, below = load_i32(row_weights, 2 * y), load_i32(row_weights, 2 * y + 1)
            for i in range(row_elements):
                store_i64(blended, i, load_i16(upper, i) * above + load_i16(lower, i) * below)
            place = target + row * out_width * channels * 2
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
