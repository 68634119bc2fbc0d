"""Sums of products of 8-bit elements."""

from __future__ import annotations

from armpy_numba_acc.llvm.arithmetic.dots import spread_products
from armpy_numba_acc.llvm.compiler import LinkedKernel
from armpy_numba_acc.machine.calls.products import ConvolutionSums
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.finish.byte_finish import SumsFinish
from armpy_numba_acc.tiles.products.engine import Shape, product_definitions
from armpy_numba_acc.tiles.products.kinds import IntegerProducts
from armpy_numba_acc.tiles.products.pixels import walk_tiles


def make(isa: Isa, rows: int, vectors: int, has_corrections: int) -> LinkedKernel:
    """Make the kernel; parameters as of the record."""
    shape, products = Shape.of(isa, rows, vectors), IntegerProducts(spread_products(isa))
    finish = SumsFinish(bool(has_corrections))
    definitions = product_definitions(isa, ConvolutionSums, shape, products, finish)
    return LinkedKernel(walk_tiles, definitions)
