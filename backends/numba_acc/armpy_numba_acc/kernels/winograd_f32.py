"""3x3 convolution of float32 by Winograd's algorithm."""

from __future__ import annotations

from collections.abc import Callable

from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.pointers import store_i64
from armpy_numba_acc.llvm.primitives import inlined
from armpy_numba_acc.llvm.threads.sharing import share_items
from armpy_numba_acc.machine.call import Pointer
from armpy_numba_acc.machine.calls.winograd import WinogradF32
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.packing.winograd import PAIRS
from armpy_numba_acc.tiles.windows.winograd_f32 import (
    ahead_bytes,
    input_tile,
    output_tile,
    product_tile,
)

Locate = Callable[[WinogradF32, Pointer, int], None]
Aim = Callable[[WinogradF32, Pointer, Pointer, Pointer, int], None]

_read = reader(WinogradF32)


def _addressing(height: int, width: int) -> tuple[Locate, Aim]:
    """Make what finds the pixels of a tile of the output."""

    @inlined
    def place_of(call: WinogradF32, number: int) -> tuple[int, int, int]:
        """Image, row and column of the output where a tile begins."""
        tiles_down = (call.out_height + height - 1) // height
        tiles_right = (call.out_width + width - 1) // width
        line = number // tiles_right
        image = line // tiles_down
        return image, (line - image * tiles_down) * height, (number - line * tiles_right) * width

    @inlined
    def locate(call: WinogradF32, table: Pointer, number: int) -> None:
        """Write the address of every pixel that a tile reads."""
        image, y, x = place_of(call, number)
        in_height, in_width, pixel = call.in_height, call.in_width, call.depth * 4
        top, left = y - call.top, x - call.left
        origin = call.source + ((image * in_height + top) * in_width + left) * pixel
        for i in range(height + 2):
            for j in range(width + 2):
                inside = (top + i >= 0) & (top + i < in_height)
                inside = inside & (left + j >= 0) & (left + j < in_width)
                place = origin + (i * in_width + j) * pixel
                store_i64(table, i * (width + 2) + j, place if inside else call.zeros)

    @inlined
    def aim(
        call: WinogradF32, table: Pointer, base: Pointer, elsewhere: Pointer, number: int
    ) -> None:
        """Write the address of every pixel of a tile, in an image of the output's shape."""
        image, y, x = place_of(call, number)
        out_height, out_width, pixel = call.out_height, call.out_width, call.columns * 4
        origin = base + ((image * out_height + y) * out_width + x) * pixel
        for i in range(height):
            for j in range(width):
                inside = (y + i < out_height) & (x + j < out_width) & (base != 0)
                place = origin + (i * out_width + j) * pixel
                store_i64(table, i * width + j, place if inside else elsewhere)

    return locate, aim


def make(
    isa: Isa, down: int, right: int, product_rows: int, vectors: int
) -> Callable[[int, int, int], None]:
    """Make the kernel for the record's parameters.

    Threads share the tiles. Their scratch memory holds three tables of addresses in 1024 bytes, a
    pixel that is never read, and the values and the products of a batch.
    """
    transform_input = input_tile(isa, PAIRS[down], PAIRS[right])
    transform_output = output_tile(isa, PAIRS[down], PAIRS[right])
    multiply = product_tile(isa, product_rows, vectors)
    height, width = 2 * down, 2 * right
    locate, aim = _addressing(height, width)
    num_positions = (height + 2) * (width + 2)
    vector_bytes, panel_bytes = isa.vector_bytes, vectors * isa.vector_bytes
    step_bytes = ahead_bytes(vectors)

    def winograd_f32(args: int, thread: int, num_threads: int) -> None:
        call = _read(args)
        depth, columns, batch = call.depth, call.columns, call.batch
        num_panels = (columns * 4 + panel_bytes - 1) // panel_bytes
        pitch, product_pitch = depth * 4, num_panels * panel_bytes
        table = call.scratch + thread * call.scratch_bytes
        residuals, outputs, waste = table + 512, table + 768, table + 1024
        values = waste + product_pitch
        # A line more keeps what belongs to one tile apart in the cache.
        position_bytes, product_position_bytes = batch * pitch + 64, batch * product_pitch + 64
        products = values + num_positions * position_bytes
        tiles = (call.out_height + height - 1) // height
        tiles *= call.images * ((call.out_width + width - 1) // width)
        begin, end = share_items(tiles, thread, num_threads)
        for first in range(begin, end, batch):
            count = min(batch, end - first)
            for k in range(count):
                locate(call, table, first + k)
                for at in range(0, pitch, vector_bytes):
                    transform_input(table, at, values + k * pitch + at, position_bytes)
            panel_weights = call.weights
            for position in range(num_positions):
                for panel in range(num_panels):
                    source = values + position * position_bytes
                    target = products + position * product_position_bytes + panel * panel_bytes
                    size, offset = depth * panel_bytes, 0
                    next_weights = panel_weights + size
                    for _ in range(0, count, product_rows):
                        ahead = next_weights + offset
                        multiply(source, panel_weights, target, depth, pitch, product_pitch, ahead)
                        source += product_rows * pitch
                        target += product_rows * product_pitch
                        offset += step_bytes * depth
                        if offset >= size:
                            offset = -size  # these weights, which are near
                    panel_weights = next_weights
            for k in range(count):
                aim(call, outputs, call.target, waste, first + k)
                aim(call, residuals, call.residual, call.zeros, first + k)
                for at in range(0, columns * 4, vector_bytes):
                    place = products + k * product_pitch + at
                    transform_output(
                        place,
                        product_position_bytes,
                        call.bias,
                        outputs,
                        residuals,
                        at,
                        call.low,
                        call.high,
                    )

    return winograd_f32
