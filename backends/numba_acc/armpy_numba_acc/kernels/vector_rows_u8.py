"""A vector of bytes times a matrix of few columns, whose weights are rows."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# What Numba compiles has no types for mypy: everything is an integer or an address.

from __future__ import annotations

from armpy_numba_acc.llvm.compiler import Function, Linked
from armpy_numba_acc.llvm.pointers import load_i64, stack_memory
from armpy_numba_acc.llvm.primitives import defined
from armpy_numba_acc.llvm.sharing import share_items
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.byte_sum import byte_sum_definition, call_byte_sum
from armpy_numba_acc.tiles.vector_matrix import TOGETHER
from armpy_numba_acc.tiles.vector_matrix_u8 import (
    KERNEL_ARGUMENTS,
    Traits,
    finish_u8,
    output_of,
    row_sums_u8,
)

ARGUMENTS = (*KERNEL_ARGUMENTS, "bias", "pitch")
"""Behind the common ones the address of the bias, and bytes from one output's weights to the next
one's."""

_FIRST = len(KERNEL_ARGUMENTS)


def make(isa: Isa, has_correction: int, has_nudges: int, has_large_scales: int) -> Function:
    """Make the kernel, see `Traits`; threads share the columns.

    Notes
    -----
    Weights are those of `armpy_numba_acc.packing.vector_matrix.by_rows`, in groups of four.
    """
    traits = Traits(bool(has_correction), bool(has_nudges), bool(has_large_scales))
    rows, finish = row_sums_u8(isa), finish_u8(isa, traits)
    lanes = isa.lanes
    sums_of_vector = stack_memory(isa.vector_bytes)

    def vector_rows_u8(args, thread, num_threads):
        source, weights, flip = load_i64(args, 0), load_i64(args, 2), load_i64(args, 7)
        steps, columns, correction = load_i64(args, 9), load_i64(args, 10), load_i64(args, 11)
        bias, pitch = load_i64(args, _FIRST), load_i64(args, _FIRST + 1)
        if has_correction:
            correction *= call_byte_sum(source, load_i64(args, 8))
        sums = sums_of_vector()
        begin, end = share_items((columns + lanes - 1) // lanes, thread, num_threads)
        for number in range(begin, end):
            first = number * lanes
            last = min(first + lanes, columns)
            for row in range(first, last, TOGETHER):
                at = weights + row * pitch
                rows(source, flip, steps, at, pitch, last - row, sums + 4 * (row - first))
            output = output_of(args, first, last - first)
            finish(sums, bias + 4 * first, correction, output)

    return (
        Linked(vector_rows_u8, defined(byte_sum_definition(isa)))
        if has_correction
        else vector_rows_u8
    )
