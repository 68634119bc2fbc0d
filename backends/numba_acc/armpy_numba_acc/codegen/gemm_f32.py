"""The float32 micro-kernel of convolutions and matrix products."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator,misc"
# Numba's extension interface and llvmlite have no types.

from __future__ import annotations

from functools import cache

from numba import types
from numba.extending import intrinsic

from armpy_numba_acc.codegen.isa import Isa
from armpy_numba_acc.codegen.vectors import (
    F32,
    I64,
    extreme,
    fma,
    lane_mask,
    load,
    masked_load,
    masked_store,
    splat,
    store,
    vector,
)
from armpy_numba_acc.codegen.walk import rows_of_table, walk


@cache
def gemm_tile_f32(isa: Isa, rows: int, vectors: int):
    """Make the function that computes one tile of ``rows`` by ``vectors * lanes`` elements.

    Parameters
    ----------
    isa : Isa
    rows, vectors : int
        ``rows * vectors`` accumulators, and the vectors of one step, must fit the registers.

    Returns
    -------
    callable
        ``tile(inputs, taps, num_taps, depth, weights, outputs, residuals, columns, low, high)``
        for code that Numba compiles. `inputs`, `outputs` and `residuals` are addresses of
        one address per row (`residuals` may be 0); `taps` is the address of byte offsets
        that are added to the inputs' rows one after the other; `depth` elements are taken
        from each. `weights` holds the bias, then one line per tap and depth. `columns` is how
        many elements of a row are wanted.

    Notes
    -----
    ``clamp(bias + sum + residual, low, high)``, added up in the order of taps and depth.
    """
    lanes = isa.lanes
    kind = vector(F32, lanes)
    line = lanes * vectors * 4

    @intrinsic
    def tile(
        typingctx, inputs, taps, num_taps, depth, weights, outputs, residuals, columns, low, high
    ):
        signature = types.void(*(types.int64,) * 8, types.float32, types.float32)

        def generate(context, builder, signature, args):
            inputs, taps, num_taps, depth, weights, outputs, residuals, columns, low, high = args
            bias = [load(builder, weights, kind, I64(j)) for j in range(vectors)]
            flat = [bias[j] for _ in range(rows) for j in range(vectors)]
            first_line = builder.add(weights, I64(line))

            def step(builder, pointers, at_line, totals):
                """One line of weights times one element of every row."""
                columns_of = [load(builder, at_line, kind, I64(j)) for j in range(vectors)]
                result = []
                for row in range(rows):
                    element = splat(builder, load(builder, pointers[row], F32), lanes)
                    for j in range(vectors):
                        total = totals[row * vectors + j]
                        result.append(fma(builder, element, columns_of[j], total))
                return result

            pointers = rows_of_table(builder, inputs, rows)
            totals = walk(
                builder, pointers, taps, num_taps, depth, first_line, I64(line), flat, step
            )
            _finish(builder, totals, outputs, residuals, columns, low, high, rows, vectors, lanes)
            return context.get_dummy_value()

        return signature, generate

    return tile


def _finish(builder, totals, outputs, residuals, columns, low, high, rows, vectors, lanes):
    """Add residuals, clamp, and store what is wanted of every row."""
    lowest, highest = splat(builder, low, lanes), splat(builder, high, lanes)
    is_whole = builder.icmp_signed(">=", columns, I64(vectors * lanes))
    has_residual = builder.icmp_signed("!=", residuals, I64(0))

    def write(masks):
        """Store all rows; with masks only some lanes."""
        for row in range(rows):
            target = load(builder, outputs, I64, I64(row))
            for j in range(vectors):
                value = totals[row * vectors + j]
                place = builder.add(target, I64(j * lanes * 4))
                value = _add_residual(builder, value, residuals, has_residual, row, j, lanes, masks)
                value = extreme(
                    builder, "minnum", extreme(builder, "maxnum", value, lowest), highest
                )
                if masks is None:
                    store(builder, value, place)
                else:
                    masked_store(builder, value, place, masks[j])

    with builder.if_else(is_whole) as (whole, part):
        with whole:
            write(None)
        with part:
            left = [builder.sub(columns, I64(j * lanes)) for j in range(vectors)]
            write([lane_mask(builder, count, lanes) for count in left])


def _add_residual(builder, value, residuals, has_residual, row, j, lanes, masks):
    """A value with its residual added, if there is one."""
    before = builder.block
    with builder.if_then(has_residual):
        source = builder.add(load(builder, residuals, I64, I64(row)), I64(j * lanes * 4))
        if masks is None:
            other = load(builder, source, value.type)
        else:
            other = masked_load(builder, source, value.type, masks[j])
        total = builder.fadd(value, other)
        added = builder.block
    result = builder.phi(value.type)
    result.add_incoming(value, before)
    result.add_incoming(total, added)
    return result
