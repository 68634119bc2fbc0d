"""Depthwise convolutions of 8-bit elements."""

from __future__ import annotations

from armpy_numba_acc.codegen import windows
from armpy_numba_acc.codegen.compiler import Linked
from armpy_numba_acc.codegen.depthwise_u8 import depthwise_block_u8
from armpy_numba_acc.codegen.isa import Isa

ARGUMENTS = (
    *windows.ARGUMENTS,
    "weights",
    "num_groups",
    "block_bytes",
    "zero_point",
    "low",
    "high",
)
"""`weights` are packed in blocks of `block_bytes`; the last three are for the output."""


def make(
    isa: Isa,
    width: int,
    kernel_w: int,
    stride_w: int,
    rows: int,
    columns: int,
    has_words: int,
    is_single: int,
) -> Linked:
    """Make the kernel for a window and a tile; see `depthwise_block_u8`."""
    block = depthwise_block_u8(
        isa, width, kernel_w, stride_w, rows, columns, bool(has_words), bool(is_single)
    )
    return Linked(windows.window_kernel(), block)
