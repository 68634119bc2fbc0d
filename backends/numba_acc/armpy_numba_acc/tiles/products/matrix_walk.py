"""The walk over the tiles of a product that a matrix unit computes."""

from __future__ import annotations

from armpy_numba_acc.llvm.arithmetic.matrix_emulation import STATE_BYTES
from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.pointers import load_i64, stack_memory, store_i64
from armpy_numba_acc.llvm.primitives import inlined
from armpy_numba_acc.llvm.threads.sharing import share_tiles, thread_of
from armpy_numba_acc.machine.call import Pointer
from armpy_numba_acc.machine.calls.products import MatrixWalk, ProductCall
from armpy_numba_acc.machine.processors.matrix_unit import CONFIGURATION_BYTES
from armpy_numba_acc.tiles.products.gather import gather_rows
from armpy_numba_acc.tiles.products.matrix_unit import (
    KEPT_BYTES,
    ROW_PITCH,
    ROWS_AT_ONCE,
    begin_part,
    begin_rows,
    end_part,
    finish_rows,
    keep,
    multiply,
)
from armpy_numba_acc.tiles.products.pixels import place_rows

MOST_ROWS = 32
"""Of a tile of the product."""

_ROOM_BYTES = 8 * ROWS_AT_ONCE * MOST_ROWS
"""What a finish may keep of a tile's rows, which may all be runs of their own."""

_read, _read_walk = reader(ProductCall), reader(MatrixWalk)
_unit = stack_memory(STATE_BYTES + 64)
_kept = stack_memory(2 * KEPT_BYTES + 64)
_rooms = stack_memory(3 * _ROOM_BYTES)
_table = stack_memory(MOST_ROWS * 8)
_items = stack_memory(2 * 32)
_ROOM, _FIRST, _SKIPPED, _PANEL = range(4)
"""Words of an item: what rows are finished with, the first position, those left out, the panel."""


@inlined
def _next_run(call: ProductCall, walk: MatrixWalk, position: int, end: int) -> tuple[int, int, int]:
    """Position of the next pixel, its number in the target, and how many lie there in line.

    Parameters
    ----------
    position
        The first one, which may lie beside the output; as many as `end` if there is none.
    end
        After the last one.
    """
    if walk.line_positions == 0:
        return position, position, end - position
    while position < end:
        image = position // walk.image_positions
        left = position - image * walk.image_positions
        y = left // walk.line_positions
        x = left - y * walk.line_positions
        if y >= call.out_height:
            position = (image + 1) * walk.image_positions
        elif x >= call.out_width:
            # A next row may begin after the next image, whose last rows no stride reaches.
            following = position + walk.line_positions - x
            position = min(following, (image + 1) * walk.image_positions)
        else:
            pixel = (image * call.out_height + y) * call.out_width + x
            return position, pixel, min(call.out_width - x, end - position)
    return end, 0, 0


@inlined
def _begin(args: int, address: Pointer, room: Pointer, first: int, skipped: int) -> None:
    """Have rows of a tile of the product begun, run by run."""
    call = _read(args)
    walk = _read_walk(call.walk + CONFIGURATION_BYTES)
    row_bytes = 8 if call.has_table != 0 else call.pixel_pitch
    position, end = first + skipped, first + call.rows
    while position < end:
        position, pixel, count = _next_run(call, walk, position, end)
        if count > 0:
            begin_rows(args, address + (position - first) * row_bytes, room, pixel, count)
        room += 8 * ((count + ROWS_AT_ONCE - 1) // ROWS_AT_ONCE * ROWS_AT_ONCE)
        position += count


@inlined
def _finish(args: int, results: Pointer, item: Pointer) -> None:
    """Have the stored part of an item finished, run by run."""
    call = _read(args)
    walk = _read_walk(call.walk + CONFIGURATION_BYTES)
    room, first, panel = load_i64(item, _ROOM), load_i64(item, _FIRST), load_i64(item, _PANEL)
    position, end = first + load_i64(item, _SKIPPED), first + call.rows
    while position < end:
        position, pixel, count = _next_run(call, walk, position, end)
        if count > 0:
            place = results + (position - first) * ROW_PITCH
            finish_rows(args, place, room, pixel, count, panel)
        room += 8 * ((count + ROWS_AT_ONCE - 1) // ROWS_AT_ONCE * ROWS_AT_ONCE)
        position += count


def walk_matrix_tiles(args: int, shares: int, num_shares: int) -> None:
    """Compute a product by a matrix unit; linked with it as a `MatrixProduct`.

    The unit is configured when a thread's part begins, and released at its end. An item is a tile
    of the product: while the unit multiplies one, the last but one is finished, whose sums have
    come to the cache by then. The last tile begins early where there is no whole one left: rows
    that are there already are not finished again.
    """
    call = _read(args)
    walk = _read_walk(call.walk + CONFIGURATION_BYTES)
    rows = call.rows
    unit, results = (_unit() + 63) & -64, (_kept() + 63) & -64
    rooms, table, items = _rooms(), _table(), _items()
    gathered = call.scratch + thread_of(shares) * walk.gathered_bytes
    num_tiles = (walk.positions + rows - 1) // rows
    num_panels = (call.columns + call.width - 1) // call.width
    part = share_tiles(num_tiles, num_panels, shares, num_shares)
    first_tile, last_tile, start_panel, end_panel = part
    num_items, room = 0, rooms
    begin_part(args, unit)
    for first_panel in range(start_panel, end_panel, call.panels_at_once):
        last_panel = min(first_panel + call.panels_at_once, end_panel)
        for number in range(first_tile, last_tile):
            first = min(number * rows, walk.positions - rows)
            skipped = number * rows - first
            # Those of two items that are not finished yet may be in use.
            room = rooms if room == rooms + 2 * _ROOM_BYTES else room + _ROOM_BYTES
            address, pitch = call.source + first * call.pixel_pitch, call.pixel_pitch
            origin = address
            if call.has_table != 0:
                place_rows(call, table, rows, first)
                gather_rows(args, table, gathered)
                origin, address, pitch = table, gathered, walk.gathered_pitch
            _begin(args, origin, room, first, skipped)
            for panel in range(first_panel, last_panel):
                place, item = results + num_items % 2 * KEPT_BYTES, items + num_items % 2 * 32
                multiply(args, unit, address, pitch, panel)
                if num_items >= 2:
                    _finish(args, place, item)
                keep(args, unit, place, panel)
                store_i64(item, _ROOM, room)
                store_i64(item, _FIRST, first)
                store_i64(item, _SKIPPED, skipped)
                store_i64(item, _PANEL, panel)
                num_items += 1
    for number in range(max(num_items - 2, 0), num_items):
        _finish(args, results + number % 2 * KEPT_BYTES, items + number % 2 * 32)
    end_part(unit)
