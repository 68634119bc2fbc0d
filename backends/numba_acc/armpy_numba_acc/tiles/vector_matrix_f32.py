"""Micro-kernels of a float32 vector times a matrix."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator,misc"
# Numba's extension interface and llvmlite have no types.

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from armpy_numba_acc.llvm.values import Code
from armpy_numba_acc.llvm.vectors import (
    I64,
    extreme,
    lane_mask,
    load,
    masked_load,
    masked_store,
    splat,
    store,
)
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.product import rows_in_line
from armpy_numba_acc.tiles.vector_matrix import (
    TOGETHER,
    RealProducts,
    panel_sums,
    row_sums,
    vector_sums,
)


def column_vectors_f32(isa: Isa, vectors: int):
    """Make the function that computes the columns of some vectors.

    Parameters
    ----------
    isa : Isa
    vectors : int
        More than one: all of their columns are wanted. One: it may be the last.

    Returns
    -------
    callable
        ``compute(source, depth, weights, target, residual, count, low, high)`` for code that
        Numba compiles: addresses of the input, of each vector's bias and then the lines, of
        the output and of what is added to it (or 0); how many columns are wanted; bounds.
    """
    products = RealProducts(isa)

    @intrinsic
    def compute(typingctx, source, depth, weights, target, residual, count, low, high):
        signature = types.void(*(types.int64,) * 6, types.float32, types.float32)

        def generate(context, builder, signature, args):
            source, depth, weights, target, residual, count, low, high = args
            first = [load(builder, weights, products.kind, I64(j)) for j in range(vectors)]
            lines = builder.add(weights, I64(vectors * isa.vector_bytes))
            if vectors > 1:
                totals = panel_sums(builder, products, first, source, depth, lines)
            else:
                totals = [vector_sums(builder, products, first[0], source, depth, lines)]
            _finish(builder, totals, target, residual, None if vectors > 1 else count, low, high)
            return context.get_dummy_value()

        return signature, generate

    return compute


def row_sums_f32(isa: Isa):
    """Make the function that computes the sums of up to `TOGETHER` outputs.

    Returns
    -------
    callable
        ``compute(source, depth, weights, pitch, count, sums)`` for code that Numba compiles:
        addresses of the input and of the first output's weights; bytes to the next one's; how
        many outputs are wanted; where sums go.
    """
    products = RealProducts(isa)

    @intrinsic
    def compute(typingctx, source, depth, weights, pitch, count, sums):
        signature = types.void(*(types.int64,) * 6)

        def generate(context, builder, signature, args):
            source, depth, weights, pitch, count, sums = args
            of = Code(builder).of
            found = rows_in_line(of(weights), of(pitch), of(count), TOGETHER)
            rows = [row.value for row in found]
            row_sums(builder, products, source, depth, rows, sums)
            return context.get_dummy_value()

        return signature, generate

    return compute


def finish_f32(isa: Isa):
    """Make the function that makes outputs of a vector's sums.

    Returns
    -------
    callable
        ``finish(sums, bias, target, residual, count, low, high)``; see `column_vectors_f32`.
    """
    kind = RealProducts(isa).kind

    @intrinsic
    def finish(typingctx, sums, bias, target, residual, count, low, high):
        signature = types.void(*(types.int64,) * 5, types.float32, types.float32)

        def generate(context, builder, signature, args):
            sums, bias, target, residual, count, low, high = args
            total = builder.fadd(load(builder, sums, kind), load(builder, bias, kind))
            _finish(builder, [total], target, residual, count, low, high)
            return context.get_dummy_value()

        return signature, generate

    return finish


def _finish(builder, totals, target, residual, count, low, high):
    """Add the residual if there is one, clamp and store; `count` of one vector's lanes."""
    kind = totals[0].type
    lowest, highest = splat(builder, low, kind.count), splat(builder, high, kind.count)
    mask = None if count is None else lane_mask(builder, count, kind.count)
    has_residual = builder.icmp_signed("!=", residual, I64(0))
    zero = ir.Constant(kind, None)
    for j, total in enumerate(totals):
        offset = I64(j * kind.count * 4)
        before = builder.block
        with builder.if_then(has_residual):
            place = builder.add(residual, offset)
            if mask is None:
                found = load(builder, place, kind)
            else:
                found = masked_load(builder, place, kind, mask)
            behind = builder.block
        other = builder.phi(kind)
        other.add_incoming(zero, before)
        other.add_incoming(found, behind)
        # In this order NaN stays NaN.
        value = extreme(builder, "maxnum", lowest, builder.fadd(total, other))
        value = extreme(builder, "minnum", highest, value)
        place = builder.add(target, offset)
        if mask is None:
            store(builder, value, place)
        else:
            masked_store(builder, value, place, mask)
