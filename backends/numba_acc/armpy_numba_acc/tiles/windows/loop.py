"""Windows over an image: where their elements are, and the loop over tiles of pixels.

Notes
-----
A tile is `rows` by `columns` neighbouring pixels of the output. A table of addresses says where
its elements of the input begin, one address per slot; a slot outside of the image has the
address of a row of padding elements instead, so that borders need neither other code nor a
padded copy. Pixels of a tile that lie outside of the output are written to scratch memory.
Along the channels a tile is computed in blocks of one width; the last block overlaps the one
before it if the channels are not a multiple.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

from armpy.core.dataclass import dataclass
from armpy_numba_acc.llvm.calls import CallFields, reader
from armpy_numba_acc.llvm.pointers import load_i64, store_i64
from armpy_numba_acc.llvm.primitives import Definition, defined, inlined, linked
from armpy_numba_acc.llvm.threads.sharing import share_items, thread_of
from armpy_numba_acc.llvm.values import I64, Code, CodeValue
from armpy_numba_acc.machine.call import Call, Pointer
from armpy_numba_acc.machine.calls.windows import Tiles

_BLOCK = "armpy_window_block"
_SIZES = ("armpy_window_rows", "armpy_window_columns", "armpy_window_slots")


@dataclass(frozen=True, slots=True)
class Block:
    """Arguments of the function that computes one block of a tile."""

    args: CodeValue  # address of the kernel's call, which begins with `Tiles`
    number: CodeValue  # number of the block, and where it begins in a pixel in bytes
    at: CodeValue
    # Addresses of the slots' addresses, and of those of the tile's pixels in the output; `at` is to
    # be added to each.
    table: CodeValue
    outputs: CodeValue
    factors: CodeValue  # address of the tile's prepared values: 8 bytes for each pixel

    def call(self, kind: type[Call]) -> CallFields:
        """The kernel's call."""
        return CallFields(kind, self.args)

    def place(self, pixel: int) -> CodeValue:
        """Return where the block's elements of a pixel of the tile are written."""
        return self.outputs.load(I64, pixel) + self.at


def block_definition(
    rows: int, columns: int, num_slots: int, compute: Callable[[Block], None]
) -> str:
    """Write the functions that `window_kernel` calls, in LLVM's language.

    Parameters
    ----------
    rows, columns
        Of a tile.
    num_slots
        0 if the call says it.
    compute : callable
        Writes what computes a `Block`.
    """

    def size(number: int, code: Code, args: CodeValue) -> CodeValue:
        said: CodeValue = CallFields(Tiles, args).num_slots
        return code.integer(number) if number else said

    def block(code: Code, *values: CodeValue) -> None:
        compute(Block(*values))

    sizes = zip(_SIZES, (rows, columns, num_slots), strict=True)
    functions = [Definition(name, 1, partial(size, number), True) for name, number in sizes]
    return defined(*functions, Definition(_BLOCK, 6, block))


tile_rows, tile_columns, _tile_slots = (linked(name, 1, returns=True) for name in _SIZES)
_compute = linked(_BLOCK, 6)


@inlined
def num_inside(tiles: Tiles, y: int, x: int, height: int, width: int) -> int:
    """Return the number of the window's elements within the image; 1 if none is."""
    rows = min(y + height, tiles.in_height) - max(y, 0)
    columns = min(x + width, tiles.in_width) - max(x, 0)
    return max(rows * columns, 1)


@inlined
def _nothing(args: int, factors: Pointer, y: int, x: int) -> None:
    """Prepare nothing for a tile."""


@inlined
def _locate(tiles: Tiles, num_slots: int, table: Pointer, image: int, y: int, x: int) -> None:
    """Write the address of every slot of the tile at pixel (y, x) of the input."""
    height, width = tiles.in_height, tiles.in_width
    columns, offsets = tiles.slots + 8 * num_slots, tiles.slots + 16 * num_slots
    origin = tiles.source + ((image * height + y) * width + x) * tiles.in_pixel_bytes
    last_y, last_x = y + tiles.extent_h, x + tiles.extent_w
    # Most tiles lie within the image: no slot of theirs need be looked at.
    if (y >= 0) & (x >= 0) & (last_y <= height) & (last_x <= width):
        for k in range(num_slots):
            store_i64(table, k, origin + load_i64(offsets, k))
        return
    for k in range(num_slots):
        row, column = y + load_i64(tiles.slots, k), x + load_i64(columns, k)
        inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
        store_i64(table, k, origin + load_i64(offsets, k) if inside else tiles.padding)


@inlined
def _aim(
    args: int, tiles: Tiles, outputs: Pointer, waste: Pointer, image: int, y: int, x: int
) -> None:
    """Write the address of every pixel of the tile at pixel (y, x) of the output."""
    height, width, pixel = tiles.out_height, tiles.out_width, tiles.out_pixel_bytes
    columns = tile_columns(args)
    origin = tiles.target + ((image * height + y) * width + x) * pixel
    for i in range(tile_rows(args)):
        for j in range(columns):
            inside = (y + i < height) & (x + j < width)
            place = origin + (i * width + j) * pixel
            store_i64(outputs, i * columns + j, place if inside else waste)


@cache
def window_kernel(
    prepare: Callable[[int, Pointer, int, int], None] = _nothing,
) -> Callable[[int, int, int], None]:
    """Make a kernel that computes an output tile by tile; `block_definition` says what with.

    Numba translates it once. Threads share the tiles, or if there are few of them the blocks.

    Parameters
    ----------
    prepare : callable
        ``prepare(args, factors, y, x)``, inlined by Numba, may write 8 bytes for each pixel of
        the tile whose first one is at (y, x) in the input.
    """
    read = reader(Tiles)

    def windows(args: int, shares: int, num_shares: int) -> None:
        tiles = read(args)
        rows, columns, num_slots = tile_rows(args), tile_columns(args), _tile_slots(args)
        outputs = tiles.scratch + thread_of(shares) * tiles.scratch_bytes
        factors = outputs + 8 * rows * columns
        table = factors + 8 * rows * columns
        waste = table + 8 * num_slots
        tiles_down = (tiles.out_height + rows - 1) // rows
        tiles_right = (tiles.out_width + columns - 1) // columns
        num_tiles = tiles.images * tiles_down * tiles_right
        first_tile, last_tile, first_block, last_block = 0, num_tiles, 0, tiles.num_blocks
        if num_tiles >= min(num_shares, tiles.num_blocks):
            first_tile, last_tile = share_items(num_tiles, shares, num_shares)
        else:
            first_block, last_block = share_items(tiles.num_blocks, shares, num_shares)
        line = first_tile // tiles_right
        image = line // tiles_down
        out_y = (line - image * tiles_down) * rows
        out_x = (first_tile - line * tiles_right) * columns
        for _ in range(first_tile, last_tile):
            y, x = out_y * tiles.stride_h - tiles.top, out_x * tiles.stride_w - tiles.left
            _locate(tiles, num_slots, table, image, y, x)
            _aim(args, tiles, outputs, waste, image, out_y, out_x)
            prepare(args, factors, y, x)
            for number in range(first_block, last_block):
                at = min(number * tiles.width_bytes, tiles.out_pixel_bytes - tiles.width_bytes)
                _compute(args, number, at, table, outputs, factors)
            out_x += columns
            if out_x >= tiles.out_width:
                out_x = 0
                out_y += rows
                if out_y >= tiles.out_height:
                    out_y = 0
                    image += 1

    windows.__qualname__ = f"windows with {prepare}"  # of which there is one
    return windows
