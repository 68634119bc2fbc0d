"""Convolutions and matrix products of bfloat16 by a matrix unit, added up in float32."""

from __future__ import annotations

from armpy_numba_acc.llvm.compiler import LinkedKernel
from armpy_numba_acc.machine.calls.products import ConvolutionBf16Matrix
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.finish.real_finish import RealFinish
from armpy_numba_acc.tiles.products.matrix_unit import MatrixProduct
from armpy_numba_acc.tiles.products.matrix_walk import walk_matrix_tiles


def make(
    isa: Isa, _rows: int, _vectors: int, residual_format: str, output_format: str
) -> LinkedKernel:
    """Make the kernel; parameters as of the record."""
    finish = RealFinish(residual_format, output_format)
    product = MatrixProduct(isa, ConvolutionBf16Matrix, "bfloat16", finish)
    return LinkedKernel(walk_matrix_tiles, product.definitions())
