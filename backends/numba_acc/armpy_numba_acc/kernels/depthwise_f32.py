"""Depthwise convolution of float32."""

from __future__ import annotations

from armpy_numba_acc.llvm.compiler import LinkedKernel
from armpy_numba_acc.machine.calls.windows import DepthwiseF32
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.windows.depthwise_f32 import depthwise_block_f32
from armpy_numba_acc.tiles.windows.loop import window_kernel


def make(isa: Isa, *parameters: int | str) -> LinkedKernel:
    """Make the kernel for the record's parameters."""
    return LinkedKernel(window_kernel(), depthwise_block_f32(DepthwiseF32.made_for(*parameters)))
