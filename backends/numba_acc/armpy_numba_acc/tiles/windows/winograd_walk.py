"""Winograd's algorithm, whatever the elements are: the walk over tiles, and the products."""

from __future__ import annotations

from collections.abc import Callable

from armpy.core.dataclass import dataclass
from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.control import repeat
from armpy_numba_acc.llvm.pointers import store_i64
from armpy_numba_acc.llvm.primitives import NOTHING, WORD, Primitive, inlined, primitive
from armpy_numba_acc.llvm.threads.sharing import share_items, thread_of
from armpy_numba_acc.llvm.values import Code, CodeValue, Kind
from armpy_numba_acc.machine.call import Pointer
from armpy_numba_acc.machine.calls.winograd import WinogradTiles
from armpy_numba_acc.machine.isa import Isa

Place = tuple[int, int, int]
"""Image, row and column of the output where a tile begins."""

Find = Callable[[WinogradTiles, int], Place]
Locate = Callable[[WinogradTiles, Pointer, Place, int], None]
Aim = Callable[[WinogradTiles, Pointer, Pointer, Pointer, Place], None]
Transform = Callable[[Pointer, int, Pointer, int], None]

_read = reader(WinogradTiles)


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of the algorithm for elements of one kind, as the walk takes them."""

    height: int  # of a tile of the output, in pixels
    width: int
    element_bytes: int  # of the images
    value_bytes: int  # of a transformed element: 2 or 4
    # ``(table, at, target, pitch)`` transforms a vector of channels: `table` holds the address of
    # each pixel that the tile reads, row by row, `at` is added to them, and values are written
    # `pitch` bytes from each other.
    transform_input: Primitive
    # ``(values, weights, products, steps, pitch, product_pitch, ahead)`` multiplies `product_rows`
    # lines of values, `pitch` bytes from each other, by `vectors` registers of weights in each
    # step of four bytes; sums are written `product_pitch` bytes from each other. Meanwhile
    # `ahead_bytes` after `ahead` are brought nearer for each step.
    multiply: Primitive
    product_rows: int
    vectors: int
    # ``(args, products, pitch, outputs, residuals, first)`` transforms a vector of columns from
    # number `first` on, of which the products are `pitch` bytes from each other, and writes them.
    # `outputs` and `residuals` hold the address of each pixel, row by row.
    transform_output: Primitive


def ahead_bytes(vectors: int) -> int:
    """Return the bytes of weights that are prefetched with each value of a tile: a line at most.

    Two tiles ask for all of the next ones, four for those that are four registers wide.
    """
    return 32 * min(vectors, 2)


def product_tile(
    rows: int,
    vectors: int,
    kind: Kind,
    sums: Kind,
    splat: Callable[[CodeValue, CodeValue], CodeValue],
    add_product: Callable[[CodeValue, CodeValue, CodeValue], CodeValue],
) -> Primitive:
    """Make `multiply` of `Steps`.

    Parameters
    ----------
    kind
        Of a register of weights.
    sums
        Of a register of sums.
    splat
        ``(pointer, number)`` fills a register with the value of a step.
    add_product
        ``(value, weights, total)`` adds a register's products.
    """

    @primitive(NOTHING, *(WORD,) * 7)
    def multiply(
        code: Code,
        values: CodeValue,
        weights: CodeValue,
        products: CodeValue,
        steps: CodeValue,
        pitch: CodeValue,
        product_pitch: CodeValue,
        ahead: CodeValue,
    ) -> None:
        pointers = [values + pitch * row for row in range(rows)]

        def step(number: CodeValue, totals: list[CodeValue]) -> list[CodeValue]:
            """One line of weights times the next values of every row."""
            at = number * vectors
            (ahead + number * ahead_bytes(vectors)).prefetch()
            line = [weights.load(kind, at + j) for j in range(vectors)]
            result = []
            for row, pointer in enumerate(pointers):
                value = splat(pointer, number)
                for j in range(vectors):
                    result.append(add_product(value, line[j], totals[row * vectors + j]))
            return result

        totals = repeat(code, steps, [code.constant(sums)] * (rows * vectors), step)
        for row in range(rows):
            place = products + product_pitch * row
            for j in range(vectors):
                place.store(totals[row * vectors + j], j)

    return multiply


@inlined
def _tiles_of(size: int, pixels: int, step: int) -> int:
    """Number of tiles along an axis, of so many pixels at so many pixels from each other."""
    return (size + pixels * step - 1) // (pixels * step) * step


def _slice_transform(isa: Isa, steps: Steps) -> Transform:
    """Make what transforms all channels of a tile's pixels."""
    transform_input, at_once = steps.transform_input, isa.vector_bytes // steps.value_bytes
    element_bytes, value_bytes = steps.element_bytes, steps.value_bytes

    @inlined
    def transform_slice(table: Pointer, depth: int, target: Pointer, pitch: int) -> None:
        for start in range(0, depth, at_once):
            at = min(start, depth - at_once)
            transform_input(table, at * element_bytes, target + at * value_bytes, pitch)

    return transform_slice


