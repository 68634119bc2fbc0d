"""Looks bytes up in a table of 256."""

from __future__ import annotations

from armpy_numba_acc.llvm.primitives import Definition, defined
from armpy_numba_acc.llvm.values import I8, I64, Code, CodeValue, choose, vector
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.elementwise.elements import for_each_vector
from armpy_numba_acc.tiles.elementwise.loop import NAME, NUM_ARGUMENTS

_WIDE = vector(I8, 64)


def byte_table_definition(isa: Isa) -> str:
    """Write the function that looks up neighbouring bytes.

    Returns
    -------
    str
        In LLVM's language, with the arguments of `elementwise_definition`'s: the first address is
        that of the bytes, the second that of the table; the last one is not used.
    """
    has_permute = isa.has_byte_permute

    def write(code: Code, *arguments: CodeValue) -> None:
        source, table, _, target, count, _ = arguments
        quarters = [table.load(_WIDE, n) for n in range(4)] if has_permute else []

        def compute(lanes: int, index: CodeValue, mask: CodeValue | None) -> None:
            if has_permute:
                permuted = _permuted(quarters, (source + index).load(_WIDE, mask=mask))
                (target + index).store(permuted, mask=mask)
            else:  # one by one: nothing is left to mask
                number = (source + index).load(I8).unsigned(I64)
                (target + index).store(table.load(I8, number))

        for_each_vector(isa, 64 if has_permute else 1, count, compute)

    return defined(Definition(NAME, NUM_ARGUMENTS, write))


def _permuted(quarters: list[CodeValue], numbers: CodeValue) -> CodeValue:
    """The table's entries of 64 bytes: from one half or the other by the top bit."""
    name = "llvm.x86.avx512.vpermi2var.qi.512"
    low, high = (
        numbers.code.call(name, _WIDE, quarters[n], numbers, quarters[n + 1]) for n in (0, 2)
    )
    return choose(numbers < 0, high, low)
