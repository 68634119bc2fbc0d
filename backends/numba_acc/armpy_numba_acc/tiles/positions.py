"""Arg-max and arg-min of a few bytes in one vector."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from armpy_numba_acc.llvm.primitives import WORD, primitive
from armpy_numba_acc.llvm.values import I1, I8, I64, Code, CodeValue, choose, vector
from armpy_numba_acc.machine.call import Pointer
from armpy_numba_acc.machine.isa import Isa


@cache
def make_position_in_short_run(isa: Isa, is_max: bool) -> Callable[[Pointer, int], int]:
    """Make ``position(address, count)``: where the first of the best bytes is.

    One vector of bytes is read; `count` is 1 to as many as it has.
    """
    width = isa.vector_bytes
    kind = vector(I8, width)
    name = "umax" if is_max else "umin"

    @primitive(WORD, WORD, WORD)
    def position(code: Code, address: CodeValue, count: CodeValue) -> CodeValue:
        is_inside = code.numbers(I8, range(width)).is_below(count.narrowed(I8).splat(width))
        values = choose(is_inside, address.load(kind), 0 if is_max else 255)
        best = code.call(f"llvm.vector.reduce.{name}.v{width}i8", I8, values)
        # Lanes after the run may equal the best one, but come after the first that does.
        bits = values.equals(best.splat(width)).mask_bits()
        return code.call("llvm.cttz.i64", I64, bits.unsigned(I64), code.constant(I1, 1))

    return position
