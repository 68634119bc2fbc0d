"""Finds the greatest or least of a few bytes in one vector."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator,misc"
# Numba's extension interface and llvmlite have no types.

from __future__ import annotations

from functools import cache

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from armpy_numba_acc.llvm import vectors
from armpy_numba_acc.llvm.vectors import I1, I8, I64, load, splat, vector
from armpy_numba_acc.machine.isa import Isa


@cache
def make_position_in_short_run(isa: Isa, is_max: bool):
    """Make ``position(address, count)``: where the first of the best bytes is.

    Notes
    -----
    One vector of bytes is read; `count` is 1 to as many as it has.
    """
    width = isa.vector_bytes
    kind = vector(I8, width)
    name = "umax" if is_max else "umin"

    @intrinsic
    def position(typingctx, address, count):
        signature = types.int64(types.int64, types.int64)

        def generate(context, builder, signature, args):
            address, count = args
            numbers = ir.Constant(kind, list(range(width)))
            limit = splat(builder, builder.trunc(count, I8), width)
            is_inside = builder.icmp_unsigned("<", numbers, limit)
            worst = ir.Constant(kind, [0 if is_max else 255] * width)
            values = builder.select(is_inside, load(builder, address, kind), worst)
            function = f"llvm.vector.reduce.{name}.v{width}i8"
            best = builder.call(vectors.intrinsic(builder, function, I8, kind), (values,))
            # Lanes behind the run may equal the best one, but come after the first that does.
            is_best = builder.icmp_signed("==", values, splat(builder, best, width))
            bits = builder.bitcast(is_best, ir.IntType(width))
            bits = bits if width == 64 else builder.zext(bits, I64)
            count_zeros = vectors.intrinsic(builder, "llvm.cttz.i64", I64, I64, I1)
            return builder.call(count_zeros, (bits, I1(1)))

        return signature, generate

    return position
