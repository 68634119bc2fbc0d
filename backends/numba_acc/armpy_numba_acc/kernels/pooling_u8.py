"""Pooling of 8-bit elements."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator,call-arg,var-annotated"
# What Numba compiles has no types for mypy: everything is an integer or an address.

from __future__ import annotations

import numpy as np
from numba import int32, njit

from armpy_numba_acc.llvm.compiler import Linked
from armpy_numba_acc.llvm.pointers import bits_to_f32, load_i64, store_f32, store_i32
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles import windows
from armpy_numba_acc.tiles.pooling import max_block_u8, mean_block_u8

ARGUMENTS = (
    *windows.ARGUMENTS,
    "kernel_h",
    "kernel_w",
    "zero_point",
    "in_zero_point",
    "scale",
    "low",
    "high",
)
"""Slots come tap by tap; the first two are the size of a window. Zero points and scale, of the
input relative to the output, are for means."""

_FIRST = len(windows.ARGUMENTS)


@njit(inline="always")
def _prepare(args, factors, y, x):
    """Write for each window what takes its sum to its mean."""
    height = windows.count_inside(y, load_i64(args, _FIRST), load_i64(args, 8))
    scale = bits_to_f32(load_i64(args, _FIRST + 4))
    for j in range(windows.tile_columns(args)):
        start = x + j * load_i64(args, 13)
        width = windows.count_inside(start, load_i64(args, _FIRST + 1), load_i64(args, 9))
        count = max(height * width, 1)
        store_f32(factors, 2 * j, scale / np.float32(count))
        store_i32(factors, 2 * j + 1, int32(-count * load_i64(args, _FIRST + 3)))


def make(isa: Isa, width: int, columns: int, algorithm: str, has_words: int) -> Linked:
    """Make the kernel; `algorithm` is ``max`` or ``average``."""
    if algorithm == "max":
        return Linked(windows.window_kernel(), max_block_u8(width, columns))
    block = mean_block_u8(width, columns, bool(has_words))
    return Linked(windows.window_kernel(_prepare), block)
