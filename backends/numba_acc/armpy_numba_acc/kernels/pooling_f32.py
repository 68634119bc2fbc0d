"""Pooling of float32."""

from __future__ import annotations

import numpy as np

from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.compiler import LinkedKernel
from armpy_numba_acc.llvm.pointers import store_f32
from armpy_numba_acc.llvm.primitives import inlined
from armpy_numba_acc.machine.call import Pointer
from armpy_numba_acc.machine.calls.windows import PoolingF32
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.windows.loop import num_inside, tile_columns, window_kernel
from armpy_numba_acc.tiles.windows.pooling import pooling_block_f32

_read = reader(PoolingF32)
_ONE = np.float32(1)


@inlined
def _prepare(args: int, factors: Pointer, y: int, x: int) -> None:
    """Write the reciprocal of how many elements each window has within the image."""
    call = _read(args)
    for j in range(tile_columns(args)):
        start = x + j * call.tiles.stride_w
        count = num_inside(call.tiles, y, start, call.kernel_h, call.kernel_w)
        store_f32(factors, 2 * j, _ONE / np.float32(count))


def make(isa: Isa, lanes: int, columns: int, parts: int, algorithm: str) -> LinkedKernel:
    """Make the kernel for the record's parameters."""
    block = pooling_block_f32(lanes, columns, parts, algorithm)
    return LinkedKernel(window_kernel(_prepare), block)
