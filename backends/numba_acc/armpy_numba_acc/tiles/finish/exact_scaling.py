"""Exact scaling of sums where float32 does not decide their rounding."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from operator import and_

from llvmlite import ir

from armpy_numba_acc.llvm.control import loop_while, when
from armpy_numba_acc.llvm.values import F64, I1, I32, I64, CodeValue, Number, choose, vector
from armpy_numba_acc.packing.factors import Rounding

_FAR = 1 << 20
"""Far outside of a byte's range."""

_LARGEST = 2.0**30
"""What an int32 holds, with room for a zero point."""

_SIGN = -(1 << 31)

MOST_VECTORS = 4
"""Vectors that are checked at once."""


class ExactScaling:
    """Turns sums into steps of the output, rounded as TFLite's arithmetic rounds them.

    Scaled sums are moved to where the last bits of a float32 are fractions of one size, and by
    one half, so that they are rounded by cutting fractions off. Where all bits of a fraction
    are 0, float32 may have got it wrong: that is looked for by one instruction for each vector,
    and what follows it is seldom run. Results that no byte holds are on the right side of what
    one does, no more.

    Parameters
    ----------
    factors : CodeValue
        Address of vectors of what `armpy_numba_acc.packing.factors` makes.
    lanes : int
        Of a vector of sums.
    vectors : int
        How many vectors of factors there are; the sums' vectors take them in turn.
    zero_point : CodeValue, int32
        Of the output.
    has_negatives : bool
        Whether results below the zero point matter; if they do not, sums are scaled and moved in
        one operation, the zero point included.
    is_imprecise : bool
        As `armpy_numba_acc.packing.factors.Rounding`.
    has_large_scales : bool
        Whether scaled sums may be 2**31 or more.
    """

    def __init__(
        self,
        factors: CodeValue,
        lanes: int,
        vectors: int,
        zero_point: CodeValue,
        *,
        has_negatives: bool,
        is_imprecise: bool,
        has_large_scales: bool,
    ) -> None:
        self._factors, self._lanes, self._vectors = factors, lanes, vectors
        self._rounding = Rounding(has_negatives, is_imprecise)
        self._has_large_scales = has_large_scales
        base = zero_point.like(self._rounding.base)
        self._moved = base if has_negatives else base + zero_point
        self.missing = zero_point - base if has_negatives else -base
        self._room = factors.code.stack(vector(I32, lanes), 2 * MOST_VECTORS)

    def steps(
        self,
        totals: Sequence[CodeValue],
        scales: Sequence[CodeValue],
        nudges: Sequence[CodeValue | None],
    ) -> list[CodeValue]:
        """Vectors of int32 that are the output's elements but for `missing`, and not clamped.

        Parameters
        ----------
        totals
            Up to four.
        scales, nudges
            One for each of `totals`. Nudges may be None where all are 0 and negatives matter:
            sums are scaled and moved in one operation then, too.
        """
        reals = [self._scaled(*parts) for parts in zip(totals, scales, nudges, strict=True)]
        results = [real.to_integer() for real in reals]
        bits = self._certain(reals)

        def exact() -> list[CodeValue]:
            return self._replaced(totals, results, bits ^ -1)

        return when(bits.differs(-1), exact, lambda: results, likely=False)

    def _scaled(self, total: CodeValue, scale: CodeValue, nudge: CodeValue | None) -> CodeValue:
        """A vector of sums in steps of the output, to be cut off."""
        real, shift = total.to_float(), self._rounding.shift
        if nudge is None:
            real = real.times_plus(scale, shift)
        elif self._rounding.has_negatives:
            # With the sum's sign, as ties go away from zero.
            away = (total & _SIGN) | nudge.bits()
            real = real.times_plus(scale, away.as_float()) + shift
        else:
            real = real.times_plus(scale, nudge)
        return choose(real < _LARGEST, real, _LARGEST) if self._has_large_scales else real

    def _certain(self, reals: Sequence[CodeValue]) -> CodeValue:
        """A bit for each lane: whether no vector has a fraction there that may be wrong."""
        mask = self._rounding.fraction_bits
        is_certain = [(real.bits() & mask).differs(0) for real in reals]
        return reduce(and_, is_certain).bitcast(ir.IntType(self._lanes))

    def _replaced(
        self, totals: Sequence[CodeValue], results: Sequence[CodeValue], bits: CodeValue
    ) -> list[CodeValue]:
        """Results of which the lanes with a set bit are computed again.

        One by one and without a call: vectors stay in their registers.
        """
        lanes, room = self._lanes, self._room
        at_results = room + 4 * lanes * MOST_VECTORS
        for number, (total, result) in enumerate(zip(totals, results, strict=True)):
            room.store(total, number)
            at_results.store(result, number)

        def replace(lane: CodeValue, number: CodeValue) -> None:
            index = number * lanes + lane
            column = number % self._vectors * lanes + lane
            value = exactly_scaled(room.load(I32, index), self._factors.load(I64, column))
            at_results.store(value + self._moved, index)

        for_each_bit(bits, len(totals), replace)
        return [at_results.load(result.kind, n) for n, result in enumerate(results)]


