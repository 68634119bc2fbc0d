"""Scales sums exactly, where float32 cannot tell which way they are rounded."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# llvmlite has no types.

from __future__ import annotations

import math

from llvmlite import ir

from armpy_numba_acc.llvm.vectors import I1, I32, I64, extreme, fma, load, store, vector
from armpy_numba_acc.packing.factors import Rounding

F64 = ir.DoubleType()

_NAME = "armpy_scale_exactly"
_FAR = 1 << 20
"""Far outside of a byte's range."""

_LARGEST = 2.0**30
"""What an int32 holds, with room for a zero point."""

_MOST = 4
"""Vectors that are checked at once."""


class ExactScaling:
    """Turns sums into steps of the output, rounded as TFLite's arithmetic rounds them.

    Parameters
    ----------
    builder : ir.IRBuilder
    lanes : int
        Of a vector of sums.
    factors : ir.Value
        Address of vectors of what `armpy_numba_acc.packing.factors` makes.
    vectors : int
        How many there are; the sums' vectors take them in turn.
    zero_point : ir.Value, int32
        Of the output.
    has_negatives : bool
        Whether results below the zero point matter; if they do not, sums are scaled and moved in
        one operation, the zero point included.
    is_vague : bool
        As `armpy_numba_acc.packing.factors.Rounding`.
    has_large_scales : bool
        Whether scaled sums may be 2**31 or more.

    Notes
    -----
    Scaled sums are moved to where the last bits of a float32 are fractions of one size, and by
    one half, so that they are rounded by cutting fractions off. Where all bits of a fraction
    are 0, float32 may have got it wrong: that is looked for by one instruction for each vector,
    and what follows it is seldom run. Results that no byte holds are on the right side of what
    one does, no more.
    """

    def __init__(
        self,
        builder,
        lanes,
        factors,
        vectors,
        zero_point,
        *,
        has_negatives,
        is_vague,
        has_large_scales,
    ):
        self._builder, self._lanes = builder, lanes
        self._factors, self._vectors = factors, vectors
        self._rounding = Rounding(has_negatives, is_vague)
        self._has_large_scales = has_large_scales
        base = I32(self._rounding.base)
        self._moved = base if has_negatives else builder.add(base, zero_point)
        self.missing = builder.sub(zero_point, base) if has_negatives else builder.neg(base)
        with builder.goto_entry_block():
            self._room = builder.alloca(vector(I32, lanes), 2 * _MOST)

    def steps(self, totals, scales, nudges):
        """Vectors of int32 that are the output's elements but for `missing`, and not clamped.

        Parameters
        ----------
        totals : list of ir.Value, int32 vectors
            Up to four.
        scales, nudges : list of ir.Value, float32 vectors
            One for each of `totals`. Nudges may be None where all are 0 and negatives matter:
            sums are scaled and moved in one operation then, too.
        """
        builder = self._builder
        assert len(totals) <= _MOST
        reals = [self._scaled(*each) for each in zip(totals, scales, nudges, strict=True)]
        results = [builder.fptosi(real, totals[0].type) for real in reals]
        bits = self._certain(reals)
        before = builder.block
        is_near = builder.icmp_unsigned("!=", bits, ir.Constant(bits.type, -1))
        with builder.if_then(is_near, likely=False):
            exact = self._replaced(totals, results, builder.not_(bits))
            seldom = builder.block
        chosen = []
        for result, value in zip(results, exact, strict=True):
            phi = builder.phi(result.type)
            phi.add_incoming(result, before)
            phi.add_incoming(value, seldom)
            chosen.append(phi)
        return chosen

    def _scaled(self, total, scale, nudge):
        """A vector of sums in steps of the output, to be cut off."""
        builder = self._builder
        real = builder.sitofp(total, scale.type)
        if nudge is None:
            shift = ir.Constant(real.type, [self._rounding.shift] * self._lanes)
            real = fma(builder, real, scale, shift)
        elif self._rounding.has_negatives:
            sign = builder.and_(total, ir.Constant(total.type, [-(1 << 31)] * self._lanes))
            away = builder.or_(sign, builder.bitcast(nudge, total.type))
            real = fma(builder, real, scale, builder.bitcast(away, scale.type))
            real = builder.fadd(real, ir.Constant(real.type, [self._rounding.shift] * self._lanes))
        else:
            real = fma(builder, real, scale, nudge)
        if not self._has_large_scales:
            return real
        return extreme(builder, "minnum", real, ir.Constant(real.type, [_LARGEST] * self._lanes))

    def _certain(self, reals):
        """A bit for each lane: whether no vector has a fraction there that may be wrong."""
        builder = self._builder
        kind = vector(I32, self._lanes)
        mask = ir.Constant(kind, [self._rounding.fraction_bits] * self._lanes)
        result = None
        for real in reals:
            fraction = builder.and_(builder.bitcast(real, kind), mask)
            is_certain = builder.icmp_signed("!=", fraction, ir.Constant(kind, [0] * self._lanes))
            result = is_certain if result is None else builder.and_(result, is_certain)
        return builder.bitcast(result, ir.IntType(self._lanes))

    def _replaced(self, totals, results, bits):
        """Results of which the lanes with a set bit are computed again.

        Notes
        -----
        One by one and without a call: vectors stay in their registers.
        """
        builder, lanes = self._builder, self._lanes
        room = builder.ptrtoint(self._room, I64)
        at_results = builder.add(room, I64(4 * lanes * _MOST))
        for number, (total, result) in enumerate(zip(totals, results, strict=True)):
            store(builder, total, room, I64(number))
            store(builder, result, at_results, I64(number))

        def step(builder, lane, number):
            index = builder.add(builder.mul(number, I64(lanes)), lane)
            column = builder.add(
                builder.mul(builder.urem(number, I64(self._vectors)), I64(lanes)), lane
            )
            value = exactly_scaled(
                builder, load(builder, room, I32, index), load(builder, self._factors, I64, column)
            )
            store(builder, builder.add(value, self._moved), at_results, index)

        _for_each(builder, bits, len(totals), step)
        return [load(builder, at_results, r.type, I64(n)) for n, r in enumerate(results)]


