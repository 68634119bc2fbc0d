"""Calls of kernels that say which command is run next."""

from __future__ import annotations

from armpy.core.dataclass import dataclass
from armpy_numba_acc.machine.call import Call, Pointer


@dataclass(frozen=True, slots=True)
class Loop(Call):
    """Begin a loop, test whether it goes on, or jump to another command."""

    parameters = ("part",)

    part: str
    control: Pointer  # what `armpy_numba_acc.machine.execution` says
    turns: Pointer  # where the turns of a loop are counted
    # The loop turns while this byte is not 0 or, without an address, `most_turns` times; a choice
    # between two graphs skips the first one if it is 0.
    flag: Pointer = 0
    most_turns: int = 0
    target: int = 0  # the command that a jump leads to
