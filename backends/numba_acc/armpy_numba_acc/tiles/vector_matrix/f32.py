"""A float32 vector times a matrix: its products and its finishes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from armpy_numba_acc.llvm.control import when
from armpy_numba_acc.llvm.values import F32, CodeValue, at_least, at_most, first_lanes
from armpy_numba_acc.tiles.vector_matrix.engine import VectorFinish, VectorProducts


class VectorRealProducts(VectorProducts):
    """Products of float32."""

    element = F32
    is_ordered = True

    def spread(self, place: CodeValue) -> CodeValue:
        return place.load(F32).splat(self.isa.lanes)

    def weights(self, line: CodeValue, j: int) -> CodeValue:
        return line.load(self.kind, j)

    def add(self, total: CodeValue, elements: CodeValue, weights: CodeValue) -> CodeValue:
        return elements.times_plus(weights, total)


class VectorRealFinish(VectorFinish):
    """``clamp(sum + residual, low, high)``."""

    def write(
        self,
        column: CodeValue,
        totals: Sequence[CodeValue],
        begun: CodeValue,
        count: CodeValue | None,
    ) -> None:
        lanes, call = self.isa.lanes, self.call
        low, high = call.low.splat(lanes), call.high.splat(lanes)
        mask = None if count is None else first_lanes(count, lanes)
        target, residual = (start + column * 4 for start in (call.matrix.target, call.residual))
        has_residual = call.residual.differs(0)

        def other(j: int) -> list[CodeValue]:
            return [residual.load(low.kind, j, mask=mask)]

        for j, total in enumerate(totals):
            (added,) = when(has_residual, partial(other, j), lambda: [low.like(0)])
            value = at_least(low, total + added)  # NaN stays NaN
            target.store(at_most(high, value), j, mask=mask)
