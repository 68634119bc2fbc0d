"""The float32 micro-kernel of depthwise convolutions."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# llvmlite has no types.

from __future__ import annotations

from armpy.records import dataclass
from armpy_numba_acc.llvm.vectors import F32, I32, I64, extreme, fma, load, splat, vector
from armpy_numba_acc.tiles.span import load_elements, store_elements
from armpy_numba_acc.tiles.walk import repeat
from armpy_numba_acc.tiles.windows import block_definition


@dataclass(frozen=True, slots=True)
class DepthwiseTile:
    """What is computed at once.

    Parameters
    ----------
    lanes : int
        Channels.
    kernel : tuple of int
        Vertical, horizontal. (0, 1) for any number of taps: every pixel of the tile has slots
        of its own then, tap by tap, and `rows` is 1. Otherwise there is a slot for each pixel
        of the input that the tile reads, row by row.
    stride : tuple of int
    rows, columns : int
        Pixels.
    is_single : bool
        Whether the input has one channel, which all of the output's read.
    input_kind, output_kind : {"f32", "bf16"}
        How elements are stored.
    """

    lanes: int
    kernel: tuple[int, int]
    stride: tuple[int, int]
    rows: int
    columns: int
    is_single: bool
    input_kind: str
    output_kind: str

    @property
    def height(self) -> int:
        """Rows of the input that it reads; 0 if slots are taps'."""
        return (self.rows - 1) * self.stride[0] + self.kernel[0] if self.kernel[0] else 0

    @property
    def width(self) -> int:
        """Columns of the input that it reads."""
        return (self.columns - 1) * self.stride[1] + self.kernel[1]


def depthwise_block_f32(tile: DepthwiseTile) -> str:
    """Write the function that computes `lanes` channels of a tile of pixels.

    Notes
    -----
    Arguments: weights, number of taps, bytes of a block's weights, bounds. Of each block there
    is the bias, then one line per tap.
    """

    def body(builder, block):
        sums = _Sums(builder, block, tile)
        totals = sums.of_rows() if tile.kernel[0] else sums.of_taps()
        _finish(builder, block, tile, totals)

    return block_definition(tile.rows, tile.columns, tile.height * tile.width, body)


class _Sums:
    """Writes the code that adds up products for every pixel of a tile.

    Parameters
    ----------
    builder : llvmlite.ir.IRBuilder
    block : armpy_numba_acc.tiles.windows.Block
    tile : DepthwiseTile
    """

    def __init__(self, builder, block, tile):
        self._builder = builder
        self._block = block
        self._tile = tile
        kind = vector(F32, tile.lanes)
        offset = builder.mul(block.number, block.argument(builder, 2))
        weights = builder.add(block.argument(builder, 0), offset)
        self._bias = load(builder, weights, kind)
        self._taps = builder.add(weights, I64(tile.lanes * 4))
        self._at = block.at
        if tile.input_kind != tile.output_kind:
            shift = builder.shl if tile.input_kind == "f32" else builder.lshr
            self._at = shift(block.at, I64(1))

    def of_rows(self):
        """Use each row of the input for all rows of the tile that read it."""
        totals = [self._bias] * (self._tile.rows * self._tile.columns)
        for y in range(self._tile.height):
            self._add_row(totals, y)
        return totals

    def of_taps(self):
        """Loop over taps with the sums in registers."""

        def step(builder, tap, totals):
            """One tap for every pixel."""
            factor = load(builder, self._taps, self._bias.type, tap)
            first = builder.mul(tap, I64(self._tile.columns))
            return [
                fma(builder, self._element(builder.add(first, I64(j))), factor, total)
                for j, total in enumerate(totals)
            ]

        num_taps = self._block.argument(self._builder, 1)
        return repeat(self._builder, num_taps, [self._bias] * self._tile.columns, step)

    def _add_row(self, totals, y):
        """Add a row of the input, multiplied by the taps that it meets in each row of the tile."""
        builder, tile = self._builder, self._tile
        taps = [(i, y - i * tile.stride[0]) for i in range(tile.rows)]
        taps = [(i, tap) for i, tap in taps if 0 <= tap < tile.kernel[0]]
        factors = {
            (tap, k): load(builder, self._taps, self._bias.type, I64(tap * tile.kernel[1] + k))
            for _, tap in taps
            for k in range(tile.kernel[1])
        }
        for x in range(tile.width):
            columns = [(j, x - j * tile.stride[1]) for j in range(tile.columns)]
            columns = [(j, k) for j, k in columns if 0 <= k < tile.kernel[1]]
            if not columns:
                continue
            value = self._element(I64(y * tile.width + x))
            for j, k in columns:
                for i, tap in taps:
                    at = i * tile.columns + j
                    totals[at] = fma(builder, value, factors[tap, k], totals[at])

    def _element(self, slot):
        """The input's elements behind an address of the table."""
        builder, tile = self._builder, self._tile
        address = load(builder, self._block.table, I64, slot)
        if not tile.is_single:
            place = builder.add(address, self._at)
            return load_elements(builder, place, tile.input_kind, I64(0), tile.lanes)
        single = load_elements(builder, address, tile.input_kind, I64(0), 1)
        return splat(builder, builder.extract_element(single, I32(0)), tile.lanes)


def _finish(builder, block, tile, totals):
    """Clamp the sums, and store them."""
    lowest, highest = (
        splat(
            builder,
            builder.bitcast(builder.trunc(block.argument(builder, number), I32), F32),
            tile.lanes,
        )
        for number in (3, 4)
    )
    for pixel, total in enumerate(totals):
        value = extreme(builder, "maxnum", lowest, total)
        value = extreme(builder, "minnum", highest, value)
        store_elements(builder, value, block.place(builder, pixel), tile.output_kind, I64(0))
