"""Walks over tiles of pixels, for kernels that convolve."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator,call-arg"
# What Numba compiles has no types for mypy: everything is an integer or an address.

from __future__ import annotations

from numba import njit

from armpy_numba_acc.llvm.pointers import load_i64, stack_memory, store_i64
from armpy_numba_acc.llvm.sharing import share_tiles

ARGUMENTS = (
    "input",
    "output",
    "weights",
    "taps",
    "num_taps",
    "steps",
    "columns",
    "num_pixels",
    "out_height",
    "out_width",
    "image_pitch",
    "row_pitch",
    "pixel_pitch",
    "out_pitch",
    "panel_bytes",
    "panels_at_once",
    "rows",
    "width",
    "has_table",
)
"""Those that the kernels of `tile_walk` begin with: addresses, then numbers; pitches in bytes.
`rows` and `width` are the tile's. `has_table` is whether tiles go on in the next row of the output
where one ends."""

MOST_ROWS = 32
"""Of a tile."""

_table = stack_memory(MOST_ROWS * 8)
"""Room for the addresses of a tile's rows."""


@njit(inline="always")
def position_of(pixel, out_height, out_width):
    """Where a pixel of the output is: `x`, `y`, and number of the image."""
    line = pixel // out_width
    image = line // out_height
    return pixel - line * out_width, line - image * out_height, image


@njit(inline="always")
def moved_on(x, y, image, step, out_height, out_width):
    """Position `step` pixels on; behind the end of a row, where the next one starts."""
    x += step
    if x >= out_width:
        x = 0
        y += 1
        if y == out_height:
            y = 0
            image += 1
    return x, y, image


@njit(inline="always")
def _place_rows(args, inputs, rows, count, pixel):
    """Write the addresses of neighbouring pixels of the output in the input.

    Parameters
    ----------
    args : int
        Address of a kernel's arguments.
    inputs : int
        Where the addresses are written.
    rows, count : int
        Of a tile, and how many of them there are: those behind repeat the last one.
    pixel : int
        Number of the first one.
    """
    out_height, out_width = load_i64(args, 8), load_i64(args, 9)
    image_pitch, row_pitch = load_i64(args, 10), load_i64(args, 11)
    pixel_pitch = load_i64(args, 12)
    x, y, image = position_of(pixel, out_height, out_width)
    address = 0
    row = 0
    while row < count:
        address = load_i64(args, 0) + image * image_pitch + y * row_pitch + x * pixel_pitch
        together = min(out_width - x, count - row)
        for i in range(row, row + together):
            store_i64(inputs, i, address)
            address += pixel_pitch
        row += together
        x, y, image = moved_on(x, y, image, together, out_height, out_width)
    for i in range(count, rows):
        store_i64(inputs, i, address - pixel_pitch)


def tile_walk(compute):
    """Make a kernel that walks over tiles and panels.

    Parameters
    ----------
    compute : callable
        ``compute(args, address, pixel, count, first_panel, last_panel)``, compiled by Numba and
        inlined, computes a tile's columns of these panels: `address` is that of its first row of
        the input, or with `has_table` of one address per row; `pixel` the number of the first
        pixel of the output, and `count` how many there are.

    Returns
    -------
    callable
        The kernel, whose arguments begin with `ARGUMENTS`. For threads see `share_tiles`.
    """

    def walk(args, thread, num_threads):
        input_, columns, num_pixels = load_i64(args, 0), load_i64(args, 6), load_i64(args, 7)
        out_height, out_width = load_i64(args, 8), load_i64(args, 9)
        image_pitch, row_pitch = load_i64(args, 10), load_i64(args, 11)
        pixel_pitch, panels_at_once = load_i64(args, 12), load_i64(args, 15)
        rows, width, has_table = load_i64(args, 16), load_i64(args, 17), load_i64(args, 18) != 0
        table = _table()
        tiles_per_line = (out_width + rows - 1) // rows
        num_tiles = num_pixels // out_width * tiles_per_line
        if has_table:
            num_tiles = (num_pixels + rows - 1) // rows
        num_panels = (columns + width - 1) // width
        shares = share_tiles(num_tiles, num_panels, thread, num_threads)
        first_tile, last_tile, start_panel, end_panel = shares
        for first_panel in range(start_panel, end_panel, panels_at_once):
            last_panel = min(first_panel + panels_at_once, end_panel)
            x, y, image = position_of(first_tile, out_height, tiles_per_line)
            x *= rows
            for number in range(first_tile, last_tile):
                if has_table:
                    pixel = number * rows
                    count = min(rows, num_pixels - pixel)
                    address = table
                    _place_rows(args, table, rows, count, pixel)
                else:
                    pixel = (image * out_height + y) * out_width + x
                    count = min(rows, out_width - x)
                    address = input_ + image * image_pitch + y * row_pitch + x * pixel_pitch
                    x, y, image = moved_on(x, y, image, rows, out_height, out_width)
                compute(args, address, pixel, count, first_panel, last_panel)

    return walk
