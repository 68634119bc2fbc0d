"""Adds the elements of another tensor to those that are computed, for micro-kernels."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# llvmlite has no types.

from __future__ import annotations

from llvmlite import ir

from armpy_numba_acc.llvm.vectors import F32, I8, I32, I64, extreme, fma, load, splat, vector

_HALF = 0x3F000000
"""Bits of 0.5."""


class ResidualSum:
    """The sum of two quantised tensors in the quantisation of a third.

    Parameters
    ----------
    builder : ir.IRBuilder
    lanes : int
        Of a vector.
    parameters : ir.Value
        Address of what `armpy_numba_acc.lowering.weighted_u8.Residual` packs.
    missing : ir.Value, int32
        What is missing in the first summand's elements, see `ExactScaling`.
    low, high : ir.Value, int32
        Bounds of the first summand.
    has_negatives : bool
        Whether sums below the zero point are not all clamped to it.

    Notes
    -----
    Computed in float32 and rounded half away from zero, as
    `armpy_numba_acc.tiles.expressions` does it where nothing is fused: where fixed-point
    arithmetic rounds a number the other way that is next to a half, an element is off by one.
    """

    def __init__(self, builder, lanes, parameters, missing, low, high, *, has_negatives):
        self._builder, self._lanes = builder, lanes
        self._has_negatives = has_negatives

        def number(index, kind=I32):
            return load(builder, parameters, kind, I64(index))

        self._low, self._high = (
            splat(builder, builder.sub(bound, missing), lanes) for bound in (low, high)
        )
        self._zero = splat(builder, builder.sub(number(0), missing), lanes)
        self._other_zero = splat(builder, number(1), lanes)
        self._scale, self._other_scale = (splat(builder, number(i, F32), lanes) for i in (2, 3))
        zero_point = number(4)
        half = ir.Constant(F32, 0.5)
        self._first = splat(builder, builder.fadd(builder.sitofp(zero_point, F32), half), lanes)
        self.missing = zero_point if has_negatives else I32(0)

    def steps(self, elements, others):
        """Vectors of int32 that are the sum's elements but for `missing`, and not clamped.

        Parameters
        ----------
        elements : list of ir.Value, int32 vectors
            As `ExactScaling` gives them.
        others : list of ir.Value
            Addresses of as many bytes each as there are lanes.
        """
        return [self._sum(*pair) for pair in zip(elements, others, strict=True)]

    def _sum(self, element, other):
        """One vector."""
        builder, kind = self._builder, element.type
        reals = vector(F32, self._lanes)
        element = extreme(builder, "smax", element, self._low)
        element = extreme(builder, "smin", element, self._high)
        real = builder.sitofp(builder.sub(element, self._zero), reals)
        other = builder.zext(load(builder, other, vector(I8, self._lanes)), kind)
        other = builder.sitofp(builder.sub(other, self._other_zero), reals)
        if not self._has_negatives:
            total = fma(builder, real, self._scale, self._first)
            return builder.fptosi(fma(builder, other, self._other_scale, total), kind)
        total = fma(builder, real, self._scale, builder.fmul(other, self._other_scale))
        sign = ir.Constant(kind, [-(1 << 31)] * self._lanes)
        half = ir.Constant(kind, [_HALF] * self._lanes)
        away = builder.or_(builder.and_(builder.bitcast(total, kind), sign), half)
        return builder.fptosi(builder.fadd(total, builder.bitcast(away, reals)), kind)
