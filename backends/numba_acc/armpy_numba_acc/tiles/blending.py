"""Blends vectors with two weights."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator,misc"
# Numba's extension interface and llvmlite have no types.

from __future__ import annotations

from functools import cache

from numba import types
from numba.extending import intrinsic

from armpy_numba_acc.llvm.vectors import (
    F32,
    I32,
    fma,
    lane_mask,
    load,
    masked_store,
    splat,
    vector,
)
from armpy_numba_acc.machine.isa import Isa


@cache
def make_blend(isa: Isa, is_float: bool):
    """Make ``blend(target, first, second, first_weight, second_weight, count)``.

    Notes
    -----
    ``first * first_weight + second * second_weight`` of one vector of float32 or int32, read
    whole; the first `count` elements are written.
    """
    kind = vector(F32 if is_float else I32, isa.lanes)
    scalar = types.float32 if is_float else types.int32

    @intrinsic
    def blend(typingctx, target, first, second, first_weight, second_weight, count):
        addresses = types.int64, types.int64, types.int64
        signature = types.void(*addresses, scalar, scalar, types.int64)

        def generate(context, builder, signature, args):
            target, first, second, *weights, count = args
            x, y = load(builder, first, kind), load(builder, second, kind)
            left, right = (splat(builder, weight, isa.lanes) for weight in weights)
            if is_float:
                total = fma(builder, y, right, builder.fmul(x, left))
            else:
                total = builder.add(builder.mul(x, left), builder.mul(y, right))
            masked_store(builder, total, target, lane_mask(builder, count, isa.lanes))
            return context.get_dummy_value()

        return signature, generate

    return blend
