"""Where the pixels of a tile are, for kernels that convolve."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"
# What Numba compiles has no types for mypy: everything is an integer or an address.

from __future__ import annotations

from numba import njit

from armpy_numba_acc.codegen.pointers import load_i64, store_i64

MOST_ROWS = 32
"""Of a tile."""


@njit(inline="always")
def place_rows(args, inputs, rows, count, pixel):
    """Write the addresses of neighbouring pixels of the output in the input.

    Parameters
    ----------
    args : int
        Address of a kernel's arguments: the first one is the input's address, those from 9 on
        are height and width of the output and bytes from one image, row and pixel to the next.
    inputs : int
        Where the addresses are written.
    rows, count : int
        Of a tile, and how many of them there are: those behind repeat the last one.
    pixel : int
        Number of the first one.
    """
    out_height, out_width = load_i64(args, 9), load_i64(args, 10)
    image_pitch, row_pitch = load_i64(args, 11), load_i64(args, 12)
    pixel_pitch = load_i64(args, 13)
    line = pixel // out_width
    x = pixel - line * out_width
    image = line // out_height
    y = line - image * out_height
    address = 0
    row = 0
    while row < count:
        address = load_i64(args, 0) + image * image_pitch + y * row_pitch + x * pixel_pitch
        together = min(out_width - x, count - row)
        for i in range(row, row + together):
            store_i64(inputs, i, address)
            address += pixel_pitch
        row += together
        x += together
        if x == out_width:
            x = 0
            y += 1
            if y == out_height:
                y = 0
                image += 1
    for i in range(count, rows):
        store_i64(inputs, i, address - pixel_pitch)
