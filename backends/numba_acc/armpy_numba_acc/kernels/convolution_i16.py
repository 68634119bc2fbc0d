"""Convolutions and matrix products of 16-bit elements, added up exactly."""

from __future__ import annotations

from armpy_numba_acc.llvm.compiler import Linked
from armpy_numba_acc.machine.calls.products import ConvolutionI16
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.pixels import walk_tiles
from armpy_numba_acc.tiles.product import Shape, product_definitions
from armpy_numba_acc.tiles.products import ChannelProducts, WideProducts
from armpy_numba_acc.tiles.rescaling import WideFinish


def make(
    isa: Isa,
    rows: int,
    vectors: int,
    has_pieces: int,
    is_depthwise: int,
    output_format: str,
    rounding: str,
) -> Linked:
    """Make the kernel; parameters as of the record."""
    products = (ChannelProducts if is_depthwise else WideProducts)(isa, has_pieces=bool(has_pieces))
    shape, finish = Shape.of(isa, rows, vectors), WideFinish(output_format, rounding)
    return Linked(walk_tiles, product_definitions(isa, ConvolutionI16, shape, products, finish))
