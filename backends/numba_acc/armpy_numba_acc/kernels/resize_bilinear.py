"""Bilinear interpolation of images."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import int32

from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.pointers import (
    load_f32,
    load_i32,
    load_i64,
    load_u8,
    store_f32,
    store_i32,
    store_u8,
)
from armpy_numba_acc.llvm.primitives import compiled
from armpy_numba_acc.llvm.threads.sharing import share_items, thread_of
from armpy_numba_acc.machine.call import Pointer
from armpy_numba_acc.machine.calls.images import Interpolation
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.blending import make_blend

FRACTION_BITS = 10
"""Of the integers' weights."""


def make(isa: Isa, kind: str) -> Callable[[int, int, int], None]:
    """Make the kernel; threads share the output's rows.

    Rows are blended first, then columns. The reference rounds each of the four products, which
    makes a difference in the last place of floats. Bytes in floats are computed in its order: both
    rows are kept, each times its weight.

    Parameters
    ----------
    kind : {"f32", "u8", "s8"}
        "s8" is kept unsigned like all signed tensors, and interpolated with integers.
    """
    read = reader(Interpolation)
    is_float = kind != "s8"
    blend = make_blend(isa, is_float)
    lanes = isa.lanes
    load_weight = load_f32 if is_float else load_i32
    load = load_f32 if kind == "f32" else load_u8
    store_row = store_f32 if is_float else store_i32
    number = np.float32 if is_float else int32
    half = np.float32(0.5)
    is_stored_directly, is_in_order = kind == "f32", kind == "u8"

    @compiled
    def write_u8(target: Pointer, row: Pointer, count: int) -> None:
        for i in range(count):
            store_u8(target, i, int32(load_f32(row, i) + half))

    @compiled
    def write_s8(target: Pointer, row: Pointer, count: int) -> None:
        for i in range(count):
            total = load_i32(row, i) - int32(128 << 2 * FRACTION_BITS)
            size = (abs(total) + int32(1 << (2 * FRACTION_BITS - 1))) >> int32(2 * FRACTION_BITS)
            store_u8(target, i, (size if total >= 0 else -size) + 128)

    write = write_u8 if kind == "u8" else write_s8
    size = 4 if kind == "f32" else 1

    def resize_bilinear(args: int, shares: int, num_shares: int) -> None:
        call = read(args)
        rows, row_weights = call.rows, call.row_weights
        columns, column_weights = call.columns, call.column_weights
        out_height, out_width, channels = call.out_height, call.out_width, call.channels
        blended = call.scratch + thread_of(shares) * call.scratch_pitch
        row_bytes = (call.row_elements + lanes) * 4
        pitch = row_bytes if is_in_order else 0
        result = blended + row_bytes + pitch
        first, last = share_items(call.images * out_height, shares, num_shares)
        for row in range(first, last):
            image = row // out_height
            y = row - image * out_height
            origin = call.source + image * call.image_pitch
            upper, lower = origin + load_i64(rows, 2 * y), origin + load_i64(rows, 2 * y + 1)
            above, below = load_weight(row_weights, 2 * y), load_weight(row_weights, 2 * y + 1)
            for i in range(call.row_elements):
                upper_part, other = number(load(upper, i)) * above, number(load(lower, i)) * below
                if is_in_order:
                    store_row(blended, i, upper_part)
                    store_row(blended + row_bytes, i, other)
                else:
                    store_row(blended, i, upper_part + other)
            place = call.target + row * out_width * channels * size
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
                        pitch,
                    )
                to += channels * 4
            if not is_stored_directly:
                write(place, result, out_width * channels)

    return resize_bilinear
