"""Sums of neighbouring bytes."""

from __future__ import annotations

from functools import partial

from armpy_numba_acc.llvm.control import loop, when
from armpy_numba_acc.llvm.primitives import Definition
from armpy_numba_acc.llvm.values import I8, I32, I64, Code, CodeValue, first_lanes, suffix, vector
from armpy_numba_acc.machine.isa import Isa

NAME = "armpy_byte_sum"


def byte_sum_definition(isa: Isa) -> Definition:
    """The function `NAME` of an address and a count: the sum of so many unsigned bytes.

    Nothing after them is read.
    """
    return Definition(NAME, 2, partial(_write, isa), returns=True)


def _write(isa: Isa, code: Code, address: CodeValue, count: CodeValue) -> CodeValue:
    lanes = isa.vector_bytes
    kind, whole = vector(I8, lanes), count & -lanes

    def add_vector(number: CodeValue, totals: list[CodeValue]) -> list[CodeValue]:
        return [totals[0] + _sum(address.load(kind, number, align=1))]

    def add_byte(number: CodeValue, totals: list[CodeValue]) -> list[CodeValue]:
        return [totals[0] + (address + whole).load(I8, number).unsigned(I64)]

    (total,) = loop(code, whole / lanes, [code.integer(0)], add_vector)
    left = count - whole
    if isa.vector_bytes < 64:
        return loop(code, left, [total], add_byte)[0]

    def masked() -> list[CodeValue]:
        return [total + _sum((address + whole).load(kind, mask=first_lanes(left, lanes)))]

    return when(left > 0, masked, lambda: [total])[0]


def _sum(values: CodeValue) -> CodeValue:
    """Sum of a vector's bytes."""
    wide = values.unsigned(I32)
    name = f"llvm.vector.reduce.add.{suffix(wide.kind)}"
    return wide.code.call(name, I32, wide).unsigned(I64)
