"""Convolutions and matrix products of 16-bit elements, added up exactly."""

from __future__ import annotations

from armpy_numba_acc.llvm.compiler import LinkedKernel
from armpy_numba_acc.machine.calls.products import ConvolutionI16
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.finish.rescaling import WideFinish
from armpy_numba_acc.tiles.products.engine import Shape, product_definitions
from armpy_numba_acc.tiles.products.kinds import ChannelProducts, WideProducts
from armpy_numba_acc.tiles.products.pixels import walk_tiles


def make(
    isa: Isa,
    rows: int,
    vectors: int,
    has_pieces: int,
    is_depthwise: int,
    output_format: str,
    rounding: str,
) -> LinkedKernel:
    """Make the kernel; parameters as of the record."""
    products = (ChannelProducts if is_depthwise else WideProducts)(isa, has_pieces=bool(has_pieces))
    shape, finish = Shape.of(isa, rows, vectors), WideFinish(output_format, rounding)
    definitions = product_definitions(isa, ConvolutionI16, shape, products, finish)
    return LinkedKernel(walk_tiles, definitions)
