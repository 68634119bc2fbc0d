"""Depthwise convolution of 8-bit elements."""

from __future__ import annotations

from armpy_numba_acc.llvm.compiler import LinkedKernel
from armpy_numba_acc.machine.calls.windows import DepthwiseU8
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.windows.depthwise_u8 import depthwise_block_u8
from armpy_numba_acc.tiles.windows.loop import window_kernel


def make(isa: Isa, *parameters: int) -> LinkedKernel:
    """Make the kernel for the record's parameters."""
    return LinkedKernel(window_kernel(), depthwise_block_u8(isa, DepthwiseU8.made_for(*parameters)))