def _addressing(height: int, width: int, element_bytes: int) -> tuple[Find, Locate, Aim]:
    """Make what finds the pixels of a tile of the output."""

    @inlined
    def place_of(call: WinogradTiles, number: int) -> Place:
        step_down, step_right = call.step_down, call.step_right
        tiles_right = _tiles_of(call.out_width, width, step_right)
        tiles_down = _tiles_of(call.out_height, height, step_down)
        line = number // tiles_right
        image = line // tiles_down
        row, column = line - image * tiles_down, number - line * tiles_right
        # Tiles that lie between each other's pixels follow each other.
        y = row // step_down * (height - 1) * step_down + row
        return image, y, column // step_right * (width - 1) * step_right + column

    @inlined
    def locate(call: WinogradTiles, table: Pointer, place: Place, window_slice: int) -> None:
        """Write the address of every pixel that a tile reads in one of its window's slices."""
        image, y, x = place
        in_height, in_width, pixel = call.in_height, call.in_width, call.depth * element_bytes
        top, left = y - call.top, x - call.left
        volume = image // call.out_slices
        at = (image - volume * call.out_slices) * call.slice_stride - call.front
        at += window_slice * call.slice_step
        is_there = (at >= 0) & (at < call.in_slices)
        image = volume * call.in_slices + at
        # What is stored may be anywhere, for all that the compiler knows: it is read but once.
        step_down, step_right, padding = call.step_down, call.step_right, call.padding
        origin = call.source + ((image * in_height + top) * in_width + left) * pixel
        for i in range(height + 2):
            for j in range(width + 2):
                down, right = i * step_down, j * step_right
                inside = is_there & (top + down >= 0) & (top + down < in_height)
                inside = inside & (left + right >= 0) & (left + right < in_width)
                address = origin + (down * in_width + right) * pixel
                store_i64(table, i * (width + 2) + j, address if inside else padding)

    @inlined
    def aim(
        call: WinogradTiles, table: Pointer, base: Pointer, elsewhere: Pointer, place: Place
    ) -> None:
        """Write the address of every pixel of a tile, in an image of the output's shape."""
        image, y, x = place
        out_height, out_width, pixel = call.out_height, call.out_width, call.columns * element_bytes
        origin = base + ((image * out_height + y) * out_width + x) * pixel
        step_down, step_right = call.step_down, call.step_right
        for i in range(height):
            for j in range(width):
                down, right = i * step_down, j * step_right
                inside = (y + down < out_height) & (x + right < out_width) & (base != 0)
                address = origin + (down * out_width + right) * pixel
                store_i64(table, i * width + j, address if inside else elsewhere)

    return place_of, locate, aim


def winograd_walk(isa: Isa, steps: Steps) -> Callable[[int, int, int], None]:
    """Make the kernel.

    Threads share the tiles. Their scratch memory holds three tables of addresses in 1024 bytes, a
    pixel that is never read, and the values and the products of a batch.
    """
    multiply, transform_output = steps.multiply, steps.transform_output
    transform_slice = _slice_transform(isa, steps)
    height, width, product_rows = steps.height, steps.width, steps.product_rows
    element_bytes, value_bytes = steps.element_bytes, steps.value_bytes
    place_of, locate, aim = _addressing(height, width, element_bytes)
    num_positions = (height + 2) * (width + 2)
    lanes, panel_bytes = isa.lanes, steps.vectors * isa.vector_bytes
    step_bytes = ahead_bytes(steps.vectors)

    def winograd(args: int, shares: int, num_shares: int) -> None:
        call = _read(args)
        depth, columns, batch = call.depth, call.columns, call.batch
        num_panels = (columns * 4 + panel_bytes - 1) // panel_bytes
        slice_bytes, product_pitch = depth * value_bytes, num_panels * panel_bytes
        pitch = call.window_slices * slice_bytes
        num_steps = pitch // 4
        table = call.scratch + thread_of(shares) * call.scratch_bytes
        residuals, outputs, waste = table + 512, table + 768, table + 1024
        values = waste + product_pitch
        # A line more keeps what belongs to one tile apart in the cache.
        position_bytes, product_position_bytes = batch * pitch + 64, batch * product_pitch + 64
        products = values + num_positions * position_bytes
        tiles = call.images * _tiles_of(call.out_height, height, call.step_down)
        tiles *= _tiles_of(call.out_width, width, call.step_right)
        # No less than half of a batch: each batch reads all weights.
        least = (batch + 1) // 2
        begin, end = share_items((tiles + least - 1) // least, shares, num_shares)
        begin, end = begin * least, min(end * least, tiles)
        for first in range(begin, end, batch):
            count = min(batch, end - first)
            for k in range(count):
                place = place_of(call, first + k)
                for number in range(call.window_slices):
                    locate(call, table, place, number)
                    line = values + k * pitch + number * slice_bytes
                    transform_slice(table, depth, line, position_bytes)
            panel_weights = call.weights
            for position in range(num_positions):
                for panel in range(num_panels):
                    source = values + position * position_bytes
                    target = products + position * product_position_bytes + panel * panel_bytes
                    size, offset = num_steps * panel_bytes, 0
                    next_weights = panel_weights + size
                    for _ in range(0, count, product_rows):
                        ahead = next_weights + offset
                        multiply(
                            source, panel_weights, target, num_steps, pitch, product_pitch, ahead
                        )
                        source += product_rows * pitch
                        target += product_rows * product_pitch
                        offset += step_bytes * num_steps
                        if offset >= size:
                            offset = -size  # these weights, which are near
                    panel_weights = next_weights
            for k in range(count):
                place = place_of(call, first + k)
                aim(call, outputs, call.target, waste, place)
                aim(call, residuals, call.residual, call.padding, place)
                for start in range(0, columns, lanes):
                    at = min(start, columns - lanes)
                    source = products + k * product_pitch + at * 4
                    transform_output(args, source, product_position_bytes, outputs, residuals, at)

    return winograd
