"""Copies an image into a larger one and fills the border."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# What Numba compiles has no types for mypy: everything is an integer or an address.

from __future__ import annotations

from armpy_numba_acc.llvm.pointers import load_i64
from armpy_numba_acc.llvm.sharing import share_items
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.blocks import make_copy_run, make_fill_run

ARGUMENTS = (
    "input",
    "output",
    "images",
    "height",
    "row_bytes",
    "top",
    "bottom",
    "left_bytes",
    "right_bytes",
    "fill",
)
"""`fill` is the byte of the border."""


def make(isa: Isa):
    """Make the kernel; threads share the rows."""
    fill_run, copy_run = make_fill_run(isa), make_copy_run(isa)
    narrow = 2 * isa.vector_bytes

    def pad_image(args, thread, num_threads):
        source, target = load_i64(args, 0), load_i64(args, 1)
        images, height, row_bytes = load_i64(args, 2), load_i64(args, 3), load_i64(args, 4)
        top, bottom = load_i64(args, 5), load_i64(args, 6)
        left, right = load_i64(args, 7), load_i64(args, 8)
        fill = load_i64(args, 9)
        rows = top + height + bottom
        pitch = left + row_bytes + right
        first, last = share_items(images * rows, thread, num_threads)
        image = first // rows
        y = first - image * rows - top
        origin = source + (image * height + min(max(y, 0), height)) * row_bytes
        is_narrow = pitch <= narrow
        if is_narrow:  # to find out where the borders are takes longer than to fill all
            fill_run(target + first * pitch, (last - first) * pitch, fill)
        for number in range(first, last):
            place = target + number * pitch
            before, after = pitch, 0
            if 0 <= y < height:
                copy_run(place + left, origin, row_bytes)
                origin += row_bytes
                before, after = left, right
            if not is_narrow:
                for size in (before, after):
                    fill_run(place, size, fill)
                    place += left + row_bytes
            y += 1
            if y == height + bottom:
                y = -top

    return pad_image
