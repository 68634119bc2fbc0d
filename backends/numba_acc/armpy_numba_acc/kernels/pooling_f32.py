"""Pooling in float32."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"
# What Numba compiles has no types for mypy: everything is an integer or an address.

from __future__ import annotations

import numpy as np
from numba import njit

from armpy_numba_acc.llvm.compiler import Linked
from armpy_numba_acc.llvm.pointers import load_i64, store_f32
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles import windows
from armpy_numba_acc.tiles.pooling import pooling_block_f32

ARGUMENTS = (*windows.ARGUMENTS, "kernel_h", "kernel_w", "low", "high")
"""Slots come tap by tap; the first two are the size of a window."""

_FIRST = len(windows.ARGUMENTS)
_ONE = np.float32(1)


@njit(inline="always")
def _prepare(args, factors, y, x):
    """Write the reciprocal of how many elements each window has within the image."""
    height = windows.count_inside(y, load_i64(args, _FIRST), load_i64(args, 8))
    for j in range(windows.tile_columns(args)):
        start = x + j * load_i64(args, 13)
        width = windows.count_inside(start, load_i64(args, _FIRST + 1), load_i64(args, 9))
        store_f32(factors, 2 * j, _ONE / np.float32(max(height * width, 1)))


def make(isa: Isa, lanes: int, columns: int, parts: int, algorithm: str) -> Linked:
    """Make the kernel; see `pooling_block_f32`."""
    block = pooling_block_f32(lanes, columns, parts, algorithm)
    return Linked(windows.window_kernel(_prepare), block)
