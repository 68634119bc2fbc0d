"""Depthwise convolutions of 8-bit elements."""

from __future__ import annotations

from armpy_numba_acc.llvm.compiler import Linked
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles import windows
from armpy_numba_acc.tiles.depthwise_u8 import Window, depthwise_block_u8

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


FLAGS = ("has_words", "has_negatives", "is_vague")
"""See `depthwise_block_u8`."""


def make(isa: Isa, *parameters: int) -> Linked:
    """Make the kernel for a `Window`, which the first parameters are, and what `FLAGS` say."""
    size = len(Window._fields)
    flags = dict(zip(FLAGS, map(bool, parameters[size:]), strict=True))
    block = depthwise_block_u8(isa, Window(*parameters[:size]), **flags)
    return Linked(windows.window_kernel(), block)
