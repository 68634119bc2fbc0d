"""A vector of bytes times a matrix: its products and its finishes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from armpy_numba_acc.llvm.arithmetic.dots import SignedByteProducts, dot_products
from armpy_numba_acc.llvm.calls import CallFields
from armpy_numba_acc.llvm.primitives import Definition
from armpy_numba_acc.llvm.values import F32, I8, I32, I64, CodeValue, vector
from armpy_numba_acc.machine.calls.vectors import VectorCall, VectorMatrixU8
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.packing.vector_matrix import AT_ONCE
from armpy_numba_acc.tiles.finish.byte_sum import NAME, byte_sum_definition
from armpy_numba_acc.tiles.finish.exact_scaling import ExactScaling
from armpy_numba_acc.tiles.finish.requantize import BytePacker, ByteStore, part_of
from armpy_numba_acc.tiles.vector_matrix.engine import VectorFinish, VectorProducts


class VectorByteProducts(VectorProducts):
    """Products of bytes in groups of four.

    The input's elements are changed by a vector in memory because LLVM would change groups before
    it spreads them if it knew that all are changed alike: from another kind of register they are
    spread slowly.
    """

    element = I32

    def __init__(self, isa: Isa, made_for: VectorCall, call: CallFields) -> None:
        super().__init__(isa, made_for, call)
        is_signed = isinstance(made_for, VectorMatrixU8) and made_for.has_signed_bytes
        self._dots = SignedByteProducts(isa) if is_signed else dot_products(isa)
        self.bytes_per_vector = self._dots.bytes_per_vector
        self._flip = call.flip.load(self.kind)

    def spread(self, place: CodeValue) -> Any:
        return self._changed(place.load(I32, align=1).splat(self.isa.lanes))

    def elements(self, place: CodeValue) -> Any:
        return self._changed(place.load(self.kind, align=1))

    def last_elements(self, place: CodeValue, count: CodeValue) -> Any:
        """The elements, and the bytes after them."""
        return self.elements(place)

    def weights(self, line: CodeValue, j: int) -> Any:
        return self._dots.weights(line, j)

    def add(self, total: CodeValue, elements: Any, weights: Any) -> CodeValue:
        return self._dots.add(total, elements, weights)

    def _changed(self, words: CodeValue) -> Any:
        return self._dots.elements(words ^ self._flip)


class VectorByteFinish(VectorFinish):
    """``clamp(round(sum * scale ± nudge) + zero_point, low, high)``, with exact scaling."""

    made_for: VectorMatrixU8

    @classmethod
    def definitions(cls, isa: Isa, made_for: VectorCall) -> tuple[Definition, ...]:
        is_called = isinstance(made_for, VectorMatrixU8) and made_for.has_correction
        return (byte_sum_definition(isa),) if is_called else ()

    def begin(self) -> CodeValue:
        """Return the start of all sums."""
        if not self.made_for.has_correction:
            return super().begin()
        factor: CodeValue = self.call.correction
        return factor * factor.code.call(NAME, I64, self.call.matrix.source, self.call.depth)

    def write(
        self,
        column: CodeValue,
        totals: Sequence[CodeValue],
        begun: CodeValue,
        count: CodeValue | None,
    ) -> None:
        isa, call = self.isa, self.call
        step, target = call.factor_step, call.matrix.target + column
        skipped = column * step * 4
        scales, nudges = call.scales + skipped, call.nudges + skipped
        if self.made_for.has_correction:
            added = begun.narrowed(I32).splat(isa.lanes)
            totals = [total + added for total in totals]
        flip = call.out_flip.narrowed(I8).splat(isa.vector_bytes)
        for first in range(0, len(totals), AT_ONCE):
            some = totals[first : first + AT_ONCE]
            # All can do what few layers need and what costs little.
            exact = ExactScaling(
                call.exact + skipped * 2 + step * (first * isa.lanes * 8),
                isa.lanes,
                len(some),
                call.zero_point.narrowed(I32),
                has_negatives=True,
                is_imprecise=True,
                has_large_scales=bool(self.made_for.has_large_scales),
            )
            packer = BytePacker(isa, exact.missing, call.low, call.high, has_bounds=True)
            numbers = range(first, first + len(some))
            moves: list[CodeValue] | list[None] = [None] * len(some)
            if self.made_for.has_nudges:
                moves = self._factors(nudges, numbers)
            steps = exact.steps(some, self._factors(scales, numbers), moves)
            packed = packer.elements(steps) ^ flip
            place = target + first * isa.lanes
            if count is None:
                place.store(packed)
            else:
                ByteStore(isa, count, isa.lanes).store(part_of(packed, 0, isa.lanes), place)

    def _factors(self, address: CodeValue, numbers: Sequence[int]) -> list[CodeValue]:
        kind, step = vector(F32, self.isa.lanes), self.call.factor_step
        return [address.load(kind, step * number) for number in numbers]
