"""Linear interpolation of vectors: blends two with two weights."""

from __future__ import annotations

from functools import cache

from armpy_numba_acc.llvm.control import when
from armpy_numba_acc.llvm.primitives import NOTHING, WORD, Primitive, primitive
from armpy_numba_acc.llvm.values import F32, I32, Code, CodeValue, first_lanes, vector
from armpy_numba_acc.machine.isa import Isa


@cache
def make_blend(isa: Isa, is_float: bool) -> Primitive:
    """Make ``blend(target, first, second, first_weight, second_weight, count, pitch)``.

    ``first * first_weight + second * second_weight`` of one vector of float32 or int32, read
    whole; the first `count` elements are written. With a pitch, in bytes, there are others that
    far after both; the four products are rounded and added in the reference's order.
    """
    kind = vector(F32 if is_float else I32, isa.lanes)
    weight = "float32" if is_float else "int32"

    @primitive(NOTHING, WORD, WORD, WORD, weight, weight, WORD, WORD)
    def blend(
        code: Code,
        target: CodeValue,
        first: CodeValue,
        second: CodeValue,
        first_weight: CodeValue,
        second_weight: CodeValue,
        count: CodeValue,
        pitch: CodeValue,
    ) -> None:
        x, y = first.load(kind), second.load(kind)
        left, right = first_weight.splat(isa.lanes), second_weight.splat(isa.lanes)

        def in_order() -> list[CodeValue]:
            below = (first + pitch).load(kind), (second + pitch).load(kind)
            return [x * left + below[0] * left + y * right + below[1] * right]

        def at_once() -> list[CodeValue]:
            return [y.times_plus(right, x * left) if is_float else x * left + y * right]

        (total,) = when(pitch.differs(0), in_order, at_once)
        target.store(total, mask=first_lanes(count, isa.lanes))

    return blend
