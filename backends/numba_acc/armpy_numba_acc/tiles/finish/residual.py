"""Adds the elements of another tensor to those that are computed, for micro-kernels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_

from llvmlite import ir

from armpy_numba_acc.llvm.control import when
from armpy_numba_acc.llvm.values import F32, I8, I32, CodeValue, Kind, clamp, vector
from armpy_numba_acc.tiles.elementwise.fixed_expressions import exact_byte_sum
from armpy_numba_acc.tiles.elementwise.functions import nearest_and_rest
from armpy_numba_acc.tiles.finish.exact_scaling import MOST_VECTORS, for_each_bit

_FAR = 1 << 20
"""Far outside of a byte's range."""


class ResidualSum:
    """The sum of two quantised tensors in the quantisation of a third.

    Computed in float32; a result near a tie that TFLite's fixed-point arithmetic may round the
    other way is computed again, as `armpy_numba_acc.tiles.elementwise.fixed_expressions` does it
    where nothing is fused, but lane by lane: that is seldom run, and has to be short.

    Parameters
    ----------
    parameters : CodeValue
        Address of what `armpy_numba_acc.lowering.weighted_u8.Residual` packs.
    lanes : int
        Of a vector.
    missing : CodeValue, int32
        The correction of the first summand's elements, see `ExactScaling`.
    low, high : CodeValue, int32
        Bounds of the first summand.
    """

    def __init__(
        self, parameters: CodeValue, lanes: int, missing: CodeValue, low: CodeValue, high: CodeValue
    ) -> None:
        self._lanes, self._parameters = lanes, parameters

        def number(index: int, kind: Kind = I32) -> CodeValue:
            return parameters.load(kind, index)

        self._low, self._high = ((bound - missing).splat(lanes) for bound in (low, high))
        self._zero = (number(0) - missing).splat(lanes)
        self._other_zero = number(1).splat(lanes)
        self._zero_point = number(2)
        self._scale, self._other_scale, margin = (
            number(index, F32).splat(lanes) for index in (5, 6, 7)
        )
        self._most = 0.5 - margin
        self._room = parameters.code.stack(vector(I32, lanes), 3 * MOST_VECTORS)

    def steps(self, elements: Sequence[CodeValue], others: Sequence[CodeValue]) -> list[CodeValue]:
        """Vectors of int32 that are the sum's elements, not clamped.

        Parameters
        ----------
        elements
            Up to four, as `ExactScaling` gives them.
        others
            Addresses of as many bytes each as there are lanes.
        """
        pairs = [self._centred(*pair) for pair in zip(elements, others, strict=True)]
        zero_point = self._zero_point.to_float().splat(self._lanes)
        results, certain = [], []
        for element, other in pairs:
            scaled = other.to_float() * self._other_scale
            total = element.to_float().times_plus(self._scale, scaled)
            nearest, rest = nearest_and_rest(total, zero_point)
            results.append(nearest)
            certain.append(abs(rest) <= self._most)
        bits = reduce(and_, certain).bitcast(ir.IntType(self._lanes))

        def exact() -> list[CodeValue]:
            return self._replaced(pairs, results, bits ^ -1)

        return when(bits.differs(-1), exact, lambda: results, likely=False)

    def _centred(self, element: CodeValue, place: CodeValue) -> tuple[CodeValue, CodeValue]:
        """Both summands less their zero points, as int32."""
        element = element.call("smax", self._low).call("smin", self._high)
        other = place.load(vector(I8, self._lanes)).unsigned(I32)
        return element - self._zero, other - self._other_zero

    def _replaced(
        self,
        pairs: Sequence[tuple[CodeValue, CodeValue]],
        results: Sequence[CodeValue],
        bits: CodeValue,
    ) -> list[CodeValue]:
        """Results of which the lanes with a set bit are computed again."""
        lanes, size = self._lanes, 4 * self._lanes * MOST_VECTORS
        summands = self._room, self._room + size
        at_results = self._room + 2 * size
        for number, (pair, result) in enumerate(zip(pairs, results, strict=True)):
            for room, value in zip((*summands, at_results), (*pair, result), strict=True):
                room.store(value, number)
        numbers = [self._parameters.load(F32, 8 + index) for index in range(9)]

        def replace(lane: CodeValue, number: CodeValue) -> None:
            index = number * lanes + lane
            element, other = (room.load(I32, index) for room in summands)
            steps = clamp(exact_byte_sum(element, other, numbers), -_FAR, _FAR)
            at_results.store(steps.narrowed(I32) + self._zero_point, index)

        for_each_bit(bits, len(pairs), replace)
        return [at_results.load(result.kind, n) for n, result in enumerate(results)]