def for_each_bit(bits: CodeValue, count: int, step: Callable[[CodeValue, CodeValue], None]) -> None:
    """``step(lane, number)`` for every set bit and every number below `count`."""
    code = bits.code

    def turn(carried: list[CodeValue]) -> tuple[CodeValue, list[CodeValue]]:
        left, number = carried
        step(code.call("llvm.cttz.i64", I64, left, code.constant(I1, 1)), number)
        is_last = number + 1 >= count
        remaining = choose(is_last, left & (left - 1), left)
        return remaining.differs(0), [remaining, choose(is_last, 0, number + 1)]

    loop_while(code, [bits.unsigned(I64), code.integer(0)], turn)


def exactly_scaled(total: CodeValue, factor: CodeValue) -> CodeValue:
    """A sum times a factor of either kind, in int32."""
    twice = _bounded(_rounded_twice(total, factor), _FAR)
    return choose(factor < 0, twice.narrowed(I32), _rounded_once(total, factor))


def _bounded(value: CodeValue, most: Number) -> CodeValue:
    """An int64 clamped to a magnitude."""
    most = value.like(most)
    value = choose(value < most, value, most)
    return choose(value > -most, value, -most)


def _rounded_twice(total: CodeValue, factor: CodeValue) -> CodeValue:
    """Fixed-point products; left shifts are kept from overflowing, as results are too large."""

    def field(first: int, bits: int) -> CodeValue:
        return factor.shifted_right(first) & ((1 << bits) - 1)

    multiplier, left, right = field(0, 32), field(32, 8), field(40, 7)
    # Clamped ahead of the shift, which would overflow: what lies beyond saturates anyway.
    value = _bounded(total.signed(I64), left.like(1 << 31).shifted_right(left))
    product = (value << left) * multiplier
    # Rounded here and again below, as TFLite does: rounding once gives other results at ties.
    high = (product + (1 << 30)) >> 31
    half = (right.like(1) << right).shifted_right(1)
    sign = choose(right.differs(0), high >> 63, 0)  # ties away from zero, if there is a shift
    return (high + sign + half) >> right


def _rounded_once(total: CodeValue, factor: CodeValue) -> CodeValue:
    """Products in float64, ties rounded away from zero."""
    value = total.converted("sitofp", F64) * factor.bitcast(F64)
    value = choose(value < float(_FAR), value, float(_FAR))
    value = choose(value > float(-_FAR), value, float(-_FAR))
    # One half itself would make 1 of the largest number below one half, as the sum is rounded.
    half = math.nextafter(0.5, 0.0)
    away = choose(value < 0.0, value.like(-half), value.like(half))
    return (value + away).to_integer()
