"""Convolutions and matrix products of 8-bit elements, those of small weights added in 16 bits."""

from __future__ import annotations

from armpy_numba_acc.llvm.compiler import LinkedKernel
from armpy_numba_acc.machine.calls.products import ConvolutionU8
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.finish.byte_finish import ByteFinish
from armpy_numba_acc.tiles.products.engine import Shape, product_definitions
from armpy_numba_acc.tiles.products.pixels import walk_tiles
from armpy_numba_acc.tiles.products.sorted_steps import SortedProducts


def make(isa: Isa, rows: int, vectors: int, *flags: int) -> LinkedKernel:
    """Make the kernel; parameters as of the record, flags as of `ByteFinish`."""
    shape, finish = Shape.of(isa, rows, vectors), ByteFinish(*map(bool, flags))
    definitions = product_definitions(isa, ConvolutionU8, shape, SortedProducts(isa), finish)
    return LinkedKernel(walk_tiles, definitions)
