"""Depthwise convolution of 8-bit elements: the micro-kernel."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.core.dataclass import dataclass
from armpy_numba_acc.llvm.arithmetic.bytes import (
    groups_of_four,
    pack_bytes,
    pack_words,
    store_bytes,
)
from armpy_numba_acc.llvm.arithmetic.dots import Dots, WordProducts, dot_products
from armpy_numba_acc.llvm.control import repeat
from armpy_numba_acc.llvm.values import F32, I8, I32, I64, CodeValue, vector
from armpy_numba_acc.machine.calls.windows import DepthwiseU8
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.finish.exact_scaling import ExactScaling
from armpy_numba_acc.tiles.windows.loop import Block, block_definition


def depthwise_block_u8(isa: Isa, tile: DepthwiseU8) -> str:
    """Write the function that computes some channels of a tile of pixels.

    ``clamp(round((bias + sum) * scale ± nudge) + zero_point, low, high)``: exact in int32, then
    in float32, and again exact by `ExactScaling` where that may round the wrong way. The block
    is computed in two parts, so that sums and weights stay in registers.

    Parameters
    ----------
    tile : DepthwiseU8
        Of which only the parameters matter.
    """
    narrow = isa._replace(vector_bytes=_size(tile))

    def compute(block: Block) -> None:
        call = block.call(DepthwiseU8)
        weights: CodeValue = call.weights + block.number * call.block_bytes
        zero_point, low, high = (
            bound.narrowed(I32) for bound in (call.zero_point, call.low, call.high)
        )
        parts = []
        for part in range(2):
            dots = WordProducts(narrow) if tile.has_words else dot_products(narrow)
            totals = _ByteSums(tile, dots, block, part).of_groups(weights, call.num_groups)
            parts.append(_words(tile, totals, weights, zero_point, part))
        for pixel, words in enumerate(zip(*parts, strict=True)):
            store_bytes(pack_bytes(words, low, high), block.place(pixel), tile.width)

    return block_definition(tile.rows, tile.columns, 0, compute)


def _size(tile: DepthwiseU8) -> int:
    """Bytes of a register."""
    return max(tile.width, 16)


def _reach(tile: DepthwiseU8) -> int:
    """Columns of the input that a tile reads."""
    return (tile.columns - 1) * tile.stride_w + tile.kernel_w


@dataclass(frozen=True)
class _ByteSums:
    """The sums of one half of a block's channels.

    Four rows of the input serve all of the tile's rows at once: bytes are brought together once
    for each column of the input, and multiplied by the weights of each of the output's pixels
    that read them, which are 0 where such a pixel does not reach a row.
    """

    tile: DepthwiseU8
    dots: Dots
    block: Block
    part: int

    def of_groups(self, weights: CodeValue, num_groups: CodeValue) -> list[CodeValue]:
        """Loop over groups of rows with the sums in registers: two vectors for each pixel."""
        tile, line = self.tile, 4 * self.dots.bytes_per_vector
        kind = vector(I32, _size(tile) // 4)
        bias = [weights.load(kind, 2 * self.part + k) for k in range(2)]
        first_line = weights + 20 * _size(tile)

        def step(group: CodeValue, totals: list[CodeValue]) -> list[CodeValue]:
            """Use four rows of the input for every pixel of the tile."""
            table = self.block.table + group * (8 * 4 * _reach(tile))
            lines = first_line + group * (tile.rows * tile.kernel_w * line)
            for x in range(_reach(tile)):
                taps = [(j, x - j * tile.stride_w) for j in range(tile.columns)]
                taps = [(j, tap) for j, tap in taps if 0 <= tap < tile.kernel_w]
                if taps:
                    self._add_column(totals, table, lines, x, taps)
            return totals

        totals = bias * (tile.rows * tile.columns)
        return repeat(weights.code, num_groups, totals, step)

    def _add_column(
        self,
        totals: list[CodeValue],
        table: CodeValue,
        lines: CodeValue,
        x: int,
        taps: Sequence[tuple[int, int]],
    ) -> None:
        """Use one column of four rows for the pixels and elements of the window in `taps`."""
        tile, dots = self.tile, self.dots
        octets, line = vector(I8, _size(tile)), 4 * dots.bytes_per_vector
        addresses = [table.load(I64, 4 * x + row) for row in range(4)]
        octet_rows = [(address + self.block.at).load(octets) for address in addresses]
        groups = groups_of_four(octet_rows, self.part)
        elements = [dots.elements(group) for group in groups]
        for j, tap in taps:
            for i in range(tile.rows):
                at_line = lines + (i * tile.kernel_w + tap) * line
                for k in range(2):
                    number = 2 * (i * tile.columns + j) + k
                    factors = dots.weights(at_line, 2 * self.part + k)
                    totals[number] = dots.add(totals[number], elements[k], factors)


def _words(
    tile: DepthwiseU8, totals: list[CodeValue], weights: CodeValue, zero_point: CodeValue, part: int
) -> list[CodeValue]:
    """Sums of one half of the channels as 16-bit elements, a vector for each pixel."""
    lanes = _size(tile) // 4
    kind = vector(F32, lanes)
    scales, nudges = (
        [weights.load(kind, 4 * which + 2 * part + k) for k in range(2)] for which in (1, 2)
    )
    factors = weights + (12 + 4 * part) * _size(tile)
    exact = ExactScaling(
        factors,
        lanes,
        2,
        zero_point,
        has_negatives=bool(tile.has_negatives),
        is_imprecise=bool(tile.is_imprecise),
        has_large_scales=False,
    )
    words = []
    for first in range(0, len(totals), 4):  # two pixels' sums, or the rest
        some = totals[first : first + 4]
        pixels = len(some) // 2
        steps = exact.steps(some, scales * pixels, nudges * pixels)
        words += [pack_words(steps[n : n + 2], exact.missing) for n in range(0, len(steps), 2)]
    return words
