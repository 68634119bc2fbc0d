"""The float32 micro-kernel of convolutions and matrix products."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator,misc"
# Numba's extension interface and llvmlite have no types.

from __future__ import annotations

from functools import cache

from numba import types
from numba.extending import intrinsic

from armpy_numba_acc.llvm.vectors import (
    F32,
    I64,
    extreme,
    fma,
    lane_mask,
    load,
    masked_load,
    masked_store,
    prefetch,
    splat,
    store,
    vector,
)
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.walk import rows_of_table, walk

_LINE_BYTES = 64
_PREFETCH_BYTES = 16 << 10
"""How far ahead weights are asked for: they are in no cache near when a layer begins."""


@cache
def gemm_tile_f32(isa: Isa, rows: int, widths: tuple[int, ...]):
    """Make the function that computes one tile of `rows` by ``sum(widths)`` elements.

    Parameters
    ----------
    isa : Isa
    rows : int
    widths : tuple of int
        Elements of each vector of a row. An accumulator for each row and vector, and the vectors
        of one step, must fit the registers.

    Returns
    -------
    callable
        ``tile(inputs, taps, num_taps, depth, weights, outputs, residuals, at, columns, low,
        high)`` for code that Numba compiles. `inputs`, `outputs` and `residuals` are addresses of
        one address per row (`residuals` may be 0); `at` is added to those of the last two. `taps`
        is the address of byte offsets that are added to the inputs' rows one after the other;
        `depth` elements are taken from each. `weights` holds the bias, then one line per tap and
        depth. `columns` is how many elements of a row are wanted.

    Notes
    -----
    ``clamp(bias + sum + residual, low, high)``, added up in the order of taps and depth.
    """
    starts = [4 * sum(widths[:j]) for j in range(len(widths))]
    parts = [(start, vector(F32, width)) for start, width in zip(starts, widths, strict=True)]
    line = 4 * sum(widths)

    @intrinsic
    def tile(
        typingctx,
        inputs,
        taps,
        num_taps,
        depth,
        weights,
        outputs,
        residuals,
        at,
        columns,
        low,
        high,
    ):
        signature = types.void(*(types.int64,) * 9, types.float32, types.float32)

        def generate(context, builder, signature, args):
            inputs, taps, num_taps, depth, weights, *places, columns, low, high = args

            def step(builder, pointers, at_line, totals):
                """One line of weights times one element of every row."""
                factors = _line_at(builder, at_line, parts)
                for start in range(0, line, _LINE_BYTES):
                    prefetch(builder, builder.add(at_line, I64(_PREFETCH_BYTES + start)))
                result = []
                for row in range(rows):
                    number = load(builder, pointers[row], F32)
                    elements = {width: splat(builder, number, width) for width in set(widths)}
                    for j, factor in enumerate(factors):
                        total = totals[row * len(widths) + j]
                        result.append(fma(builder, elements[widths[j]], factor, total))
                return result

            pointers = rows_of_table(builder, inputs, rows)
            first_line = builder.add(weights, I64(line))
            totals = _line_at(builder, weights, parts) * rows
            totals = walk(
                builder, pointers, taps, num_taps, depth, first_line, I64(line), totals, step
            )
            _finish(builder, totals, parts, places, columns, low, high)
            return context.get_dummy_value()

        return signature, generate

    return tile


def _line_at(builder, address, parts):
    """The vectors of one line of weights."""
    return [load(builder, builder.add(address, I64(start)), kind) for start, kind in parts]


def _finish(builder, totals, parts, places, columns, low, high):
    """Add residuals, clamp, and store what is wanted of every row."""
    outputs, residuals, at = places
    last_start, last_kind = parts[-1]
    is_whole = builder.icmp_signed(">=", columns, I64(last_start // 4 + last_kind.count))
    has_residual = builder.icmp_signed("!=", residuals, I64(0))

    def write(masks):
        """Store all rows; with masks only some lanes."""
        for number, total in enumerate(totals):
            row, j = divmod(number, len(parts))
            start, kind = parts[j]
            offset = builder.add(at, I64(start))
            value = _add_residual(builder, total, residuals, has_residual, row, offset, masks, j)
            for name, bound in (("maxnum", low), ("minnum", high)):
                value = extreme(builder, name, splat(builder, bound, kind.count), value)
            place = builder.add(load(builder, outputs, I64, I64(row)), offset)
            if masks is None:
                store(builder, value, place)
            else:
                masked_store(builder, value, place, masks[j])

    with builder.if_else(is_whole) as (whole, part):
        with whole:
            write(None)
        with part:
            write(
                [
                    lane_mask(builder, builder.sub(columns, I64(start // 4)), kind.count)
                    for start, kind in parts
                ]
            )


def _add_residual(builder, value, residuals, has_residual, row, offset, masks, j):
    """A value with its residual added, if there is one."""
    before = builder.block
    with builder.if_then(has_residual):
        source = builder.add(load(builder, residuals, I64, I64(row)), offset)
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
