"""The walk over the tiles of a product: pixels, and panels of weights."""

from __future__ import annotations

from typing import Any

from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.pointers import stack_memory, store_i64
from armpy_numba_acc.llvm.primitives import inlined
from armpy_numba_acc.llvm.threads.sharing import share_tiles
from armpy_numba_acc.machine.calls.products import ProductCall
from armpy_numba_acc.tiles.products.engine import ROOM_BYTES, call_begin_rows, call_tile

MOST_ROWS = 32
"""Of a tile."""

_read = reader(ProductCall)

_table = stack_memory(MOST_ROWS * 8)
"""Room for the addresses of a tile's rows."""

_room = stack_memory(MOST_ROWS * ROOM_BYTES)
"""Room for what a finish keeps of them."""


@inlined
def position_of(pixel: int, out_height: int, out_width: int) -> tuple[int, int, int]:
    """Return the position of an output's pixel: `x`, `y`, and number of the image."""
    line = pixel // out_width
    image = line // out_height
    return pixel - line * out_width, line - image * out_height, image


@inlined
def moved_on(
    x: int, y: int, image: int, step: int, out_height: int, out_width: int
) -> tuple[int, int, int]:
    """Position `step` pixels on; after the end of a row, where the next one starts."""
    x += step
    if x >= out_width:
        x = 0
        y += 1
        if y == out_height:
            y = 0
            image += 1
    return x, y, image


@inlined
def place_of(call: ProductCall, x: int, y: int, image: int) -> Any:
    """Address of a pixel's elements in the input (Any: an integer here)."""
    return call.source + image * call.image_pitch + y * call.row_pitch + x * call.pixel_pitch


@inlined
def place_rows(call: ProductCall, table: int, count: int, pixel: int) -> None:
    """Write the addresses of neighbouring pixels of the output in the input.

    Parameters
    ----------
    table
        Where the addresses are written.
    count
        How many of the tile's rows there are: those after repeat the last one.
    pixel
        Number of the first one.
    """
    x, y, image = position_of(pixel, call.out_height, call.out_width)
    address = 0
    row = 0
    while row < count:
        address = place_of(call, x, y, image)
        together = min(call.out_width - x, count - row)
        for i in range(row, row + together):
            store_i64(table, i, address)
            address += call.pixel_pitch
        row += together
        x, y, image = moved_on(x, y, image, together, call.out_height, call.out_width)
    for i in range(count, call.rows):
        store_i64(table, i, address - call.pixel_pitch)


def walk_tiles(args: int, shares: int, num_shares: int) -> None:
    """Compute a product; the linked function computes a tile: see `product_definitions`.

    Of some panels all tiles are computed before the next ones: these panels stay in the cache.
    For threads see `share_tiles`.
    """
    call = _read(args)
    rows, out_width = call.rows, call.out_width
    table, room = _table(), _room()
    tiles_per_line = (out_width + rows - 1) // rows
    num_tiles = call.num_pixels // out_width * tiles_per_line
    if call.has_table != 0:
        num_tiles = (call.num_pixels + rows - 1) // rows
    num_panels = (call.columns + call.width - 1) // call.width
    part = share_tiles(num_tiles, num_panels, shares, num_shares)
    first_tile, last_tile, start_panel, end_panel = part
    for first_panel in range(start_panel, end_panel, call.panels_at_once):
        last_panel = min(first_panel + call.panels_at_once, end_panel)
        x, y, image = position_of(first_tile, call.out_height, tiles_per_line)
        x *= rows
        for number in range(first_tile, last_tile):
            if call.has_table != 0:
                pixel = number * rows
                count = min(rows, call.num_pixels - pixel)
                address = table
                place_rows(call, table, count, pixel)
            else:
                pixel = (image * call.out_height + y) * out_width + x
                count = min(rows, out_width - x)
                address = place_of(call, x, y, image)
                x, y, image = moved_on(x, y, image, rows, call.out_height, out_width)
            call_begin_rows(args, address, room, pixel, count)
            call_tile(args, address, room, pixel, count, first_panel, last_panel)
