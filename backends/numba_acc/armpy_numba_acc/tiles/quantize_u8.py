"""The micro-kernel that makes bytes of floats."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator,misc"
# Numba's extension interface and llvmlite have no types.

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from armpy_numba_acc.llvm.values import Code, choose
from armpy_numba_acc.llvm.vectors import (
    F32,
    I8,
    I32,
    I64,
    extreme,
    fma,
    load,
    splat,
    store,
    vector,
)
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles import functions as f
from armpy_numba_acc.tiles.requantize import BytePacker

VECTORS = 4
"""That are computed together."""

_BASE = 768
"""Added to stored integers so that bytes lie between 2**9 and 2**10."""

_FRACTION_BITS = (1 << 14) - 1
"""The last bits of such float32 numbers, which are fractions."""

_LARGEST = 2.0**30


def quantize_block(isa: Isa):
    """Make the function that quantises four vectors of floats.

    Returns
    -------
    callable
        ``quantize(source, target, zero_point, flip, scale, inverse)`` for code that Numba
        compiles: addresses; of the unsigned output; what bytes are changed by in the end; the
        scale, and 1 by it.

    Notes
    -----
    Floats are divided by the scale and rounded, halves away from zero; NaN is 0. Divisions take
    long: floats are multiplied instead, with which results of less than 256 are off by less than
    ``2**-14``, the rounding of what is compared with included. Where they are rounded by cutting
    fractions off, those may be wrong whose fractions are 0 then, and only those: their vectors
    are computed again.
    """
    kind, integers = vector(F32, isa.lanes), vector(I32, isa.lanes)

    def constant(number):
        return ir.Constant(kind, [number] * isa.lanes)

    def is_doubtful(builder, moved):
        """A bit for each lane of some vectors: whether any may be wrong there, or is NaN."""
        result = None
        for value in moved:
            mask = ir.Constant(integers, [_FRACTION_BITS] * isa.lanes)
            fraction = builder.and_(builder.bitcast(value, integers), mask)
            is_near = builder.icmp_signed("==", fraction, ir.Constant(integers, None))
            is_here = builder.or_(is_near, builder.fcmp_unordered("uno", value, value))
            result = is_here if result is None else builder.or_(result, is_here)
        return builder.bitcast(result, ir.IntType(isa.lanes))

    def exact(builder, value, scale, zero_point):
        """Stored integers by a division."""
        steps = Code(builder).of(value) / Code(builder).of(splat(builder, scale, isa.lanes))
        steps = choose(steps.differs(steps), 0.0, steps)
        real = builder.sitofp(zero_point, F32)
        zero = Code(builder).of(splat(builder, real, isa.lanes))
        return (f.to_stored(steps, zero, -zero, 255.0 - zero) + _BASE).value

    @intrinsic
    def quantize(typingctx, source, target, zero_point, flip, scale, inverse):
        signature = types.void(*(types.int64,) * 4, types.float32, types.float32)

        def generate(context, builder, signature, args):
            source, target, zero_point, flip, scale, inverse = args
            values = [load(builder, source, kind, I64(j)) for j in range(VECTORS)]
            factor = splat(builder, inverse, isa.lanes)
            shift = builder.fadd(builder.sitofp(zero_point, F32), F32(_BASE + 0.5))
            shift = splat(builder, shift, isa.lanes)
            moved = [fma(builder, value, factor, shift) for value in values]
            quick = []
            for value in moved:
                bounded = extreme(builder, "maxnum", value, constant(0.0))
                bounded = extreme(builder, "minnum", bounded, constant(_LARGEST))
                quick.append(builder.fptosi(bounded, integers))
            bits = is_doubtful(builder, moved)
            before = builder.block
            with builder.if_then(builder.icmp_unsigned("!=", bits, bits.type(0)), likely=False):
                again = [exact(builder, value, scale, zero_point) for value in values]
                seldom = builder.block
            results = []
            for one, other in zip(quick, again, strict=True):
                phi = builder.phi(integers)
                phi.add_incoming(one, before)
                phi.add_incoming(other, seldom)
                results.append(phi)
            code = Code(builder)
            base, low, high = code.constant(I32, -_BASE), code.integer(0), code.integer(255)
            packer = BytePacker(isa, base, low, high, has_bounds=False)
            packed = packer.elements([code.of(result) for result in results]).value
            changed = splat(builder, builder.trunc(flip, I8), isa.vector_bytes)
            store(builder, builder.xor(packed, changed), target)
            return context.get_dummy_value()

        return signature, generate

    return quantize
