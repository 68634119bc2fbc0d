"""Interpolates images between their elements."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# What Numba compiles has no types for mypy: everything is an integer or an address.

from __future__ import annotations

import numpy as np
from numba import int32, njit

from armpy_numba_acc.llvm.pointers import (
    load_f32,
    load_i32,
    load_i64,
    load_u8,
    store_f32,
    store_i32,
    store_u8,
)
from armpy_numba_acc.llvm.sharing import share_items
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.blending import make_blend

ARGUMENTS = (
    "input",
    "output",
    "rows",
    "row_weights",
    "columns",
    "column_weights",
    "scratch",
    "scratch_pitch",
    "images",
    "image_pitch",
    "row_elements",
    "out_height",
    "out_width",
    "channels",
)
"""`rows` and `columns` have a pair per row or column of the output: byte offsets of the rows,
element offsets of the columns. The weights are pairs too. `scratch_pitch` is each thread's
share of the scratch memory: an input row and an output row, and a vector behind each."""

FRACTION_BITS = 10
"""Of the integers' weights."""


def make(isa: Isa, kind: str):
    """Make the kernel; threads share the output's rows.

    Parameters
    ----------
    kind : {"f32", "u8", "s8"}
        "s8" is kept unsigned like all signed tensors, and interpolated with integers.

    Notes
    -----
    Rows are blended first, then columns. The reference rounds each of the four products, which
    can make a difference of one in the last place.
    """
    is_float = kind != "s8"
    blend = make_blend(isa, is_float)
    lanes = isa.lanes
    load_weight = load_f32 if is_float else load_i32
    load = load_f32 if kind == "f32" else load_u8
    store_row = store_f32 if is_float else store_i32
    number = np.float32 if is_float else int32
    half = np.float32(0.5)
    is_stored_directly = kind == "f32"

    @njit(error_model="numpy")
    def write_u8(target, row, count):
        for i in range(count):
            store_u8(target, i, int32(load_f32(row, i) + half))

    @njit(error_model="numpy")
    def write_s8(target, row, count):
        for i in range(count):
            total = load_i32(row, i) - int32(128 << 2 * FRACTION_BITS)
            size = (abs(total) + int32(1 << (2 * FRACTION_BITS - 1))) >> int32(2 * FRACTION_BITS)
            store_u8(target, i, (size if total >= 0 else -size) + 128)

    write = write_u8 if kind == "u8" else write_s8
    size = 4 if kind == "f32" else 1

    def resize_bilinear(args, thread, num_threads):
        source, target = load_i64(args, 0), load_i64(args, 1)
        rows, row_weights = load_i64(args, 2), load_i64(args, 3)
        columns, column_weights = load_i64(args, 4), load_i64(args, 5)
        blended = load_i64(args, 6) + thread * load_i64(args, 7)
        images, image_pitch = load_i64(args, 8), load_i64(args, 9)
        row_elements, out_height = load_i64(args, 10), load_i64(args, 11)
        out_width, channels = load_i64(args, 12), load_i64(args, 13)
        result = blended + (row_elements + lanes) * 4
        first, last = share_items(images * out_height, thread, num_threads)
        for row in range(first, last):
            image = row // out_height
            y = row - image * out_height
            origin = source + image * image_pitch
            upper, lower = origin + load_i64(rows, 2 * y), origin + load_i64(rows, 2 * y + 1)
            above, below = load_weight(row_weights, 2 * y), load_weight(row_weights, 2 * y + 1)
            for i in range(row_elements):
                store_row(
                    blended, i, number(load(upper, i)) * above + number(load(lower, i)) * below
                )
            place = target + row * out_width * channels * size
            to = place if is_stored_directly else result
            for x in range(out_width):
                from_left = blended + load_i64(columns, 2 * x) * 4
                from_right = blended + load_i64(columns, 2 * x + 1) * 4
                left = load_weight(column_weights, 2 * x)
                right = load_weight(column_weights, 2 * x + 1)
                for c in range(0, channels, lanes):
                    blend(
                        to + c * 4,
                        from_left + c * 4,
                        from_right + c * 4,
                        left,
                        right,
                        channels - c,
                    )
                to += channels * 4
            if not is_stored_directly:
                write(place, result, out_width * channels)

    return resize_bilinear
