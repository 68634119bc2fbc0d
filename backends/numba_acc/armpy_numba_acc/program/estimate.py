"""How long commands take, roughly: what is worth waking others for."""

from __future__ import annotations

from armpy_numba_acc.machine.call import Work
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.program.program import CommandInfo

PARALLEL_COMMAND_US = 3.0
"""A command that is shorter is run by one thread: others have to be told and waited for."""

PARALLEL_PROGRAM_US = 40.0
"""A program whose parallel commands are shorter all together is run by one thread."""

PIECE_US = 1500.0
"""A command is run in pieces that are not longer."""

MOST_PIECES = 64

_OPERATIONS_PER_US_AND_LANE = 4000.0
_BYTES_PER_US = 10_000.0
_WEIGHT_BYTES_PER_US = 40_000.0
"""Of weights that are read once, in the order in which they lie."""


_WEIGHTS = (Work.WEIGHTS, Work.BYTE_WEIGHTS)
_WINDOWS = (Work.WINDOWS, Work.BYTE_WINDOWS)


def estimated_us(info: CommandInfo, isa: Isa) -> float:
    """Microseconds that one thread needs for a command, about."""
    return _duration_us(info.work, isa, info.num_operations, info.num_bytes)


def num_pieces(work: str, isa: Isa, num_operations: int, num_bytes: int = 0) -> int:
    """How many pieces a command is to be run in, so that executions can be stopped in between.

    Parameters
    ----------
    work : Work
        Of the kernel's record.
    isa : Isa
    num_operations, num_bytes : int
        Of the command.

    Notes
    -----
    A kernel that has scratch memory for every thread needs so many times as much.
    """
    duration_us = _duration_us(work, isa, num_operations, num_bytes)
    return min(int(duration_us / PIECE_US) + 1, MOST_PIECES)


def _duration_us(work: str, isa: Isa, num_operations: int, num_bytes: int) -> float:
    """Microseconds, about.

    Notes
    -----
    Products of bytes are taken to be as many times faster as fit into one instruction,
    depthwise convolutions to wait for memory, and products of one vector for their weights.
    """
    if work in _WEIGHTS:
        return num_bytes / _WEIGHT_BYTES_PER_US
    rate = _OPERATIONS_PER_US_AND_LANE * isa.lanes
    if work == Work.BYTES and isa.dot:
        rate *= 4
    elif work == Work.PAIRS:
        rate *= 2
    elif work in _WINDOWS:
        rate /= 2
    return max(num_operations / rate, num_bytes / _BYTES_PER_US)
