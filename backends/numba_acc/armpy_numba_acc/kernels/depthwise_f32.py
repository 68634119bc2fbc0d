"""Depthwise convolutions in float32."""

from __future__ import annotations

from armpy_numba_acc.llvm.compiler import Linked
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles import windows
from armpy_numba_acc.tiles.depthwise_f32 import DepthwiseTile, depthwise_block_f32

ARGUMENTS = (*windows.ARGUMENTS, "weights", "num_taps", "block_bytes", "low", "high")
"""`weights` holds for each block the bias, then one line per tap: `block_bytes`."""


def make(
    isa: Isa,
    lanes: int,
    kernel_h: int,
    kernel_w: int,
    stride_h: int,
    stride_w: int,
    rows: int,
    columns: int,
    is_single: int,
    input_kind: str = "f32",
    output_kind: str = "f32",
) -> Linked:
    """Make the kernel for a window and a tile; see `DepthwiseTile`."""
    tile = DepthwiseTile(
        lanes,
        (kernel_h, kernel_w),
        (stride_h, stride_w),
        rows,
        columns,
        bool(is_single),
        input_kind,
        output_kind,
    )
    return Linked(windows.window_kernel(), depthwise_block_f32(tile))
