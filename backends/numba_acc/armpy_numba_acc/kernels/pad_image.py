"""Copies an image into a larger one and fills the border."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# What Numba compiles has no types for mypy: everything is an integer or an address.

from __future__ import annotations

from numba import uint8

from armpy_numba_acc.codegen.isa import Isa
from armpy_numba_acc.codegen.pointers import load_i64, load_u8, store_u8
from armpy_numba_acc.codegen.sharing import share_items

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

    def pad_image(args, thread, num_threads):
        source, target = load_i64(args, 0), load_i64(args, 1)
        images, height, row_bytes = load_i64(args, 2), load_i64(args, 3), load_i64(args, 4)
        top, bottom = load_i64(args, 5), load_i64(args, 6)
        left, right = load_i64(args, 7), load_i64(args, 8)
        fill = uint8(load_i64(args, 9))
        rows = top + height + bottom
        pitch = left + row_bytes + right
        first, last = share_items(images * rows, thread, num_threads)
        for number in range(first, last):
            image = number // rows
            y = number - image * rows - top
            place = target + number * pitch
            if y < 0 or y >= height:
                for i in range(pitch):
                    store_u8(place, i, fill)
            else:
                for i in range(left):
                    store_u8(place, i, fill)
                origin = source + (image * height + y) * row_bytes
                for i in range(row_bytes):
                    store_u8(place + left, i, load_u8(origin, i))
                for i in range(right):
                    store_u8(place + left + row_bytes, i, fill)

    return pad_image
