"""Samples regions of images on regular grids."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import float32, float64

from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.pointers import load_f32, load_i32, load_i64
from armpy_numba_acc.llvm.primitives import compiled
from armpy_numba_acc.llvm.threads.fork_join import fail
from armpy_numba_acc.llvm.threads.sharing import share_items, thread_of
from armpy_numba_acc.machine.call import Pointer
from armpy_numba_acc.machine.calls.images import RoiAlign
from armpy_numba_acc.machine.execution import NO_REGION
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.region_sampling import make_combine, make_taps

_LEAST = np.float32(-np.inf)


def make(isa: Isa, form: str) -> Callable[[int, int, int], None]:
    """Make the kernel; threads share the output's rows.

    Positions along each axis are found once for a region. Nothing more is written from a region on
    that cannot be used.
    """
    read, is_max = reader(RoiAlign), form == "max"
    find_taps, combine = make_taps(form), make_combine(isa, is_max)

    @compiled
    def is_usable(start: float, end: float, size: int, is_free: int) -> bool:
        if is_free != 0:
            return bool(start - start == 0 and end - end == 0)
        return bool(0 <= start <= end <= float32(size))

    def roi_align(args: int, shares: int, num_shares: int) -> None:
        call = read(args)
        rows: Pointer = call.scratch + thread_of(shares) * call.scratch_pitch
        columns, end = rows + call.row_bytes, rows + call.scratch_pitch
        row_taps = rows + (call.out_height + 1) * 16
        column_taps = columns + (call.out_width + 1) * 16
        row_pitch, pixel = call.width * call.channels * 4, call.channels * 4
        region, source, count = -1, call.source, float64(0)
        first, last = share_items(call.regions * call.out_height, shares, num_shares)
        for item in range(first, last):
            if item // call.out_height != region:
                region = item // call.out_height
                image = load_i32(call.batch_indices, region)
                if image < 0 or image >= call.images:
                    fail(call.failure, call.images, image)
                    return
                left = load_f32(call.rois, 4 * region) * call.width_scale
                top = load_f32(call.rois, 4 * region + 1) * call.height_scale
                right = load_f32(call.rois, 4 * region + 2) * call.width_scale
                bottom = load_f32(call.rois, 4 * region + 3) * call.height_scale
                if not (
                    is_usable(left, right, call.width, call.is_free)
                    and is_usable(top, bottom, call.height, call.is_free)
                ):
                    fail(call.failure, NO_REGION, region)
                    return
                source = call.source + image * call.height * row_pitch
                count = find_taps(
                    rows, columns, top, bottom, call.out_height, call.height_samples,
                    call.height, row_pitch, call.is_half_pixel,
                ) * find_taps(
                    columns, end, left, right, call.out_width, call.width_samples,
                    call.width, pixel, call.is_half_pixel,
                )  # fmt: skip
            y = item - region * call.out_height
            from_row, to_row = load_i64(rows, 2 * y), load_i64(rows, 2 * y + 2)
            for x in range(call.out_width):
                start = float32(count)
                if is_max:
                    is_whole = load_i64(rows, 2 * y + 1) + load_i64(columns, 2 * x + 1) == 0
                    start = _LEAST if is_whole else float32(0)
                combine(
                    call.target + (item * call.out_width + x) * pixel, source,
                    row_taps + from_row * 16, to_row - from_row,
                    column_taps + load_i64(columns, 2 * x) * 16,
                    load_i64(columns, 2 * x + 2) - load_i64(columns, 2 * x),
                    call.channels, start,
                )  # fmt: skip

    return roi_align