def _for_each(builder, bits, count, step):
    """``step(builder, lane, number)`` for every set bit and every number below `count`."""
    first = builder.block
    loop, done = (builder.append_basic_block(name) for name in ("near", "replaced"))
    start = builder.zext(bits, I64) if bits.type.width < 64 else bits
    builder.branch(loop)
    builder.position_at_end(loop)
    left, number = builder.phi(I64), builder.phi(I64)
    step(builder, builder.cttz(left, ir.Constant(I1, 1)), number)
    following = builder.add(number, I64(1))
    is_last = builder.icmp_signed(">=", following, I64(count))
    fewer = builder.and_(left, builder.sub(left, I64(1)))
    remaining = builder.select(is_last, fewer, left)
    pairs = ((left, start, remaining), (number, I64(0), builder.select(is_last, I64(0), following)))
    for phi, initial, result in pairs:
        phi.add_incoming(initial, first)
        phi.add_incoming(result, loop)
    builder.cbranch(builder.icmp_unsigned("!=", remaining, I64(0)), loop, done)
    builder.position_at_end(done)


def exactly_scaled(builder, total, factor):
    """A sum times a factor of either kind, in int32."""
    twice = _bounded(builder, _rounded_twice(builder, total, factor), _FAR)
    is_fixed = builder.icmp_signed("<", factor, I64(0))
    once = _rounded_once(builder, total, factor)
    return builder.select(is_fixed, builder.trunc(twice, I32), once)


def _bounded(builder, value, most):
    """An int64 clamped to a magnitude, which is a number or a value."""
    most = I64(most) if isinstance(most, int) else most
    value = builder.select(builder.icmp_signed("<", value, most), value, most)
    least = builder.neg(most)
    return builder.select(builder.icmp_signed(">", value, least), value, least)


def _rounded_twice(builder, total, factor):
    """Fixed-point products; left shifts are kept from overflowing, as results are too large."""

    def field(first, bits):
        return builder.and_(builder.lshr(factor, I64(first)), I64((1 << bits) - 1))

    multiplier, left, right = field(0, 32), field(32, 8), field(40, 7)
    value = _bounded(builder, builder.sext(total, I64), builder.lshr(I64(1 << 31), left))
    product = builder.mul(builder.shl(value, left), multiplier)
    high = builder.ashr(builder.add(product, I64(1 << 30)), I64(31))
    half = builder.lshr(builder.shl(I64(1), right), I64(1))
    is_shifted = builder.icmp_signed("!=", right, I64(0))
    sign = builder.select(is_shifted, builder.ashr(high, I64(63)), I64(0))
    return builder.ashr(builder.add(builder.add(high, sign), half), right)


def _rounded_once(builder, total, factor):
    """Products in float64, rounded half away from zero."""
    value = builder.fmul(builder.sitofp(total, F64), builder.bitcast(factor, F64))
    for limit, order in ((float(_FAR), "<"), (float(-_FAR), ">")):
        is_inside = builder.fcmp_ordered(order, value, F64(limit))
        value = builder.select(is_inside, value, F64(limit))
    half = math.nextafter(0.5, 0.0)
    is_negative = builder.fcmp_ordered("<", value, F64(0.0))
    away = builder.select(is_negative, F64(-half), F64(half))
    return builder.fptosi(builder.fadd(value, away), I32)
