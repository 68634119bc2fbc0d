"""Pooling of 16-bit elements."""

from __future__ import annotations

from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.compiler import LinkedKernel
from armpy_numba_acc.llvm.pointers import store_i32
from armpy_numba_acc.llvm.primitives import inlined
from armpy_numba_acc.machine.call import Pointer
from armpy_numba_acc.machine.calls.windows import PoolingI16
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.windows.loop import num_inside, tile_columns, window_kernel
from armpy_numba_acc.tiles.windows.pooling import pooling_block_i16

_read = reader(PoolingI16)


@inlined
def _prepare(args: int, factors: Pointer, y: int, x: int) -> None:
    """Write how many elements each window has within the image."""
    call = _read(args)
    for j in range(tile_columns(args)):
        start = x + j * call.tiles.stride_w
        store_i32(factors, 2 * j, num_inside(call.tiles, y, start, call.kernel_h, call.kernel_w))


def make(isa: Isa, lanes: int, columns: int, algorithm: str) -> LinkedKernel:
    """Make the kernel for the record's parameters."""
    return LinkedKernel(window_kernel(_prepare), pooling_block_i16(lanes, columns, algorithm))
