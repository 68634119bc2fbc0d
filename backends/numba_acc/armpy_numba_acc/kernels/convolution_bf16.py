"""Convolutions and matrix products of bfloat16 elements, added up in float32."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,call-arg"
# What Numba compiles has no types for mypy: everything is an integer or an address.

from __future__ import annotations

from armpy_numba_acc.codegen.compiler import Linked
from armpy_numba_acc.codegen.gemm_bf16 import call_tile_bf16, tile_definition_bf16
from armpy_numba_acc.codegen.isa import Isa
from armpy_numba_acc.codegen.pixels import MOST_ROWS, place_rows
from armpy_numba_acc.codegen.pointers import load_i64, stack_memory
from armpy_numba_acc.codegen.sharing import share_items

ARGUMENTS = (
    "input",
    "output",
    "weights",
    "taps",
    "num_taps",
    "residual",
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
    "residual_pitch",
    "low",
    "high",
    "rows",
    "width",
    "has_table",
    "residual_bytes",
    "output_bytes",
)
"""Addresses, then numbers, in the order of the kernel's arguments; pitches in bytes. `steps` are
pairs of elements of each tap, `rows` and `width` are the tile's. `has_table` is whether tiles go on
in the next row of the output where one ends. The last two are the sizes of an element."""

_table = stack_memory(MOST_ROWS * 8)
"""Room for the addresses of a tile's rows."""


def make(
    isa: Isa,
    rows: int,
    vectors: int,
    has_table: int,
    is_odd: int,
    residual_kind: str,
    output_kind: str,
) -> Linked:
    """Make the kernel for one size of tiles; see `tile_definition_bf16`.

    Notes
    -----
    Each pixel of the output takes pairs of elements at each tap's offset behind the address of
    its pixel of the input. Threads share the tiles, or if there are fewer of them than threads,
    the panels.
    """
    definition = tile_definition_bf16(
        isa,
        rows,
        vectors,
        has_table=bool(has_table),
        is_odd=bool(is_odd),
        residual_kind=residual_kind,
        output_kind=output_kind,
    )
    return Linked(_convolution_bf16, definition)


def _convolution_bf16(args, thread, num_threads):
    """Walk over tiles and panels."""
    input_, output, weights = load_i64(args, 0), load_i64(args, 1), load_i64(args, 2)
    taps, residual, table = load_i64(args, 3), load_i64(args, 5), _table()
    num_taps, steps = load_i64(args, 4), load_i64(args, 6)
    columns, num_pixels = load_i64(args, 7), load_i64(args, 8)
    out_height, out_width = load_i64(args, 9), load_i64(args, 10)
    image_pitch, row_pitch = load_i64(args, 11), load_i64(args, 12)
    pixel_pitch, out_pitch = load_i64(args, 13), load_i64(args, 14)
    panel_bytes, panels_at_once = load_i64(args, 15), load_i64(args, 16)
    residual_pitch, low, high = load_i64(args, 17), load_i64(args, 18), load_i64(args, 19)
    rows, width, has_table = load_i64(args, 20), load_i64(args, 21), load_i64(args, 22) != 0
    residual_bytes, output_bytes = load_i64(args, 23), load_i64(args, 24)
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
                address = table
                place_rows(args, table, rows, count, pixel)
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
            for panel in range(first_panel, last_panel):
                call_tile_bf16(
                    address,
                    pixel_pitch,
                    taps,
                    num_taps,
                    steps,
                    weights + panel * panel_bytes,
                    output + pixel * out_pitch + panel * width * output_bytes,
                    out_pitch,
                    residual + pixel * residual_pitch + panel * width * residual_bytes,
                    residual_pitch,
                    count,
                    columns - panel * width,
                    low,
                    high,
                )
