"""Convolutions and matrix products of 8-bit elements by a matrix unit."""

from __future__ import annotations

from armpy_numba_acc.llvm.compiler import LinkedKernel
from armpy_numba_acc.machine.calls.products import ConvolutionU8
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.finish.byte_finish import ByteFinish
from armpy_numba_acc.tiles.products.matrix_unit import MatrixProduct
from armpy_numba_acc.tiles.products.matrix_walk import walk_matrix_tiles


def make(isa: Isa, _rows: int, _vectors: int, *flags: int) -> LinkedKernel:
    """Make the kernel; flags as of `ByteFinish`."""
    finish = ByteFinish(*map(bool, flags))
    product = MatrixProduct(isa, ConvolutionU8, "bytes", finish)
    return LinkedKernel(walk_matrix_tiles, product.definitions())
