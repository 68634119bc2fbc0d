"""Calls of kernels that say which command is run next."""

from __future__ import annotations

from dataclasses import dataclass

from armpy_numba_acc.machine.call import Call, Pointer


@dataclass(frozen=True, slots=True)
class Loop(Call):
    """Begin a loop, test whether it goes on, or jump back to the test.

    Parameters
    ----------
    part : {"begin", "test", "back"}
    control : Pointer
        What `armpy_numba_acc.machine.execution` says.
    turns : Pointer
        Where the turns are counted.
    flag : Pointer
        There is another turn as long as this byte is not 0 or, if it is no address, for
        `most_turns`.
    target : int
        The command that a jump leads to.
    """

    parameters = ("part",)

    part: str
    control: Pointer
    turns: Pointer
    flag: Pointer = 0
    most_turns: int = 0
    target: int = 0
