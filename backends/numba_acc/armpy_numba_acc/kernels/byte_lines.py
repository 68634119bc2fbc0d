"""Functions of bytes that are lines, other ones for each channel."""

from __future__ import annotations

from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.compiler import LinkedKernel
from armpy_numba_acc.llvm.threads.sharing import share
from armpy_numba_acc.machine.calls.elementwise import ByteLines
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.elementwise.byte_lines import byte_lines_definition
from armpy_numba_acc.tiles.elementwise.loop import compute_rows

_read = reader(ByteLines)


def make(isa: Isa, stages: str, clamping: str) -> LinkedKernel:
    """Make the kernel for some stages; threads share the bytes."""
    return LinkedKernel(_byte_lines, byte_lines_definition(isa, stages, clamping))


def _byte_lines(args: int, shares: int, num_shares: int) -> None:
    """Walk over rows, and parts of rows at both ends of a thread's share."""
    call = _read(args)
    begin, end = share(call.columns * call.rows, shares, num_shares)
    start = begin % call.columns
    while begin < end:
        count = min(call.columns - start, end - begin)
        rows = max((end - begin) // call.columns, 1) if not start else 1
        compute_rows(
            call.source + begin,
            call.constants + 4 * start,
            call.plane_bytes,
            call.target + begin,
            count,
            call.numbers,
            rows,
            call.columns,
            0,
            0,
            call.columns,
        )
        begin += rows * count
        start = 0
