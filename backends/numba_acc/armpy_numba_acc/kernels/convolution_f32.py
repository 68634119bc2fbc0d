"""Convolutions and matrix products in float32."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"
# What Numba compiles has no types for mypy: everything is an integer or an address.

from __future__ import annotations

from numba import njit

from armpy_numba_acc.llvm.pointers import bits_to_f32, load_i64, store_i64
from armpy_numba_acc.llvm.sharing import share_tiles
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.gemm_f32 import gemm_tile_f32
from armpy_numba_acc.tiles.pixels import moved_on, position_of

ARGUMENTS = (
    "input",
    "output",
    "residual",
    "weights",
    "taps",
    "scratch",
    "num_taps",
    "depth",
    "columns",
    "num_pixels",
    "out_height",
    "out_width",
    "image_pitch",
    "row_pitch",
    "pixel_pitch",
    "out_pitch",
    "residual_pitch",
    "panel_bytes",
    "panels_at_once",
    "low",
    "high",
)
"""Addresses, then numbers, in the order of the kernel's arguments; pitches in bytes."""

SCRATCH_BYTES_PER_THREAD = 3 * 32 * 8
"""Room for three tables of addresses of a tile's rows."""


def _addressing(rows: int):
    """Make what finds a tile's rows."""

    @njit(inline="always")
    def find_rows(args, inputs, number):
        """Write the addresses of a tile's rows of the input, the output and the residual."""
        input_, output, residual = load_i64(args, 0), load_i64(args, 1), load_i64(args, 2)
        num_pixels, out_height = load_i64(args, 9), load_i64(args, 10)
        out_width, image_pitch = load_i64(args, 11), load_i64(args, 12)
        row_pitch, pixel_pitch = load_i64(args, 13), load_i64(args, 14)
        out_pitch, residual_pitch = load_i64(args, 15), load_i64(args, 16)
        outputs, residuals = inputs + 256, inputs + 512
        pixel = number * rows
        x, y, image = position_of(pixel, out_height, out_width)
        if x + rows <= out_width:
            first = input_ + image * image_pitch + y * row_pitch + x * pixel_pitch
            for row in range(rows):
                store_i64(inputs, row, first + row * pixel_pitch)
                store_i64(outputs, row, output + (pixel + row) * out_pitch)
                store_i64(residuals, row, residual + (pixel + row) * residual_pitch)
        else:
            for row in range(rows):
                address = input_ + image * image_pitch + y * row_pitch + x * pixel_pitch
                store_i64(inputs, row, address)
                store_i64(outputs, row, output + pixel * out_pitch)
                store_i64(residuals, row, residual + pixel * residual_pitch)
                if pixel + 1 < num_pixels:  # rows behind the last one repeat it
                    pixel += 1
                    x, y, image = moved_on(x, y, image, 1, out_height, out_width)

    return find_rows


def make(isa: Isa, rows: int, vectors: int, num_halves: int = 0):
    """Make the kernel for one tile size.

    Parameters
    ----------
    isa : Isa
    rows : int
    vectors, num_halves : int
        Whole registers of each row, and behind them halves of registers.

    Notes
    -----
    Each pixel of the output takes `depth` elements at each tap's offset behind the address of
    its pixel of the input. `residual` may be 0. For threads see `share_tiles`.
    """
    widths = (isa.lanes,) * vectors + (isa.lanes // 2,) * num_halves
    tile = gemm_tile_f32(isa, rows, widths)
    width = sum(widths)
    find_rows = _addressing(rows)
    scratch_bytes = SCRATCH_BYTES_PER_THREAD

    def convolution_f32(args, thread, num_threads):
        weights, taps = load_i64(args, 3), load_i64(args, 4)
        inputs = load_i64(args, 5) + thread * scratch_bytes
        num_taps, depth, columns = load_i64(args, 6), load_i64(args, 7), load_i64(args, 8)
        panel_bytes, panels_at_once = load_i64(args, 17), load_i64(args, 18)
        low, high = bits_to_f32(load_i64(args, 19)), bits_to_f32(load_i64(args, 20))
        outputs = inputs + 256
        residuals = inputs + 512 if load_i64(args, 2) != 0 else 0
        num_tiles = (load_i64(args, 9) + rows - 1) // rows
        num_panels = (columns + width - 1) // width
        shares = share_tiles(num_tiles, num_panels, thread, num_threads)
        first_tile, last_tile, begin, end = shares
        for first_panel in range(begin, end, panels_at_once):
            last_panel = min(first_panel + panels_at_once, end)
            for number in range(first_tile, last_tile):
                find_rows(args, inputs, number)
                for panel in range(first_panel, last_panel):
                    tile(
                        inputs,
                        taps,
                        num_taps,
                        depth,
                        weights + panel * panel_bytes,
                        outputs,
                        residuals,
                        panel * width * 4,
                        columns - panel * width,
                        low,
                        high,
                    )

    return convolution_f32
