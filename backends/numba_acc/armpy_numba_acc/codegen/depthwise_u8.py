"""The 8-bit micro-kernel of depthwise convolutions."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# llvmlite has no types.

from __future__ import annotations

from dataclasses import replace

from llvmlite import ir

from armpy_numba_acc.codegen.bytes import (
    groups_of_four,
    pack_bytes,
    pack_words,
    round_to_int,
    store_bytes,
)
from armpy_numba_acc.codegen.dots import WordProducts, dot_products
from armpy_numba_acc.codegen.exact_scaling import ExactScaling
from armpy_numba_acc.codegen.isa import Isa
from armpy_numba_acc.codegen.vectors import F32, I8, I32, I64, fma, load, splat, vector
from armpy_numba_acc.codegen.walk import repeat
from armpy_numba_acc.codegen.windows import block_definition


def depthwise_block_u8(  # noqa: PLR0915  # its steps share what is known when it is made
    isa: Isa,
    width: int,
    kernel_w: int,
    stride_w: int,
    rows: int,
    columns: int,
    has_words: bool,
    is_single: bool,
) -> str:
    """Write the function that computes `width` channels of a tile of pixels.

    Parameters
    ----------
    isa : Isa
    width : int
        16, 32 or 64 up to the width of a register, or any number below 16.
    kernel_w, stride_w : int
        Of a window, along a row.
    rows, columns : int
        Of the tile.
    has_words : bool
        Whether weights are 16-bit integers, for those that do not fit into signed bytes.
    is_single : bool
        Whether the input has one channel, which all of the output's read.

    Notes
    -----
    Arguments: weights, number of groups, bytes of a block's weights, zero point and bounds of
    the output. Rows of the input come in groups of four: there are four slots for each group and
    each column of the input that the tile reads. The weights are what
    `armpy_numba_acc.packing.depthwise.pack_u8` makes.

    ``clamp(round((bias + sum) * scale ± nudge) + zero_point, low, high)``: exact in int32, then
    in float32, and again exact by `ExactScaling` where that may round the wrong way. Four rows
    serve all of the tile's rows at once: bytes are brought together once for each column of the
    input, and multiplied by the weights of each of the output's pixels that read them, which
    are 0 where such a pixel does not reach a row. The block is computed in two halves, so that
    sums and weights stay in registers.
    """
    size = max(width, 16)
    narrow = replace(isa, vector_bytes=size)
    dots = WordProducts(narrow) if has_words else dot_products(narrow)
    octets, sums, reals = vector(I8, size), vector(I32, size // 4), vector(F32, size // 4)
    reach = (columns - 1) * stride_w + kernel_w
    line = 4 * dots.bytes_per_vector

    def body(builder, block):
        offset = builder.mul(block.number, block.argument(builder, 2))
        weights = builder.add(block.argument(builder, 0), offset)
        num_groups = block.argument(builder, 1)
        zero_point, low, high = (
            builder.trunc(block.argument(builder, index), I32) for index in (3, 4, 5)
        )
        halves = []
        for half in range(2):
            totals = add_groups(builder, block, weights, num_groups, half)
            halves.append(requantised(builder, totals, weights, zero_point, half))
        for pixel in range(rows * columns):
            value = pack_bytes(builder, (halves[0][pixel], halves[1][pixel]), low, high)
            store_bytes(builder, value, block.place(builder, pixel), width)

    def add_groups(builder, block, weights, num_groups, half):
        """Loop over groups of rows with the sums of one half of the channels in registers."""
        bias = [load(builder, weights, sums, I64(2 * half + k)) for k in range(2)]
        first_line = builder.add(weights, I64(20 * size))

        def step(builder, group, totals):
            """Use four rows of the input for every pixel of the tile."""
            table = builder.add(block.table, builder.mul(group, I64(8 * 4 * reach)))
            lines = builder.add(first_line, builder.mul(group, I64(rows * kernel_w * line)))
            for x in range(reach):
                taps = [
                    (j, x - j * stride_w)
                    for j in range(columns)
                    if 0 <= x - j * stride_w < kernel_w
                ]
                if taps:
                    add_column(builder, block, totals, table, lines, x, taps, half)
            return totals

        return repeat(builder, num_groups, bias * (rows * columns), step)

    def add_column(builder, block, totals, table, lines, x, taps, half):
        """Use one column of four rows for the pixels and elements of the window in `taps`."""
        found = [row_of(builder, block, table, 4 * x + row) for row in range(4)]
        elements = [dots.elements(builder, v) for v in groups_of_four(builder, found, half)]
        for j, tap in taps:
            for i in range(rows):
                at_line = builder.add(lines, I64((i * kernel_w + tap) * line))
                for k in range(2):
                    number = 2 * (i * columns + j) + k
                    factors = dots.weights(builder, at_line, 2 * half + k)
                    totals[number] = dots.add(builder, totals[number], elements[k], factors)

    def row_of(builder, block, table, slot):
        """The bytes behind an address of the table."""
        address = load(builder, table, I64, I64(slot))
        if is_single:
            return splat(builder, load(builder, address, I8), size)
        return load(builder, builder.add(address, block.at), octets)

    def requantised(builder, totals, weights, zero_point, half):
        """Scaled sums as 16-bit integers, a vector for each pixel."""
        scales, nudges = (
            [load(builder, weights, kind, I64(4 * part + 2 * half + k)) for k in range(2)]
            for part, kind in ((1, reals), (2, sums))
        )
        factors = builder.add(weights, I64((12 + 4 * half) * size))
        exact = ExactScaling(builder, size // 4, factors, 2)
        words = []
        for first in range(0, len(totals), 4):  # two pixels' sums, or what is left
            some = totals[first : first + 4]
            scaled_ = [
                scaled(builder, total, scales[n % 2], nudges[n % 2]) for n, total in enumerate(some)
            ]
            steps = [round_to_int(builder, real) for real in scaled_]
            steps = exact.checked(some, scaled_, steps)
            words += [
                pack_words(builder, steps[n : n + 2], zero_point) for n in range(0, len(steps), 2)
            ]
        return words

    def scaled(builder, total, scale, nudge):
        """A vector of sums in steps of the output, nudged away from zero."""
        sign = builder.and_(total, ir.Constant(sums, [-(1 << 31)] * sums.count))
        away = builder.bitcast(builder.or_(sign, nudge), reals)
        return fma(builder, builder.sitofp(total, reals), scale, away)

    return block_definition(rows, columns, 0, body)
