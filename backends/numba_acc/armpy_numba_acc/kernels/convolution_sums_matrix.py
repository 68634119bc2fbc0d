"""Sums of products of 8-bit elements by a matrix unit."""

from __future__ import annotations

from armpy_numba_acc.llvm.compiler import LinkedKernel
from armpy_numba_acc.machine.calls.products import ConvolutionSums
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.finish.byte_finish import SumsFinish
from armpy_numba_acc.tiles.products.matrix_unit import MatrixProduct
from armpy_numba_acc.tiles.products.matrix_walk import walk_matrix_tiles


def make(isa: Isa, _rows: int, _vectors: int, has_corrections: int) -> LinkedKernel:
    """Make the kernel."""
    finish = SumsFinish(bool(has_corrections))
    product = MatrixProduct(isa, ConvolutionSums, "bytes", finish)
    return LinkedKernel(walk_matrix_tiles, product.definitions())
