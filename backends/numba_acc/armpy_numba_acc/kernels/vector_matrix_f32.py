"""A float32 vector times a matrix."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# What Numba compiles has no types for mypy: everything is an integer or an address.

from __future__ import annotations

from armpy_numba_acc.llvm.pointers import bits_to_f32, load_i64
from armpy_numba_acc.llvm.sharing import share_vectors
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.packing.vector_matrix import PANEL
from armpy_numba_acc.tiles.vector_matrix_f32 import column_vectors_f32

ARGUMENTS = ("input", "output", "residual", "weights", "depth", "columns", "low", "high")
"""`residual` may be 0; bounds are float32."""


def make(isa: Isa):
    """Make the kernel; threads share the columns.

    Notes
    -----
    Weights are those of `armpy_numba_acc.packing.vector_matrix.by_columns`. What is bound by
    reading them takes as long as they are: no zeros fill up columns but those of one vector.
    """
    panel, single = column_vectors_f32(isa, PANEL), column_vectors_f32(isa, 1)
    lanes, vector_bytes = isa.lanes, isa.vector_bytes

    def vector_matrix_f32(args, thread, num_threads):
        source, target, residual = load_i64(args, 0), load_i64(args, 1), load_i64(args, 2)
        weights, depth, columns = load_i64(args, 3), load_i64(args, 4), load_i64(args, 5)
        low, high = bits_to_f32(load_i64(args, 6)), bits_to_f32(load_i64(args, 7))
        number, last = share_vectors((columns + lanes - 1) // lanes, PANEL, thread, num_threads)
        whole = min(last, columns // lanes)
        line_bytes = (1 + depth) * vector_bytes
        while number < last:
            at = weights + number * line_bytes
            place = target + number * vector_bytes
            other = residual + number * vector_bytes if residual != 0 else 0
            count = columns - number * lanes
            if number + PANEL <= whole:
                panel(source, depth, at, place, other, count, low, high)
                number += PANEL
            else:
                single(source, depth, at, place, other, count, low, high)
                number += 1

    return vector_matrix_f32
