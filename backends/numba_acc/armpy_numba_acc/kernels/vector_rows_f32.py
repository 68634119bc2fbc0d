"""A float32 vector times a matrix of few columns, whose weights are rows."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# What Numba compiles has no types for mypy: everything is an integer or an address.

from __future__ import annotations

from armpy_numba_acc.llvm.pointers import bits_to_f32, load_i64, stack_memory
from armpy_numba_acc.llvm.sharing import share_items
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.vector_matrix import TOGETHER
from armpy_numba_acc.tiles.vector_matrix_f32 import finish_f32, row_sums_f32

ARGUMENTS = (
    "input",
    "output",
    "residual",
    "weights",
    "bias",
    "pitch",
    "depth",
    "columns",
    "low",
    "high",
)
"""`residual` may be 0; `pitch` is in bytes; bounds are float32."""


def make(isa: Isa):
    """Make the kernel; threads share the columns.

    Notes
    -----
    Weights are those of `armpy_numba_acc.packing.vector_matrix.by_rows`.
    """
    rows, finish = row_sums_f32(isa), finish_f32(isa)
    lanes = isa.lanes
    sums_of_vector = stack_memory(isa.vector_bytes)

    def vector_rows_f32(args, thread, num_threads):
        source, target, residual = load_i64(args, 0), load_i64(args, 1), load_i64(args, 2)
        weights, bias, pitch = load_i64(args, 3), load_i64(args, 4), load_i64(args, 5)
        depth, columns = load_i64(args, 6), load_i64(args, 7)
        low, high = bits_to_f32(load_i64(args, 8)), bits_to_f32(load_i64(args, 9))
        sums = sums_of_vector()
        begin, end = share_items((columns + lanes - 1) // lanes, thread, num_threads)
        for number in range(begin, end):
            first = number * lanes
            last = min(first + lanes, columns)
            for row in range(first, last, TOGETHER):
                at = weights + row * pitch
                rows(source, depth, at, pitch, last - row, sums + 4 * (row - first))
            other = residual + 4 * first if residual != 0 else 0
            finish(sums, bias + 4 * first, target + 4 * first, other, last - first, low, high)

    return vector_rows_f32
