"""From exact sums of products to an output's scale, in 64 bits."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# llvmlite has no types.

from __future__ import annotations

import math

from llvmlite import ir

from armpy_numba_acc.llvm.vectors import (
    F64,
    I32,
    I64,
    extreme,
    intrinsic,
    load,
    splat,
    suffix,
    vector,
)

NUM_LINES = 5
"""Numbers of 8 bytes that a column has in a head."""


class Rescaling:
    """Multiplies sums by a number per column, rounds and clamps them.

    Parameters
    ----------
    builder : ir.IRBuilder
    head : ir.Value, int64
        Address of five lines with a number for each column: factor, addend, shift, half and
        step; or else, for ``real``, factor and addend as float64, then three that mean nothing.
    lanes, vectors : int
        Elements of a vector, and vectors of a line.
    bounds : tuple of ir.Value, int64
        Of the result.
    rounding : {"plain", "signed", "real"}
        ``(sum * factor + addend) >> shift``; the same with ``half``, less `step` where that is
        negative, added before the shift; or in float64, halves away from zero.

    Notes
    -----
    All of it is exact. The reference's two roundings are one here: what it does is in the head.

    References
    ----------
    TFLite ``MultiplyByQuantizedMultiplier`` for accumulators of 32 and of 64 bits; gemmlowp
    ``RoundingDivideByPOT``.
    """

    def __init__(self, builder, head, lanes, vectors, bounds, *, rounding):
        self._builder, self._lanes, self._rounding = builder, lanes, rounding
        kind = vector(F64 if rounding == "real" else I64, lanes)
        count = {"real": 2, "plain": 3, "signed": NUM_LINES}[rounding]
        self._lines = [
            [load(builder, head, kind, I64(line * vectors + j)) for line in range(count)]
            for j in range(vectors)
        ]
        if rounding != "real":  # factors fit 32 bits: LLVM sees that their upper halves are 0
            short = vector(I32, lanes)
            for line in self._lines:
                line[0] = builder.sext(builder.trunc(line[0], short), kind)
        if rounding == "real":
            bounds = [builder.sitofp(bound, F64) for bound in bounds]
        self._bounds = [splat(builder, bound, lanes) for bound in bounds]

    def rescaled(self, total, j, stored):
        """A vector of sums, int32 or int64, as integers of another type.

        Parameters
        ----------
        j : int
            Which vector of a line it belongs to.
        stored : ir.VectorType
            Of as many elements, which hold all within the bounds.
        """
        if self._rounding == "real":
            return self._in_floats(total, self._lines[j], stored)
        builder = self._builder
        factor, addend, shift, *rest = self._lines[j]
        value = total
        if total.type != factor.type:
            value = builder.sext(total, factor.type)
        value = builder.add(builder.mul(value, factor), addend)
        if rest:
            half, step = rest
            sign = builder.ashr(value, ir.Constant(value.type, [63] * self._lanes))
            value = builder.add(value, builder.sub(half, builder.and_(sign, step)))
        value = builder.ashr(value, shift)
        low, high = self._bounds
        value = extreme(builder, "smax", value, low)
        return builder.trunc(extreme(builder, "smin", value, high), stored)

    def _in_floats(self, total, line, stored):
        """The same in float64; sums are below 2**53, which it holds exactly."""
        builder, (factor, addend) = self._builder, line
        kind = factor.type
        value = builder.fadd(builder.sitofp(total, kind), addend)
        value = builder.fmul(value, factor)
        low, high = self._bounds
        value = extreme(builder, "maxnum", value, low)
        value = extreme(builder, "minnum", value, high)
        copysign = intrinsic(builder, f"llvm.copysign.{suffix(kind)}", kind, kind, kind)
        # Added to the number below one half, it does not round up to 1.
        half = ir.Constant(kind, [math.nextafter(0.5, 0.0)] * kind.count)
        value = builder.fadd(value, builder.call(copysign, (half, value)))
        integers = builder.fptosi(value, vector(I32, self._lanes))
        return builder.trunc(integers, stored)
