"""Scales sums exactly, where float32 cannot tell which way they are rounded."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# llvmlite has no types.

from __future__ import annotations

import math

from llvmlite import ir

from armpy_numba_acc.codegen.vectors import I1, I32, I64, load, store, vector

F64 = ir.DoubleType()

_NAME = "armpy_scale_exactly"
_LARGEST = 1 << 20
"""Far outside of a byte's range, and still such that float32 has room for fractions."""

_SHIFT = 768.0 - 0.5 + 2.0**-14
"""Added to numbers of less than 256 it leaves 14 bits of their fractions, 1 for a half.

Larger numbers are clamped, whatever their fractions are.
"""

_FAR = 0x3FFC
"""Bits of which one is set where a fraction is not near a half: 1.5 * 2**-14 or more away.

Scaled sums err by 2**-16 when they are rounded, and by as much for the rounding of scales and of
sums above 2**24 each, by half of that for that of nudges.
"""

_MOST = 4
"""Vectors that are checked at once."""


class ExactScaling:
    """Replaces rounded results that float32 may have got wrong.

    Parameters
    ----------
    builder : ir.IRBuilder
    lanes : int
        Of a vector of sums.
    factors : ir.Value
        Address of vectors of what `armpy_numba_acc.packing.factors` makes.
    vectors : int
        How many there are; the sums' vectors take them in turn.

    Notes
    -----
    The check costs few instructions; what follows it is seldom run.
    """

    def __init__(self, builder, lanes, factors, vectors):
        self._builder, self._lanes = builder, lanes
        self._factors, self._vectors = factors, vectors
        with builder.goto_entry_block():
            self._room = builder.alloca(vector(I32, lanes), 2 * _MOST)

    def checked(self, totals, reals, results, offset=None):
        """Results, of which those near halves are computed again.

        Parameters
        ----------
        totals : list of ir.Value, int32 vectors
            Up to four.
        reals : list of ir.Value, float32 vectors
            Sums as they were scaled.
        results : list of ir.Value, int32 vectors
            What these became.
        offset : ir.Value, int32 vector, optional
            What is between exact results and `results`.
        """
        builder = self._builder
        assert len(totals) <= _MOST
        is_near = None
        for real in reals:
            shifted = builder.fadd(real, ir.Constant(real.type, [_SHIFT] * self._lanes))
            kind = vector(I32, self._lanes)
            mask = ir.Constant(kind, [_FAR] * self._lanes)
            fraction = builder.and_(builder.bitcast(shifted, kind), mask)
            is_here = builder.icmp_signed("==", fraction, ir.Constant(kind, [0] * self._lanes))
            is_near = is_here if is_near is None else builder.or_(is_near, is_here)
        bits = builder.bitcast(is_near, ir.IntType(self._lanes))
        before = builder.block
        with builder.if_then(builder.icmp_unsigned("!=", bits, bits.type(0)), likely=False):
            exact = self._replaced(totals, results, bits, offset)
            seldom = builder.block
        chosen = []
        for result, value in zip(results, exact, strict=True):
            phi = builder.phi(result.type)
            phi.add_incoming(result, before)
            phi.add_incoming(value, seldom)
            chosen.append(phi)
        return chosen

    def _replaced(self, totals, results, bits, offset):
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
        moved = I32(0) if offset is None else builder.extract_element(offset, I32(0))

        def step(builder, lane, number):
            index = builder.add(builder.mul(number, I64(lanes)), lane)
            column = builder.add(
                builder.mul(builder.urem(number, I64(self._vectors)), I64(lanes)), lane
            )
            value = exactly_scaled(
                builder, load(builder, room, I32, index), load(builder, self._factors, I64, column)
            )
            store(builder, builder.add(value, moved), at_results, index)

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
    twice = _bounded(builder, _rounded_twice(builder, total, factor), _LARGEST)
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
    for limit, order in ((float(_LARGEST), "<"), (float(-_LARGEST), ">")):
        is_inside = builder.fcmp_ordered(order, value, F64(limit))
        value = builder.select(is_inside, value, F64(limit))
    half = math.nextafter(0.5, 0.0)
    is_negative = builder.fcmp_ordered("<", value, F64(0.0))
    away = builder.select(is_negative, F64(-half), F64(half))
    return builder.fptosi(builder.fadd(value, away), I32)
