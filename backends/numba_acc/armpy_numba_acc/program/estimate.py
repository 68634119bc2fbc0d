"""Estimates of commands' durations, rough ones: what is worth waking others for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from armpy.core.symbolic import computed
from armpy_numba_acc.machine.cost_model.model import MachineModel
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.machine.work import WorkKind
from armpy_numba_acc.program.program import CommandInfo, Figures, ProgramTiming

if TYPE_CHECKING:  # saved programs run without what lowers them
    from armpy_numba_acc.program.choices import Choices

PIECE_US = 1500.0
"""A command is run in pieces that are not longer."""

MOST_PIECES = 64

_SHARED_GAIN = 2.0
"""Two threads save half of what they share: that must be more than what sharing costs."""

_REACHED = 0.55
"""Of the most operations that there could be, by most kernels at least."""

_MOVED = 0.5
"""Of the bytes that are read from memory in the best case, where others are written."""

_READ_ONCE = 0.66
"""Likewise of weights that are read once, in the order in which they lie, from the cache."""

_WEIGHTS = (WorkKind.WEIGHTS, WorkKind.BYTE_WEIGHTS)
_WINDOWS = (WorkKind.WINDOWS, WorkKind.BYTE_WINDOWS)


def least_shared_us(model: MachineModel) -> tuple[float, float]:
    """Return the least time of a command that several threads share, and of all together."""
    return _SHARED_GAIN * model.fork_ns / 1000, _SHARED_GAIN * model.wake_ns / 1000


def estimated_timing(figures: Figures, isa: Isa, model: MachineModel) -> ProgramTiming:
    """The timing of a program with some figures."""
    return ProgramTiming(estimated_all_us(figures, isa, model), *least_shared_us(model))


def estimated_us(info: CommandInfo, isa: Isa, model: MachineModel) -> float:
    """Microseconds that one thread needs for a command, about."""
    return float(_duration_us(info.work, isa, model, info.num_operations, info.num_bytes))


def estimated_all_us(figures: Figures, isa: Isa, model: MachineModel) -> npt.NDArray[np.float64]:
    """Microseconds that one thread needs for each command of a program, about."""
    durations_us = np.zeros(len(figures.num_bytes))
    for work, at in figures.by_work.items():
        num_operations, num_bytes = figures.num_operations[at], figures.num_bytes[at]
        durations_us[at] = _duration_us(work, isa, model, num_operations, num_bytes)
    return durations_us


def num_pieces(work: str, choices: Choices, num_operations: int, num_bytes: int = 0) -> int:
    """Return the number of pieces of a command, so that executions can be stopped in between.

    A kernel that has scratch memory for every thread needs so many times as much.

    Parameters
    ----------
    work
        Of the kernel's record.
    num_operations, num_bytes
        Of the command.
    """
    about = work, choices.isa, choices.model
    return computed(_Pieces(*about), num_operations, num_bytes)


@dataclass(frozen=True, slots=True)
class _Pieces:
    """`num_pieces` of plain numbers."""

    work: str
    isa: Isa
    model: MachineModel

    def __call__(self, num_operations: int, num_bytes: int) -> int:
        about = self.work, self.isa, self.model
        duration_us = _duration_us(*about, num_operations, num_bytes)
        return min(int(duration_us / PIECE_US) + 1, MOST_PIECES)


def operations_per_us(work: str, isa: Isa, model: MachineModel) -> float:
    """Most additions and multiplications that one thread can do, for work of a kind.

    Depthwise convolutions wait for memory: they are taken to be half as fast as products.
    """
    kind, factors = "f32", 1
    if work == WorkKind.BYTES:
        kind, factors = "u8", 4
    elif work == WorkKind.PAIRS:
        kind, factors = "i16", 2
    rate = 2000.0 * factors * isa.lanes / model.products(kind, isa).step_ns
    return rate / 2 if work in _WINDOWS else rate


def _duration_us(
    work: str, isa: Isa, model: MachineModel, num_operations: Any, num_bytes: Any
) -> Any:
    """Microseconds, about, of numbers or arrays (Any); products of one vector wait for weights."""
    if work in _WEIGHTS:
        return num_bytes / (1000 * _READ_ONCE * model.levels[-2].bytes_per_ns)
    rate = _REACHED * operations_per_us(work, isa, model)
    moved = num_bytes / (1000 * _MOVED * model.levels[-1].bytes_per_ns)
    return np.maximum(num_operations / rate, moved)
