"""Convolutions and matrix products of bfloat16, added up in float32."""

from __future__ import annotations

from armpy_numba_acc.llvm.compiler import LinkedKernel
from armpy_numba_acc.machine.calls.products import ConvolutionBf16
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.finish.real_finish import RealFinish
from armpy_numba_acc.tiles.products.engine import Shape, product_definitions
from armpy_numba_acc.tiles.products.kinds import Bfloat16Products
from armpy_numba_acc.tiles.products.pixels import walk_tiles


def make(
    isa: Isa, rows: int, vectors: int, is_odd: int, residual_format: str, output_format: str
) -> LinkedKernel:
    """Make the kernel; parameters as of the record."""
    shape = Shape.of(isa, rows, vectors)
    products = Bfloat16Products(isa, is_odd=bool(is_odd))
    finish = RealFinish(residual_format, output_format)
    definitions = product_definitions(isa, ConvolutionBf16, shape, products, finish)
    return LinkedKernel(walk_tiles, definitions)
