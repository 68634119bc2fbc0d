"""A vector of bytes times a matrix of few columns, whose weights are rows."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# What Numba compiles has no types for mypy: everything is an integer or an address.

from __future__ import annotations

from armpy_numba_acc.codegen.byte_sum import byte_sum_definition, call_byte_sum
from armpy_numba_acc.codegen.compiler import Function, Linked
from armpy_numba_acc.codegen.isa import Isa
from armpy_numba_acc.codegen.pointers import load_i64, stack_memory
from armpy_numba_acc.codegen.sharing import share_items
from armpy_numba_acc.codegen.vector_matrix import TOGETHER
from armpy_numba_acc.codegen.vector_matrix_u8 import Traits, finish_u8, row_sums_u8

ARGUMENTS = (
    "input",
    "output",
    "weights",
    "scales",
    "nudges",
    "exact",
    "factor_step",
    "flip",
    "depth",
    "steps",
    "columns",
    "correction",
    "zero_point",
    "low",
    "high",
    "out_flip",
    "bias",
    "pitch",
)
"""As of `armpy_numba_acc.kernels.vector_matrix_u8`; then the address of the bias, and bytes from
one output's weights to the next one's."""


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
        source, target, weights = load_i64(args, 0), load_i64(args, 1), load_i64(args, 2)
        factor_step, flip, steps = load_i64(args, 6), load_i64(args, 7), load_i64(args, 9)
        columns, correction = load_i64(args, 10), load_i64(args, 11)
        bias, pitch = load_i64(args, 16), load_i64(args, 17)
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
            skipped = 4 * first * factor_step
            finish(
                sums,
                bias + 4 * first,
                correction,
                load_i64(args, 3) + skipped,
                load_i64(args, 4) + skipped,
                load_i64(args, 5) + 2 * skipped,
                factor_step,
                target + first,
                last - first,
                load_i64(args, 12),
                load_i64(args, 13),
                load_i64(args, 14),
                load_i64(args, 15),
            )

    return Linked(vector_rows_u8, byte_sum_definition(isa)) if has_correction else vector_rows_u8
