"""A vector of bytes times a matrix."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# What Numba compiles has no types for mypy: everything is an integer or an address.

from __future__ import annotations

from armpy_numba_acc.llvm.compiler import Function, Linked
from armpy_numba_acc.llvm.dots import dot_products
from armpy_numba_acc.llvm.pointers import load_i64
from armpy_numba_acc.llvm.primitives import defined
from armpy_numba_acc.llvm.sharing import share_vectors
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.packing.vector_matrix import PANEL
from armpy_numba_acc.tiles.byte_sum import byte_sum_definition, call_byte_sum
from armpy_numba_acc.tiles.vector_matrix_u8 import (
    KERNEL_ARGUMENTS,
    Traits,
    column_vectors_u8,
    output_of,
)

ARGUMENTS = KERNEL_ARGUMENTS


def make(isa: Isa, has_correction: int, has_nudges: int, has_large_scales: int) -> Function:
    """Make the kernel, see `Traits`; threads share the columns.

    Notes
    -----
    Weights are those of `armpy_numba_acc.packing.vector_matrix.by_columns`, in groups of four.
    """
    traits = Traits(bool(has_correction), bool(has_nudges), bool(has_large_scales))
    panel, single = column_vectors_u8(isa, PANEL, traits), column_vectors_u8(isa, 1, traits)
    lanes, vector_bytes = isa.lanes, isa.vector_bytes
    step_bytes = dot_products(isa).bytes_per_vector

    def vector_matrix_u8(args, thread, num_threads):
        source, weights, flip = load_i64(args, 0), load_i64(args, 2), load_i64(args, 7)
        steps, columns, correction = load_i64(args, 9), load_i64(args, 10), load_i64(args, 11)
        if has_correction:
            correction *= call_byte_sum(source, load_i64(args, 8))
        number, last = share_vectors((columns + lanes - 1) // lanes, PANEL, thread, num_threads)
        whole = min(last, columns // lanes)
        line_bytes = vector_bytes + steps * step_bytes
        while number < last:
            at = weights + number * line_bytes
            output = output_of(args, number * lanes, columns - number * lanes)
            if number + PANEL <= whole:
                panel(source, flip, steps, at, correction, output)
                number += PANEL
            else:
                single(source, flip, steps, at, correction, output)
                number += 1

    if not has_correction:
        return vector_matrix_u8
    return Linked(vector_matrix_u8, defined(byte_sum_definition(isa)))
