"""Depthwise convolution of float32: the micro-kernel."""

from __future__ import annotations

from armpy_numba_acc.llvm.control import repeat
from armpy_numba_acc.llvm.values import F32, I64, CodeValue, Number, at_least, at_most, vector
from armpy_numba_acc.machine.calls.windows import DepthwiseF32
from armpy_numba_acc.tiles.elementwise.elements import load_elements, store_elements
from armpy_numba_acc.tiles.windows.loop import Block, block_definition


def depthwise_block_f32(tile: DepthwiseF32) -> str:
    """Write the function that computes `lanes` channels of a tile of pixels.

    Parameters
    ----------
    tile : DepthwiseF32
        Of which only the parameters matter.
    """

    def compute(block: Block) -> None:
        sums = _RealSums(block, tile)
        _finish(block, tile, sums.of_rows() if tile.kernel_h else sums.of_taps())

    return block_definition(tile.rows, tile.columns, _height(tile) * _width(tile), compute)


def _height(tile: DepthwiseF32) -> int:
    """Rows of the input that a tile reads; 0 if slots are taps'."""
    return (tile.rows - 1) * tile.stride_h + tile.kernel_h if tile.kernel_h else 0


def _width(tile: DepthwiseF32) -> int:
    """Columns of the input that a tile reads."""
    return (tile.columns - 1) * tile.stride_w + tile.kernel_w


class _RealSums:
    """Adds up products for every pixel of a tile."""

    def __init__(self, block: Block, tile: DepthwiseF32) -> None:
        self._table, self._tile = block.table, tile
        call = block.call(DepthwiseF32)
        weights: CodeValue = call.weights + block.number * call.block_bytes
        self._num_taps: CodeValue = call.num_taps
        self._kind = vector(F32, tile.lanes)
        self._bias = weights.load(self._kind)
        self._taps = weights + tile.lanes * 4
        self._at = block.at
        if tile.input_kind != tile.output_kind:
            # `at` counts bytes of the output, whose elements are twice or half as large.
            is_wider = tile.input_kind == "f32"
            self._at = block.at << 1 if is_wider else block.at.shifted_right(1)

    def of_rows(self) -> list[CodeValue]:
        """Use each row of the input for all rows of the tile that read it."""
        totals = [self._bias] * (self._tile.rows * self._tile.columns)
        for y in range(_height(self._tile)):
            self._add_row(totals, y)
        return totals

    def of_taps(self) -> list[CodeValue]:
        """Loop over taps with the sums in registers."""

        def step(tap: CodeValue, totals: list[CodeValue]) -> list[CodeValue]:
            """One tap for every pixel."""
            factor, first = self._taps.load(self._kind, tap), tap * self._tile.columns
            return [
                self._element(first + j).times_plus(factor, total) for j, total in enumerate(totals)
            ]

        totals = [self._bias] * self._tile.columns
        return repeat(self._bias.code, self._num_taps, totals, step)

    def _add_row(self, totals: list[CodeValue], y: int) -> None:
        """Add a row of the input, multiplied by the taps that it meets in each row of the tile."""
        tile = self._tile
        taps = [(i, y - i * tile.stride_h) for i in range(tile.rows)]
        taps = [(i, tap) for i, tap in taps if 0 <= tap < tile.kernel_h]
        factors = {
            (tap, k): self._taps.load(self._kind, tap * tile.kernel_w + k)
            for _, tap in taps
            for k in range(tile.kernel_w)
        }
        for x in range(_width(tile)):
            columns = [(j, x - j * tile.stride_w) for j in range(tile.columns)]
            columns = [(j, k) for j, k in columns if 0 <= k < tile.kernel_w]
            if not columns:
                continue
            value = self._element(y * _width(tile) + x)
            for j, k in columns:
                for i, tap in taps:
                    at = i * tile.columns + j
                    totals[at] = value.times_plus(factors[tap, k], totals[at])

    def _element(self, slot: Number) -> CodeValue:
        """The input's elements after an address of the table."""
        tile, address = self._tile, self._table.load(I64, slot)
        if tile.is_single:
            return load_elements(address, tile.input_kind, 0, 1).at(0).splat(tile.lanes)
        return load_elements(address + self._at, tile.input_kind, 0, tile.lanes)


def _finish(block: Block, tile: DepthwiseF32, totals: list[CodeValue]) -> None:
    """Clamp the sums, and store them."""
    call = block.call(DepthwiseF32)
    low, high = (bound.splat(tile.lanes) for bound in (call.low, call.high))
    for pixel, total in enumerate(totals):
        value = at_most(high, at_least(low, total))
        store_elements(value, block.place(pixel), tile.output_kind, 0)
