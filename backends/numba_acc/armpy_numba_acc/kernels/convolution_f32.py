"""Convolutions and matrix products of float32."""

from __future__ import annotations

from armpy_numba_acc.llvm.compiler import LinkedKernel
from armpy_numba_acc.machine.calls.products import ConvolutionF32
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.finish.real_finish import RealFinish
from armpy_numba_acc.tiles.products.engine import Shape, product_definitions
from armpy_numba_acc.tiles.products.kinds import FloatProducts
from armpy_numba_acc.tiles.products.pixels import walk_tiles


def make(isa: Isa, rows: int, vectors: int, half_vectors: int, has_residual: int) -> LinkedKernel:
    """Make the kernel; parameters as of the record."""
    shape = Shape.of(isa, rows, vectors, half_vectors)
    finish = RealFinish("f32" if has_residual else "")
    definitions = product_definitions(isa, ConvolutionF32, shape, FloatProducts(), finish)
    return LinkedKernel(walk_tiles, definitions)
