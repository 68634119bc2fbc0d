"""Convolutions and matrix products of floats that were quantised by their range."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# What Numba compiles has no types for mypy: everything is an integer or an address.

from __future__ import annotations

from armpy_numba_acc.llvm.pointers import bits_to_f32, load_i64, stack_memory, store_i64
from armpy_numba_acc.llvm.sharing import share_tiles
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.gemm_dynamic import gemm_tile_dynamic
from armpy_numba_acc.tiles.pixels import MOST_ROWS, moved_on, position_of

ARGUMENTS = (
    "input",
    "ranges",
    "output",
    "weights",
    "taps",
    "num_taps",
    "steps",
    "columns",
    "pixels_per_range",
    "num_pixels",
    "out_height",
    "out_width",
    "image_pitch",
    "row_pitch",
    "pixel_pitch",
    "panel_bytes",
    "panels_at_once",
    "low",
    "high",
)
"""Addresses, then numbers, in the order of the kernel's arguments; pitches in bytes. `ranges`
has 8 bytes for so many pixels each, as `armpy_numba_acc.kernels.quantize_rows` writes them."""

_table = stack_memory(3 * MOST_ROWS * 8)
"""Room for the addresses of a tile's rows of input and output, and of their ranges."""


def make(isa: Isa, rows: int, vectors: int):
    """Make the kernel for one tile size.

    Notes
    -----
    Each pixel of the output takes `steps` groups of four elements at each tap's offset behind the
    address of its pixel of the input. For threads see `share_tiles`.
    """
    tile = gemm_tile_dynamic(isa, rows, vectors)
    width = isa.lanes * vectors

    def convolution_dynamic(args, thread, num_threads):
        input_, ranges = load_i64(args, 0), load_i64(args, 1)
        output, weights = load_i64(args, 2), load_i64(args, 3)
        taps, num_taps, steps = load_i64(args, 4), load_i64(args, 5), load_i64(args, 6)
        columns, pixels_per_range = load_i64(args, 7), load_i64(args, 8)
        num_pixels, out_height = load_i64(args, 9), load_i64(args, 10)
        out_width, image_pitch = load_i64(args, 11), load_i64(args, 12)
        row_pitch, pixel_pitch = load_i64(args, 13), load_i64(args, 14)
        panel_bytes, panels_at_once = load_i64(args, 15), load_i64(args, 16)
        low, high = bits_to_f32(load_i64(args, 17)), bits_to_f32(load_i64(args, 18))
        inputs = _table()
        outputs, places = inputs + 8 * MOST_ROWS, inputs + 16 * MOST_ROWS
        num_tiles = (num_pixels + rows - 1) // rows
        num_panels = (columns + width - 1) // width
        shares = share_tiles(num_tiles, num_panels, thread, num_threads)
        first_tile, last_tile, begin, end = shares
        for first_panel in range(begin, end, panels_at_once):
            last_panel = min(first_panel + panels_at_once, end)
            for number in range(first_tile, last_tile):
                pixel = number * rows
                x, y, image = position_of(pixel, out_height, out_width)
                for row in range(rows):
                    address = input_ + image * image_pitch + y * row_pitch + x * pixel_pitch
                    store_i64(inputs, row, address)
                    store_i64(outputs, row, output + (pixel * columns + first_panel * width) * 4)
                    store_i64(places, row, ranges + pixel // pixels_per_range * 8)
                    if pixel + 1 < num_pixels:  # rows behind the last one repeat it
                        pixel += 1
                        x, y, image = moved_on(x, y, image, 1, out_height, out_width)
                for panel in range(first_panel, last_panel):
                    tile(
                        inputs,
                        taps,
                        num_taps,
                        steps,
                        weights + panel * panel_bytes,
                        outputs,
                        places,
                        columns - panel * width,
                        low,
                        high,
                    )
                    for row in range(rows):
                        store_i64(outputs, row, load_i64(outputs, row) + width * 4)

    return convolution_dynamic
