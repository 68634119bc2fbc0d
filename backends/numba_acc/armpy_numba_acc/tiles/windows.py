"""What kernels over image windows share: where their elements are, and the loop over tiles.

Notes
-----
A tile is `rows` by `columns` neighbouring pixels of the output. A table of addresses says where
its elements of the input begin, one address per slot; a slot outside of the image has the
address of a row of padding elements instead, so that borders need neither other code nor a
padded copy. Pixels of a tile that lie outside of the output are written to scratch memory.
Along the channels a tile is computed in blocks of one width; the last block overlaps the one
before it if the channels are no multiple.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator,misc,call-arg"
# What Numba compiles has no types for mypy, nor have Numba's extension interface and llvmlite.

from __future__ import annotations

from functools import cache

from llvmlite import ir
from numba import njit
from numba.extending import intrinsic

from armpy.records import dataclass
from armpy_numba_acc.llvm.linked import call_of
from armpy_numba_acc.llvm.pointers import load_i64, store_i64
from armpy_numba_acc.llvm.sharing import share_items
from armpy_numba_acc.llvm.vectors import I64, load

ARGUMENTS = (
    "input",
    "output",
    "padding",
    "slots",
    "scratch",
    "scratch_bytes",
    "num_slots",
    "images",
    "in_height",
    "in_width",
    "out_height",
    "out_width",
    "stride_h",
    "stride_w",
    "top",
    "left",
    "extent_h",
    "extent_w",
    "in_pixel_bytes",
    "out_pixel_bytes",
    "width_bytes",
    "num_blocks",
)
"""First arguments of every kernel that `window_kernel` makes.

`padding` is a row of padding elements. `slots` holds three tables of int64: rows and columns
relative to a tile's first pixel in the input, and what they make in bytes. A tile reaches over
`extent_h` by `extent_w` pixels of the input. A block is `width_bytes` of the output's pixels.
"""


_BLOCK = "armpy_window_block"
_BLOCK_TYPE = ir.FunctionType(ir.VoidType(), (I64,) * 6)
_SIZE_TYPE = ir.FunctionType(I64, (I64,))


@dataclass(frozen=True, slots=True)
class Block:
    """What the function that computes one block of a tile is called with.

    Parameters
    ----------
    args : ir.Value
        Address of the kernel's arguments.
    number, at : ir.Value
        Number of the block, and where it begins in a pixel in bytes.
    table, outputs : ir.Value
        Addresses of the slots' addresses, and of those of the tile's pixels in the output; `at`
        is to be added to each.
    factors : ir.Value
        Address of what has been prepared for the tile: 8 bytes for each pixel.
    """

    args: ir.Value
    number: ir.Value
    at: ir.Value
    table: ir.Value
    outputs: ir.Value
    factors: ir.Value

    def argument(self, builder, index):
        """One of the kernel's arguments behind those of `ARGUMENTS`."""
        return load(builder, self.args, I64, I64(len(ARGUMENTS) + index))

    def place(self, builder, pixel):
        """Where the block's elements of a pixel of the tile are written."""
        return builder.add(load(builder, self.outputs, I64, I64(pixel)), self.at)


def block_definition(rows: int, columns: int, num_slots: int, body) -> str:
    """Write the functions that `window_kernel` calls, in LLVM's language.

    Parameters
    ----------
    rows, columns : int
        Of a tile.
    num_slots : int
        0 if the kernel's argument says it.
    body : callable
        ``body(builder, block)`` computes a `Block`.
    """
    module = ir.Module()
    for name, size in (("rows", rows), ("columns", columns), ("slots", num_slots)):
        function = ir.Function(module, _SIZE_TYPE, f"armpy_window_{name}")
        builder = ir.IRBuilder(function.append_basic_block("entry"))
        argument = load(builder, function.args[0], I64, I64(ARGUMENTS.index("num_slots")))
        builder.ret(I64(size) if size else argument)
    function = ir.Function(module, _BLOCK_TYPE, _BLOCK)
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    body(builder, Block(*function.args))
    builder.ret_void()
    return str(module)


def _make_size(name):
    """An intrinsic that asks for a size that `block_definition` has written."""

    @intrinsic
    def size(typingctx, args):
        return call_of(f"armpy_window_{name}", _SIZE_TYPE)

    return size


tile_rows = _make_size("rows")
tile_columns = _make_size("columns")
_tile_slots = _make_size("slots")


