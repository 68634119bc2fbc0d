"""The micro-kernel of products of bytes that become floats."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator,misc"
# Numba's extension interface and llvmlite have no types.

from __future__ import annotations

from functools import cache

from numba import types
from numba.extending import intrinsic

from armpy_numba_acc.llvm.dots import dot_products, step_of_dots
from armpy_numba_acc.llvm.vectors import (
    F32,
    I32,
    I64,
    extreme,
    fma,
    lane_mask,
    load,
    masked_store,
    splat,
    store,
    vector,
)
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.walk import rows_of_table, walk


@cache
def gemm_tile_dynamic(isa: Isa, rows: int, vectors: int):
    """Make the function that computes one tile of ``rows`` by ``vectors * lanes`` elements.

    Parameters
    ----------
    isa : Isa
    rows, vectors : int
        ``rows * vectors`` accumulators, and the vectors of one step, must fit the registers.

    Returns
    -------
    callable
        ``tile(inputs, taps, num_taps, steps, weights, outputs, ranges, columns, low, high)`` for
        code that Numba compiles. `inputs`, `outputs` and `ranges` are addresses of one
        address per row; `taps` is the address of byte offsets that are added to the inputs'
        rows one after the other; `steps` groups of four elements are taken from each. A range
        is a float32 scale and an int32 that is multiplied with the sum of the weights. `weights`
        is a panel of `armpy_numba_acc.packing.weights_dynamic`, `columns` how many elements of
        a row are wanted.

    Notes
    -----
    ``clamp(sum * scale * weight_scale + bias, low, high)`` with sums that are exact in int32.
    """
    lanes = isa.lanes
    line = lanes * vectors * 4
    dots = dot_products(isa)

    @intrinsic
    def tile(
        typingctx, inputs, taps, num_taps, steps, weights, outputs, ranges, columns, low, high
    ):
        signature = types.void(*(types.int64,) * 8, types.float32, types.float32)

        def generate(context, builder, signature, args):
            inputs, taps, num_taps, steps, weights, outputs, ranges, columns, low, high = args
            totals = walk(
                builder,
                rows_of_table(builder, inputs, rows),
                taps,
                num_taps,
                steps,
                builder.add(weights, I64(3 * line)),
                I64(vectors * dots.bytes_per_vector),
                _first(builder, weights, ranges, rows, vectors, lanes),
                step_of_dots(dots, vectors),
            )
            reals = _scaled(builder, totals, weights, ranges, vectors, lanes)
            _finish(builder, reals, outputs, columns, (low, high), vectors, lanes)
            return context.get_dummy_value()

        return signature, generate

    return tile


def _first(builder, weights, ranges, rows, vectors, lanes):
    """The accumulators' first values: what makes up for the inputs' zero points."""
    kind = vector(I32, lanes)
    sums = [load(builder, weights, kind, I64(j)) for j in range(vectors)]
    result = []
    for row in range(rows):
        place = load(builder, ranges, I64, I64(row))
        factor = splat(builder, load(builder, place, I32, I64(1)), lanes)
        result += [builder.mul(factor, total) for total in sums]
    return result


def _scaled(builder, totals, weights, ranges, vectors, lanes):
    """Sums as real numbers, with the bias."""
    kind = vector(F32, lanes)
    scales, bias = (
        [load(builder, weights, kind, I64(which * vectors + j)) for j in range(vectors)]
        for which in (1, 2)
    )
    result = []
    for number, total in enumerate(totals):
        row, j = divmod(number, vectors)
        if j == 0:
            place = load(builder, ranges, I64, I64(row))
            scale = splat(builder, load(builder, place, F32), lanes)
        factor = builder.fmul(scale, scales[j])
        result.append(fma(builder, builder.sitofp(total, kind), factor, bias[j]))
    return result


def _finish(builder, reals, outputs, columns, bounds, vectors, lanes):
    """Clamp, and store what is wanted of every row."""
    lowest, highest = (splat(builder, bound, lanes) for bound in bounds)
    left = [builder.sub(columns, I64(j * lanes)) for j in range(vectors)]

    def write(masks):
        """Store all rows; with masks only some lanes."""
        for number, real in enumerate(reals):
            row, j = divmod(number, vectors)
            value = extreme(builder, "maxnum", lowest, real)
            value = extreme(builder, "minnum", highest, value)
            target = load(builder, outputs, I64, I64(row))
            place = builder.add(target, I64(j * lanes * 4))
            if masks is None:
                store(builder, value, place)
            else:
                masked_store(builder, value, place, masks[j])

    is_whole = builder.icmp_signed(">=", columns, I64(vectors * lanes))
    with builder.if_else(is_whole) as (whole, part):
        with whole:
            write(None)
        with part:
            write([lane_mask(builder, count, lanes) for count in left])
