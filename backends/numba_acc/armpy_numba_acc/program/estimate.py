"""How long commands take, roughly: what is worth waking others for."""

from __future__ import annotations

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


def estimated_us(info: CommandInfo, isa: Isa) -> float:
    """Microseconds that one thread needs for a command, about.

    Notes
    -----
    Products of bytes are taken to be as many times faster as fit into one instruction,
    depthwise convolutions to wait for memory, and products of one vector for their weights.
    """
    rate = _OPERATIONS_PER_US_AND_LANE * isa.lanes
    if info.kernel.startswith("convolution_u8") and isa.dot:
        rate *= 4
    elif info.kernel.startswith(("convolution_bf16", "convolution_i16")):
        rate *= 2
    elif info.kernel.startswith("depthwise"):
        rate /= 2
    elif info.kernel.startswith("vector_"):
        return info.num_bytes / _WEIGHT_BYTES_PER_US
    return max(info.num_operations / rate, info.num_bytes / _BYTES_PER_US)


def num_pieces(num_operations: int, kernel: str, isa: Isa, num_bytes: int = 0) -> int:
    """How many pieces a command is to be run in, so that executions can be stopped in between.

    Notes
    -----
    A kernel that has scratch memory for every thread needs so many times as much.
    """
    duration_us = estimated_us(CommandInfo("", kernel, num_bytes, num_operations), isa)
    return min(int(duration_us / PIECE_US) + 1, MOST_PIECES)