@intrinsic
def _compute(typingctx, args, number, at, table, outputs, factors):
    """Compute a block with the function that `block_definition` has written."""
    return call_of(_BLOCK, _BLOCK_TYPE)


@njit(inline="always")
def count_inside(start, size, limit):
    """How many of `size` elements from `start` on lie within 0 and `limit`."""
    return min(start + size, limit) - max(start, 0)


@njit(inline="always")
def _nothing(args, factors, y, x):
    """What most kernels have to do for a tile."""


@njit(inline="always")
def _locate(args, table, image, y, x):
    """Write the address of every slot of the tile at pixel (y, x) of the input."""
    slots, num_slots = load_i64(args, 3), _tile_slots(args)
    height, width, pixel = load_i64(args, 8), load_i64(args, 9), load_i64(args, 18)
    columns, offsets = slots + 8 * num_slots, slots + 16 * num_slots
    origin = load_i64(args, 0) + ((image * height + y) * width + x) * pixel
    last_y, last_x = y + load_i64(args, 16), x + load_i64(args, 17)
    if (y >= 0) & (x >= 0) & (last_y <= height) & (last_x <= width):
        for k in range(num_slots):
            store_i64(table, k, origin + load_i64(offsets, k))
        return
    padding = load_i64(args, 2)
    for k in range(num_slots):
        row, column = y + load_i64(slots, k), x + load_i64(columns, k)
        inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
        store_i64(table, k, origin + load_i64(offsets, k) if inside else padding)


@njit(inline="always")
def _aim(args, outputs, waste, image, y, x):
    """Write the address of every pixel of the tile at pixel (y, x) of the output."""
    height, width, pixel = load_i64(args, 10), load_i64(args, 11), load_i64(args, 19)
    columns = tile_columns(args)
    origin = load_i64(args, 1) + ((image * height + y) * width + x) * pixel
    for i in range(tile_rows(args)):
        for j in range(columns):
            inside = (y + i < height) & (x + j < width)
            place = origin + (i * width + j) * pixel
            store_i64(outputs, i * columns + j, place if inside else waste)


@cache
def window_kernel(prepare=_nothing):
    """Make a kernel that computes an output tile by tile; `block_definition` says what with.

    Parameters
    ----------
    prepare : callable
        ``prepare(args, factors, y, x)``, inlined by Numba, may write 8 bytes for each pixel of
        the tile whose first one is at (y, x) in the input.

    Notes
    -----
    Numba translates it once. Threads share the tiles, or if there are few of them the blocks.
    """

    def windows(args, thread, num_threads):
        rows, columns = tile_rows(args), tile_columns(args)
        outputs = load_i64(args, 4) + thread * load_i64(args, 5)
        factors = outputs + 8 * rows * columns
        table = factors + 8 * rows * columns
        waste = table + 8 * _tile_slots(args)
        out_height, out_width = load_i64(args, 10), load_i64(args, 11)
        stride_h, stride_w = load_i64(args, 12), load_i64(args, 13)
        top, left = load_i64(args, 14), load_i64(args, 15)
        out_pixel, width, num_blocks = load_i64(args, 19), load_i64(args, 20), load_i64(args, 21)
        tiles_down = (out_height + rows - 1) // rows
        tiles_right = (out_width + columns - 1) // columns
        num_tiles = load_i64(args, 7) * tiles_down * tiles_right
        first_tile, last_tile, first_block, last_block = 0, num_tiles, 0, num_blocks
        if num_tiles >= 8 * num_threads or num_tiles >= num_blocks:
            first_tile, last_tile = share_items(num_tiles, thread, num_threads)
        else:
            first_block, last_block = share_items(num_blocks, thread, num_threads)
        line = first_tile // tiles_right
        image = line // tiles_down
        out_y = (line - image * tiles_down) * rows
        out_x = (first_tile - line * tiles_right) * columns
        for _ in range(first_tile, last_tile):
            y, x = out_y * stride_h - top, out_x * stride_w - left
            _locate(args, table, image, y, x)
            _aim(args, outputs, waste, image, out_y, out_x)
            prepare(args, factors, y, x)
            for number in range(first_block, last_block):
                at = min(number * width, out_pixel - width)
                _compute(args, number, at, table, outputs, factors)
            out_x += columns
            if out_x >= out_width:
                out_x = 0
                out_y += rows
                if out_y >= out_height:
                    out_y = 0
                    image += 1

    return windows
