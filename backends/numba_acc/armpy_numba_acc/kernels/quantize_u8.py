"""Quantisation of float32 to bytes."""

from __future__ import annotations

from collections.abc import Callable

from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.threads.sharing import share
from armpy_numba_acc.machine.calls.rows import QuantizeU8
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.finish.quantize_u8 import VECTORS, quantize_block


def make(isa: Isa) -> Callable[[int, int, int], None]:
    """Make the kernel; threads share the elements, of which there are a register of bytes or more.

    The last block of a share overlaps the one in front, which may be another thread's: both
    write the same.
    """
    block, read = quantize_block(isa), reader(QuantizeU8)
    size = VECTORS * isa.lanes

    def quantize_u8(args: int, shares: int, num_shares: int) -> None:
        call = read(args)
        begin, end = share(call.count, shares, num_shares)
        while begin < end:
            at = min(begin, end - size)
            block(
                call.source + 4 * at,
                call.target + at,
                call.zero_point,
                call.flip,
                call.to_even,
                call.scale,
                call.inverse,
            )
            begin += size

    return quantize_u8
