"""Quantises blocks of floats to bytes by the range that each happens to have."""

from __future__ import annotations

from collections.abc import Callable

from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.threads.sharing import share_items
from armpy_numba_acc.machine.calls.vectors import QuantizeBlocks
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.block_ranges import quantize_block


def make(isa: Isa, block: int) -> Callable[[int, int, int], None]:
    """Make the kernel; threads share the blocks."""
    quantize = quantize_block(block)
    read = reader(QuantizeBlocks)

    def quantize_blocks(args: int, shares: int, num_shares: int) -> None:
        call = read(args)
        first, last = share_items(call.blocks, shares, num_shares)
        for number in range(first, last):
            source, target = call.source + 4 * block * number, call.target + block * number
            quantize(source, target, call.ranges + 8 * number)

    return quantize_blocks
