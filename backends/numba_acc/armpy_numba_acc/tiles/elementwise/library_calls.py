"""Scalar calls of the C library, for the few elements that vectors would take too much for."""

from __future__ import annotations

from collections.abc import Sequence

from armpy_numba_acc.llvm.control import loop, when
from armpy_numba_acc.llvm.values import F32, F64, I8, CodeValue


def from_library(
    name: str, inputs: Sequence[CodeValue], mask: CodeValue, others: CodeValue
) -> CodeValue:
    """A function of the C library where a mask is set, and another value elsewhere.

    Parameters
    ----------
    name
        Of a function of float64, such as ``sin``.
    inputs
        float32, one for each argument.
    mask
        Vectors where no bit is set skip all this.
    others
        float32.
    """
    code, kind = others.code, others.kind
    sources = [code.stack(kind) for _ in inputs]
    chosen, result = code.stack(kind), code.stack(kind)
    result.store(others)

    def one_by_one() -> list[CodeValue]:
        for source, values in zip(sources, inputs, strict=True):
            source.store(values)
        chosen.store(mask.unsigned(I8))
        return loop(code, code.integer(others.count), [], step)

    def step(number: CodeValue, values: list[CodeValue]) -> list[CodeValue]:
        def call() -> list[CodeValue]:
            arguments = [source.load(F32, number).to_double() for source in sources]
            result.store(code.call(name, F64, *arguments).to_single(), number)
            return []

        return when(chosen.load(I8, number).differs(0), call)

    when(mask.any(), one_by_one, likely=False)
    return result.load(kind)
