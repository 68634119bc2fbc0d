"""Convolutions and matrix products of 8-bit elements."""

from __future__ import annotations

from armpy_numba_acc.llvm.arithmetic.dots import spread_products
from armpy_numba_acc.llvm.compiler import LinkedKernel
from armpy_numba_acc.machine.calls.products import ConvolutionU8
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.finish.byte_finish import ByteFinish
from armpy_numba_acc.tiles.products.engine import Shape, product_definitions
from armpy_numba_acc.tiles.products.kinds import IntegerProducts
from armpy_numba_acc.tiles.products.pixels import walk_tiles


def make(isa: Isa, rows: int, vectors: int, *flags: int) -> LinkedKernel:
    """Make the kernel; parameters as of the record, flags as of `ByteFinish`."""
    shape, products = Shape.of(isa, rows, vectors), IntegerProducts(spread_products(isa))
    finish = ByteFinish(*map(bool, flags))
    definitions = product_definitions(isa, ConvolutionU8, shape, products, finish)
    return LinkedKernel(walk_tiles, definitions)
