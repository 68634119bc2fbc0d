"""Convolutions and matrix products of floats that were quantised by their range."""

from __future__ import annotations

from armpy_numba_acc.llvm.arithmetic.dots import spread_products
from armpy_numba_acc.llvm.compiler import LinkedKernel
from armpy_numba_acc.machine.calls.products import ConvolutionDynamic
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.finish.real_finish import DynamicFinish
from armpy_numba_acc.tiles.products.engine import Shape, product_definitions
from armpy_numba_acc.tiles.products.kinds import IntegerProducts
from armpy_numba_acc.tiles.products.pixels import walk_tiles


def make(isa: Isa, rows: int, vectors: int) -> LinkedKernel:
    """Make the kernel; parameters as of the record."""
    shape, products = Shape.of(isa, rows, vectors), IntegerProducts(spread_products(isa))
    definitions = product_definitions(isa, ConvolutionDynamic, shape, products, DynamicFinish())
    return LinkedKernel(walk_tiles, definitions)
