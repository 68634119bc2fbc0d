"""The float32 micro-kernel of depthwise convolutions."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# llvmlite has no types.

from __future__ import annotations

from armpy_numba_acc.codegen.vectors import F32, I32, I64, extreme, fma, load, splat, store, vector
from armpy_numba_acc.codegen.walk import repeat
from armpy_numba_acc.codegen.windows import block_definition


def depthwise_block_f32(
    lanes: int,
    kernel: tuple[int, int],
    stride: tuple[int, int],
    rows: int,
    columns: int,
    is_single: bool,
) -> str:
    """Write the function that computes `lanes` channels of a tile of pixels.

    Parameters
    ----------
    lanes : int
    kernel : tuple of int
        Vertical, horizontal. (0, 1) for any number of taps: every pixel of the tile has slots
        of its own then, tap by tap, and `rows` is 1. Otherwise there is a slot for each pixel
        of the input that the tile reads, row by row.
    stride : tuple of int
    rows, columns : int
        Of the tile.
    is_single : bool
        Whether the input has one channel, which all of the output's read.

    Notes
    -----
    Arguments: weights, number of taps, bytes of a block's weights, bounds. Of each block there
    is the bias, then one line per tap.
    """
    kind = vector(F32, lanes)
    line = lanes * 4
    width = (columns - 1) * stride[1] + kernel[1]
    height = (rows - 1) * stride[0] + kernel[0] if kernel[0] else 0

    def body(builder, block):
        offset = builder.mul(block.number, block.argument(builder, 2))
        weights = builder.add(block.argument(builder, 0), offset)
        totals = [load(builder, weights, kind)] * (rows * columns)
        taps = builder.add(weights, I64(line))

        def element(builder, slot):
            """The input's elements behind an address of the table."""
            address = load(builder, block.table, I64, slot)
            if is_single:
                return splat(builder, load(builder, address, F32), lanes)
            return load(builder, builder.add(address, block.at), kind)

        if kernel[0]:
            for y in range(height):
                add_row(builder, totals, element, taps, y)
        else:
            totals = add_taps(builder, totals, element, taps, block.argument(builder, 1))
        bounds = [
            splat(
                builder, builder.bitcast(builder.trunc(block.argument(builder, k), I32), F32), lanes
            )
            for k in (3, 4)
        ]
        for pixel, total in enumerate(totals):
            value = extreme(builder, "maxnum", total, bounds[0])
            value = extreme(builder, "minnum", value, bounds[1])
            store(builder, value, block.place(builder, pixel))

    def add_row(builder, totals, element, weights, y):
        """Use one row of the input for every row of the tile that reads it."""
        taps = [(i, y - i * stride[0]) for i in range(rows)]
        taps = [(i, tap) for i, tap in taps if 0 <= tap < kernel[0]]
        factors = {
            (tap, k): load(builder, weights, kind, I64(tap * kernel[1] + k))
            for _, tap in taps
            for k in range(kernel[1])
        }
        for x in range(width):
            value = None
            for j in range(columns):
                k = x - j * stride[1]
                if not 0 <= k < kernel[1]:
                    continue
                value = element(builder, I64(y * width + x)) if value is None else value
                for i, tap in taps:
                    at = i * columns + j
                    totals[at] = fma(builder, value, factors[tap, k], totals[at])

    def add_taps(builder, totals, element, weights, num_taps):
        """Loop over taps with the sums in registers."""

        def step(builder, tap, totals):
            """One tap for every pixel."""
            factor = load(builder, weights, kind, tap)
            first = builder.mul(tap, I64(columns))
            return [
                fma(builder, element(builder, builder.add(first, I64(j))), factor, total)
                for j, total in enumerate(totals)
            ]

        return repeat(builder, num_taps, totals, step)

    return block_definition(rows, columns, height * width, body)
