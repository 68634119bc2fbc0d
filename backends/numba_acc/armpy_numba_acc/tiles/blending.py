"""Linear interpolation of vectors: blends two with two weights."""

from __future__ import annotations

from functools import cache

from numba import types

from armpy_numba_acc.llvm.primitives import NOTHING, WORD, Primitive, primitive
from armpy_numba_acc.llvm.values import F32, I32, Code, Value, first_lanes, vector
from armpy_numba_acc.machine.isa import Isa


@cache
def make_blend(isa: Isa, is_float: bool) -> Primitive:
    """Make ``blend(target, first, second, first_weight, second_weight, count)``.

    Notes
    -----
    ``first * first_weight + second * second_weight`` of one vector of float32 or int32, read
    whole; the first `count` elements are written.
    """
    kind = vector(F32 if is_float else I32, isa.lanes)
    weight = types.float32 if is_float else types.int32

    @primitive(NOTHING, WORD, WORD, WORD, weight, weight, WORD)
    def blend(
        code: Code,
        target: Value,
        first: Value,
        second: Value,
        first_weight: Value,
        second_weight: Value,
        count: Value,
    ) -> None:
        x, y = first.load(kind), second.load(kind)
        left, right = first_weight.splat(isa.lanes), second_weight.splat(isa.lanes)
        total = y.times_plus(right, x * left) if is_float else x * left + y * right
        target.store(total, mask=first_lanes(count, isa.lanes))

    return blend
