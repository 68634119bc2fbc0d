"""Adds the elements of another tensor to those that are computed, for micro-kernels."""

from __future__ import annotations

from collections.abc import Sequence

from armpy_numba_acc.llvm.values import F32, I8, I32, Kind, Value, vector

_SIGN = -(1 << 31)
_HALF = 0x3F000000
"""Bits of 0.5."""


class ResidualSum:
    """The sum of two quantised tensors in the quantisation of a third.

    Parameters
    ----------
    parameters : Value
        Address of what `armpy_numba_acc.lowering.weighted_u8.Residual` packs.
    lanes : int
        Of a vector.
    missing : Value, int32
        What is missing in the first summand's elements, see `ExactScaling`.
    low, high : Value, int32
        Bounds of the first summand.
    has_negatives : bool
        Whether sums below the zero point are not all clamped to it.

    Notes
    -----
    Computed in float32 and rounded, ties away from zero, as
    `armpy_numba_acc.tiles.expressions` does it where nothing is fused: where fixed-point
    arithmetic rounds a number the other way that is next to a tie, an element is off by one.
    """

    def __init__(
        self,
        parameters: Value,
        lanes: int,
        missing: Value,
        low: Value,
        high: Value,
        *,
        has_negatives: bool,
    ) -> None:
        self._lanes, self._has_negatives = lanes, has_negatives

        def number(index: int, kind: Kind = I32) -> Value:
            return parameters.load(kind, index)

        self._low, self._high = ((bound - missing).splat(lanes) for bound in (low, high))
        self._zero = (number(0) - missing).splat(lanes)
        self._other_zero = number(1).splat(lanes)
        self._scale, self._other_scale = (number(index, F32).splat(lanes) for index in (2, 3))
        zero_point = number(4)
        self._first = (zero_point.to_float() + 0.5).splat(lanes)
        self.missing = zero_point if has_negatives else zero_point.like(0)

    def steps(self, elements: Sequence[Value], others: Sequence[Value]) -> list[Value]:
        """Vectors of int32 that are the sum's elements but for `missing`, and not clamped.

        Parameters
        ----------
        elements : sequence of Value, int32 vectors
            As `ExactScaling` gives them.
        others : sequence of Value
            Addresses of as many bytes each as there are lanes.
        """
        return [self._sum(*pair) for pair in zip(elements, others, strict=True)]

    def _sum(self, element: Value, place: Value) -> Value:
        element = element.call("smax", self._low).call("smin", self._high)
        real = (element - self._zero).to_float()
        other = place.load(vector(I8, self._lanes)).unsigned(I32)
        scaled = (other - self._other_zero).to_float()
        if not self._has_negatives:
            total = real.times_plus(self._scale, self._first)
            return scaled.times_plus(self._other_scale, total).to_integer()
        total = real.times_plus(self._scale, scaled * self._other_scale)
        away = (total.bits() & _SIGN) | _HALF
        return (total + away.as_float()).to_integer()
