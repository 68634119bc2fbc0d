"""Convolutions and matrix products of 8-bit elements."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator,call-arg"
# What Numba compiles has no types for mypy: everything is an integer or an address.

from __future__ import annotations

from numba import int32, njit

from armpy_numba_acc.codegen.byte_sum import call_byte_sum
from armpy_numba_acc.codegen.compiler import Linked
from armpy_numba_acc.codegen.gemm_u8 import call_tile_u8, tile_definition_u8
from armpy_numba_acc.codegen.isa import Isa
from armpy_numba_acc.codegen.pixels import MOST_ROWS, place_rows
from armpy_numba_acc.codegen.pointers import load_i64, stack_memory, store_i32
from armpy_numba_acc.codegen.sharing import share_items

ARGUMENTS = (
    "input",
    "output",
    "weights",
    "taps",
    "num_taps",
    "depth",
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
    "correction",
    "zero_point",
    "low",
    "high",
    "rows",
    "width",
    "has_table",
    "residual",
    "sum",
)
"""Addresses, then numbers, in the order of the kernel's arguments; pitches in bytes. `rows`
and `width` are the tile's. `has_table` is whether tiles go on in the next row of the output where
one ends. `residual` is the address of elements that are added, laid out as the output; `sum` that
of what `armpy_numba_acc.lowering.weighted_u8.Residual` packs."""

_table = stack_memory(MOST_ROWS * (8 + 4))
"""Room for the addresses of a tile's rows, and for their corrections."""


FLAGS = (
    "has_table",
    "has_corrections",
    "has_negatives",
    "has_bounds",
    "has_large_scales",
    "is_vague",
    "has_residual",
    "sum_has_negatives",
)
"""See `armpy_numba_acc.codegen.gemm_u8.tile_definition_u8`."""


def make(isa: Isa, rows: int, vectors: int, *flags: int) -> Linked:
    """Make the kernel for one size of tiles, and for what `FLAGS` say.

    Notes
    -----
    Each pixel of the output takes `depth` elements, in `steps` groups of four, at each tap's
    offset behind the address of its pixel of the input. With `has_corrections` the sum of these
    elements times `correction` is added. Threads share the tiles, or if there are fewer of them
    than threads, the panels.
    """
    named = dict(zip(FLAGS, map(bool, flags), strict=True))
    return Linked(_convolution_u8, tile_definition_u8(isa, rows, vectors, **named))


def _convolution_u8(args, thread, num_threads):
    """Walk over tiles and panels."""
    input_, output, weights = load_i64(args, 0), load_i64(args, 1), load_i64(args, 2)
    taps, inputs = load_i64(args, 3), _table()
    num_taps, steps = load_i64(args, 4), load_i64(args, 6)
    columns, num_pixels = load_i64(args, 7), load_i64(args, 8)
    out_height, out_width = load_i64(args, 9), load_i64(args, 10)
    image_pitch, row_pitch = load_i64(args, 11), load_i64(args, 12)
    pixel_pitch, out_pitch = load_i64(args, 13), load_i64(args, 14)
    panel_bytes, panels_at_once = load_i64(args, 15), load_i64(args, 16)
    correction, zero_point = load_i64(args, 17), load_i64(args, 18)
    low, high = load_i64(args, 19), load_i64(args, 20)
    rows, width, has_table = load_i64(args, 21), load_i64(args, 22), load_i64(args, 23) != 0
    distance, parameters = load_i64(args, 24) - output, load_i64(args, 25)
    corrections = inputs + 8 * MOST_ROWS
    tiles_per_line = (out_width + rows - 1) // rows
    num_tiles = num_pixels // out_width * tiles_per_line
    if has_table:
        num_tiles = (num_pixels + rows - 1) // rows
    num_panels = (columns + width - 1) // width
    first_tile, last_tile, start_panel, end_panel = 0, num_tiles, 0, num_panels
    if num_tiles < num_threads:
        start_panel, end_panel = share_items(num_panels, thread, num_threads)
    else:
        first_tile, last_tile = share_items(num_tiles, thread, num_threads)
    for first_panel in range(start_panel, end_panel, panels_at_once):
        last_panel = min(first_panel + panels_at_once, end_panel)
        line = first_tile // tiles_per_line
        x = (first_tile - line * tiles_per_line) * rows
        image = line // out_height
        y = line - image * out_height
        for number in range(first_tile, last_tile):
            if has_table:
                pixel = number * rows
                count = min(rows, num_pixels - pixel)
                address = inputs
                place_rows(args, inputs, rows, count, pixel)
            else:
                pixel = (image * out_height + y) * out_width + x
                count = min(rows, out_width - x)
                address = input_ + image * image_pitch + y * row_pitch + x * pixel_pitch
                x += rows
                if x >= out_width:
                    x = 0
                    y += 1
                    if y == out_height:
                        y = 0
                        image += 1
            if correction != 0:
                _correct_rows(args, corrections, address, rows, count)
            for panel in range(first_panel, last_panel):
                call_tile_u8(
                    address,
                    pixel_pitch,
                    corrections,
                    taps,
                    num_taps,
                    steps,
                    weights + panel * panel_bytes,
                    output + pixel * out_pitch + panel * width,
                    out_pitch,
                    count,
                    columns - panel * width,
                    zero_point,
                    low,
                    high,
                    distance,
                    parameters,
                )


@njit(inline="always")
def _correct_rows(args, corrections, address, rows, count):
    """Write what is added to the sums of each row."""
    taps, num_taps, depth = load_i64(args, 3), load_i64(args, 4), load_i64(args, 5)
    for row in range(rows):
        first = address + min(row, count - 1) * load_i64(args, 13)
        if load_i64(args, 23) != 0:
            first = load_i64(address, row)
        total = 0
        for tap in range(num_taps):
            total += call_byte_sum(first + load_i64(taps, tap), depth)
        store_i32(corrections, row, int32(total * load_i64(args, 17)))
