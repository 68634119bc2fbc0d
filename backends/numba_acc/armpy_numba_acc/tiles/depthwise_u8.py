"""The 8-bit micro-kernel of depthwise convolutions."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# llvmlite has no types.

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from armpy.records import dataclass
from armpy_numba_acc.llvm.bytes import (
    groups_of_four,
    pack_bytes,
    pack_words,
    store_bytes,
)
from armpy_numba_acc.llvm.dots import ByteProducts, WordProducts, dot_products
from armpy_numba_acc.llvm.vectors import F32, I8, I32, I64, load, vector
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.exact_scaling import ExactScaling
from armpy_numba_acc.tiles.walk import repeat
from armpy_numba_acc.tiles.windows import Block, block_definition


def depthwise_block_u8(isa: Isa, window: Window, *, has_words: bool, **flags: bool) -> str:
    """Write the function that computes some channels of a tile of pixels.

    Parameters
    ----------
    isa : Isa
    window : Window
    has_words : bool
        Whether weights are 16-bit integers, for those that do not fit into signed bytes.
    **flags : bool
        As for `ExactScaling`.

    Notes
    -----
    Arguments: weights, number of groups, bytes of a block's weights, zero point and bounds of
    the output. Rows of the input come in groups of four: there are four slots for each group and
    each column of the input that the tile reads. The weights are what
    `armpy_numba_acc.packing.depthwise.pack_u8` makes.

    ``clamp(round((bias + sum) * scale ± nudge) + zero_point, low, high)``: exact in int32, then
    in float32, and again exact by `ExactScaling` where that may round the wrong way. The block
    is computed in two halves, so that sums and weights stay in registers.
    """
    narrow = replace(isa, vector_bytes=window.size)

    def body(builder, block):
        offset = builder.mul(block.number, block.argument(builder, 2))
        weights = builder.add(block.argument(builder, 0), offset)
        num_groups = block.argument(builder, 1)
        zero_point, low, high = (
            builder.trunc(block.argument(builder, index), I32) for index in (3, 4, 5)
        )
        halves = []
        for half in range(2):
            dots = WordProducts(narrow) if has_words else dot_products(narrow)
            totals = _Sums(window, dots, block, half).of_groups(builder, weights, num_groups)
            halves.append(_words(builder, window, totals, weights, zero_point, half, flags))
        for pixel in range(window.rows * window.columns):
            value = pack_bytes(builder, (halves[0][pixel], halves[1][pixel]), low, high)
            store_bytes(builder, value, block.place(builder, pixel), window.width)

    return block_definition(window.rows, window.columns, 0, body)


class Window(NamedTuple):
    """What a block is made of.

    Parameters
    ----------
    width : int
        Channels: 16, 32 or 64 up to the width of a register, or any number below 16.
    kernel_w, stride_w : int
        Of a window, along a row.
    rows, columns : int
        Of the tile.
    """

    width: int
    kernel_w: int
    stride_w: int
    rows: int
    columns: int

    @property
    def size(self) -> int:
        """Bytes of a register."""
        return max(self.width, 16)

    @property
    def reach(self) -> int:
        """Columns of the input that a tile reads."""
        return (self.columns - 1) * self.stride_w + self.kernel_w


@dataclass(frozen=True)
class _Sums:
    """The sums of one half of a block's channels.

    Parameters
    ----------
    window : Window
    dots : ByteProducts or WordProducts
    block : Block
    half : int

    Notes
    -----
    Four rows of the input serve all of the tile's rows at once: bytes are brought together once
    for each column of the input, and multiplied by the weights of each of the output's pixels
    that read them, which are 0 where such a pixel does not reach a row.
    """

    window: Window
    dots: ByteProducts | WordProducts
    block: Block
    half: int

    def of_groups(self, builder, weights, num_groups):
        """Loop over groups of rows with the sums in registers: two vectors for each pixel."""
        window, line = self.window, 4 * self.dots.bytes_per_vector
        kind = vector(I32, window.size // 4)
        bias = [load(builder, weights, kind, I64(2 * self.half + k)) for k in range(2)]
        first_line = builder.add(weights, I64(20 * window.size))

        def step(builder, group, totals):
            """Use four rows of the input for every pixel of the tile."""
            table = builder.add(self.block.table, builder.mul(group, I64(8 * 4 * window.reach)))
            skipped = builder.mul(group, I64(window.rows * window.kernel_w * line))
            lines = builder.add(first_line, skipped)
            for x in range(window.reach):
                taps = [(j, x - j * window.stride_w) for j in range(window.columns)]
                taps = [(j, tap) for j, tap in taps if 0 <= tap < window.kernel_w]
                if taps:
                    self._add_column(builder, totals, table, lines, x, taps)
            return totals

        return repeat(builder, num_groups, bias * (window.rows * window.columns), step)

    def _add_column(self, builder, totals, table, lines, x, taps):
        """Use one column of four rows for the pixels and elements of the window in `taps`."""
        window, line = self.window, 4 * self.dots.bytes_per_vector
        octets = vector(I8, window.size)
        addresses = [load(builder, table, I64, I64(4 * x + row)) for row in range(4)]
        found = [load(builder, builder.add(each, self.block.at), octets) for each in addresses]
        groups = groups_of_four(builder, found, self.half)
        elements = [self.dots.elements(builder, group) for group in groups]
        for j, tap in taps:
            for i in range(window.rows):
                at_line = builder.add(lines, I64((i * window.kernel_w + tap) * line))
                for k in range(2):
                    number = 2 * (i * window.columns + j) + k
                    factors = self.dots.weights(builder, at_line, 2 * self.half + k)
                    totals[number] = self.dots.add(builder, totals[number], elements[k], factors)


def _words(builder, window, totals, weights, zero_point, half, flags):
    """Sums of one half of the channels as 16-bit elements, a vector for each pixel."""
    lanes = window.size // 4
    scales, nudges = (
        [load(builder, weights, vector(F32, lanes), I64(4 * part + 2 * half + k)) for k in range(2)]
        for part in (1, 2)
    )
    factors = builder.add(weights, I64((12 + 4 * half) * window.size))
    exact = ExactScaling(builder, lanes, factors, 2, zero_point, has_large_scales=False, **flags)
    words = []
    for first in range(0, len(totals), 4):  # two pixels' sums, or what is left
        some = totals[first : first + 4]
        pixels = len(some) // 2
        steps = exact.steps(some, scales * pixels, nudges * pixels)
        words += [
            pack_words(builder, steps[n : n + 2], exact.missing) for n in range(0, len(steps), 2)
        ]
    return words
