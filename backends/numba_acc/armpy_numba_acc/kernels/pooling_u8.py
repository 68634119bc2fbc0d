"""Pooling of 8-bit elements."""

from __future__ import annotations

import numpy as np
from numpy import int32

from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.compiler import LinkedKernel
from armpy_numba_acc.llvm.pointers import store_f32, store_i32
from armpy_numba_acc.llvm.primitives import inlined
from armpy_numba_acc.machine.call import Pointer
from armpy_numba_acc.machine.calls.windows import SMALL, PoolingU8
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.windows.loop import num_inside, tile_columns, window_kernel
from armpy_numba_acc.tiles.windows.pooling import max_block_u8, mean_block_u8, small_mean_block_u8

_read = reader(PoolingU8)


@inlined
def _prepare(args: int, factors: Pointer, y: int, x: int) -> None:
    """Write for each window what takes its sum to its mean."""
    call = _read(args)
    for j in range(tile_columns(args)):
        start = x + j * call.tiles.stride_w
        count = num_inside(call.tiles, y, start, call.kernel_h, call.kernel_w)
        store_f32(factors, 2 * j, call.scale / np.float32(count))
        store_i32(factors, 2 * j + 1, int32(-count * call.in_zero_point))


@inlined
def _prepare_small(args: int, factors: Pointer, y: int, x: int) -> None:
    """The same for means in 16 bits, see `small_mean_block_u8`."""
    call = _read(args)
    for j in range(tile_columns(args)):
        start = x + j * call.tiles.stride_w
        count = num_inside(call.tiles, y, start, call.kernel_h, call.kernel_w)
        store_i32(factors, 2 * j, int32((32768 // count + 1) | (count & ~1) << 16))
        store_i32(factors, 2 * j + 1, int32(-count * call.in_zero_point))


def make(isa: Isa, width: int, columns: int, algorithm: str, has_words: int) -> LinkedKernel:
    """Make the kernel for the record's parameters."""
    if algorithm == "max":
        return LinkedKernel(window_kernel(), max_block_u8(width, columns))
    if has_words == SMALL:
        return LinkedKernel(window_kernel(_prepare_small), small_mean_block_u8(width, columns))
    return LinkedKernel(window_kernel(_prepare), mean_block_u8(width, columns, bool(has_words)))
