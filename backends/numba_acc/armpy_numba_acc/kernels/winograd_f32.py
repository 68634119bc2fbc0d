"""3x3 convolutions in float32 with fewer multiplications."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"
# What Numba compiles has no types for mypy: everything is an integer or an address.

from __future__ import annotations

from numba import njit

from armpy_numba_acc.llvm.pointers import bits_to_f32, load_i64, store_i64
from armpy_numba_acc.llvm.sharing import share_items
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.packing.winograd import PAIRS
from armpy_numba_acc.tiles.winograd_f32 import input_tile, output_tile, product_tile

ARGUMENTS = (
    "input",
    "output",
    "residual",
    "weights",
    "bias",
    "zeros",
    "scratch",
    "scratch_bytes",
    "images",
    "in_height",
    "in_width",
    "out_height",
    "out_width",
    "top",
    "left",
    "depth",
    "columns",
    "batch",
    "low",
    "high",
)
"""`residual` may be 0. `zeros` is a pixel of them, as long as the input's and the output's.
`batch` is how many tiles of the output are computed at once, a multiple of the product's rows.
"""


def _addressing(height: int, width: int):
    """Make what finds the pixels of a tile of the output."""

    @njit(inline="always")
    def place_of(args, number):
        """Image, row and column of the output where a tile begins."""
        tiles_down = (load_i64(args, 11) + height - 1) // height
        tiles_right = (load_i64(args, 12) + width - 1) // width
        line = number // tiles_right
        image = line // tiles_down
        return image, (line - image * tiles_down) * height, (number - line * tiles_right) * width

    @njit(inline="always")
    def locate(args, table, number):
        """Write the address of every pixel that a tile reads."""
        image, y, x = place_of(args, number)
        in_height, in_width, pixel = load_i64(args, 9), load_i64(args, 10), load_i64(args, 15) * 4
        zeros = load_i64(args, 5)
        top, left = y - load_i64(args, 13), x - load_i64(args, 14)
        origin = load_i64(args, 0) + ((image * in_height + top) * in_width + left) * pixel
        for i in range(height + 2):
            for j in range(width + 2):
                inside = (top + i >= 0) & (top + i < in_height)
                inside = inside & (left + j >= 0) & (left + j < in_width)
                place = origin + (i * in_width + j) * pixel
                store_i64(table, i * (width + 2) + j, place if inside else zeros)

    @njit(inline="always")
    def aim(args, table, base, elsewhere, number):
        """Write the address of every pixel of a tile, in an image of the output's shape."""
        image, y, x = place_of(args, number)
        out_height, out_width = load_i64(args, 11), load_i64(args, 12)
        pixel = load_i64(args, 16) * 4
        origin = base + ((image * out_height + y) * out_width + x) * pixel
        for i in range(height):
            for j in range(width):
                inside = (y + i < out_height) & (x + j < out_width) & (base != 0)
                place = origin + (i * out_width + j) * pixel
                store_i64(table, i * width + j, place if inside else elsewhere)

    return locate, aim


def make(isa: Isa, down: int, right: int, rows: int, vectors: int):
    """Make the kernel.

    Parameters
    ----------
    isa : Isa
    down, right : int
        Half the pixels of a tile of the output in each direction.
    rows, vectors : int
        Tiles and registers of channels that are multiplied at once.

    Notes
    -----
    Threads share the tiles. Their scratch memory holds three tables of addresses in 1024 bytes, a
    pixel that nobody reads, and the values and the products of a batch.
    """
    transform_input = input_tile(isa, PAIRS[down], PAIRS[right])
    transform_output = output_tile(isa, PAIRS[down], PAIRS[right])
    multiply = product_tile(isa, rows, vectors)
    locate, aim = _addressing(2 * down, 2 * right)
    height, width = 2 * down, 2 * right
    num_positions = (height + 2) * (width + 2)
    vector_bytes, panel_bytes = isa.vector_bytes, vectors * isa.vector_bytes

    def winograd_f32(args, thread, num_threads):
        weights, bias, zeros = load_i64(args, 3), load_i64(args, 4), load_i64(args, 5)
        depth, columns, batch = load_i64(args, 15), load_i64(args, 16), load_i64(args, 17)
        low, high = bits_to_f32(load_i64(args, 18)), bits_to_f32(load_i64(args, 19))
        num_panels = (columns * 4 + panel_bytes - 1) // panel_bytes
        pitch, product_pitch = depth * 4, num_panels * panel_bytes
        table = load_i64(args, 6) + thread * load_i64(args, 7)
        residuals, outputs, waste = table + 512, table + 768, table + 1024
        values = waste + product_pitch
        # A line more keeps what belongs to one tile apart in the cache.
        position_bytes, product_position_bytes = batch * pitch + 64, batch * product_pitch + 64
        products = values + num_positions * position_bytes
        tiles = (load_i64(args, 11) + height - 1) // height
        tiles *= load_i64(args, 8) * ((load_i64(args, 12) + width - 1) // width)
        begin, end = share_items(tiles, thread, num_threads)
        for first in range(begin, end, batch):
            count = min(batch, end - first)
            for k in range(count):
                locate(args, table, first + k)
                for at in range(0, pitch, vector_bytes):
                    transform_input(table, at, values + k * pitch + at, position_bytes)
            panel_weights = weights
            for position in range(num_positions):
                for panel in range(num_panels):
                    source = values + position * position_bytes
                    target = products + position * product_position_bytes + panel * panel_bytes
                    for _ in range(0, count, rows):
                        multiply(source, panel_weights, target, depth, pitch, product_pitch)
                        source += rows * pitch
                        target += rows * product_pitch
                    panel_weights += depth * panel_bytes
            for k in range(count):
                aim(args, outputs, load_i64(args, 1), waste, first + k)
                aim(args, residuals, load_i64(args, 2), zeros, first + k)
                for at in range(0, columns * 4, vector_bytes):
                    place = products + k * product_pitch + at
                    transform_output(
                        place, product_position_bytes, bias, outputs, residuals, at, low, high
                    )

    return winograd_f32
