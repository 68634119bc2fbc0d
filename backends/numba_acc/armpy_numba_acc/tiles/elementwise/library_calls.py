"""Scalar calls of the C library, for the few elements that vectors would take too much for."""

from __future__ import annotations

from armpy_numba_acc.llvm.control import loop, when
from armpy_numba_acc.llvm.values import F32, F64, I8, CodeValue


def from_library(name: str, x: CodeValue, mask: CodeValue, others: CodeValue) -> CodeValue:
    """A function of the C library where a mask is set, and another value elsewhere.

    Parameters
    ----------
    name
        Of a function of float64, such as ``sin``.
    x
        float32.
    mask
        Vectors where no bit is set skip all this.
    others
        float32.
    """
    code = x.code
    source, chosen, result = code.stack(x.kind), code.stack(x.kind), code.stack(x.kind)
    result.store(others)

    def one_by_one() -> list[CodeValue]:
        source.store(x)
        chosen.store(mask.unsigned(I8))
        return loop(code, code.integer(x.count), [], step)

    def step(number: CodeValue, values: list[CodeValue]) -> list[CodeValue]:
        def call() -> list[CodeValue]:
            real = code.call(name, F64, source.load(F32, number).to_double())
            result.store(real.to_single(), number)
            return []

        return when(chosen.load(I8, number).differs(0), call)

    when(mask.any(), one_by_one, likely=False)
    return result.load(x.kind)
