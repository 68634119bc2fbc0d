"""Convolutions and matrix products of bfloat16, two pixels and two columns at a time."""

from __future__ import annotations

from armpy_numba_acc.llvm.compiler import LinkedKernel
from armpy_numba_acc.machine.calls.products import ConvolutionBf16Pairs
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.finish.real_finish import RealFinish
from armpy_numba_acc.tiles.products.engine import Shape, product_definitions
from armpy_numba_acc.tiles.products.paired import PairedBfloat16Products
from armpy_numba_acc.tiles.products.pixels import walk_tiles


def make(
    isa: Isa, rows: int, vectors: int, rest: int, residual_format: str, output_format: str
) -> LinkedKernel:
    """Make the kernel; parameters as of the record."""
    products, finish = PairedBfloat16Products(rest), RealFinish(residual_format, output_format)
    record, shape = ConvolutionBf16Pairs, Shape.of(isa, rows, vectors)
    return LinkedKernel(walk_tiles, product_definitions(isa, record, shape, products, finish))
