"""Convolutions and matrix products of floats quantised by their range, by a matrix unit."""

from __future__ import annotations

from armpy_numba_acc.llvm.compiler import LinkedKernel
from armpy_numba_acc.machine.calls.products import ConvolutionDynamic
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.finish.real_finish import DynamicFinish
from armpy_numba_acc.tiles.products.matrix_unit import MatrixProduct
from armpy_numba_acc.tiles.products.matrix_walk import walk_matrix_tiles


def make(isa: Isa, _rows: int, _vectors: int) -> LinkedKernel:
    """Make the kernel."""
    product = MatrixProduct(isa, ConvolutionDynamic, "bytes", DynamicFinish())
    return LinkedKernel(walk_matrix_tiles, product.definitions())
