"""Rough estimates of commands' durations, which decide whether to wake other threads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import truediv
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from armpy.core.dataclass import dataclass
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
"""Two threads save half of their shared time: that must exceed the cost of sharing."""

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


class Rates(NamedTuple):
    """Speed of each command of a program on one thread, at most."""

    bytes_per_us: Sequence[float]
    operations_per_us: Sequence[float]
    least_us: tuple[float, float]  # as of `least_shared_us`

    @classmethod
    def of(cls, figures: Figures, isa: Isa, model: MachineModel) -> Rates:
        """The rates of the commands that some figures are of."""
        per_us = np.empty((2, figures.table.shape[1]))
        for work, at in figures.by_work.items():
            per_us[:, at] = np.reshape(_rates(work, isa, model)[::-1], (2, 1))
        bytes_per_us, operations_per_us = per_us.tolist()
        return cls(bytes_per_us, operations_per_us, least_shared_us(model))

    def timing(self, figures: Figures) -> ProgramTiming:
        """The estimated timing of the program; its figures may be for other sizes."""
        num_bytes, num_operations, _ = figures.table.tolist()
        # NumPy takes ten times as long where a program is made for each call's sizes.
        read_us = map(truediv, num_bytes, self.bytes_per_us)
        computed_us = map(truediv, num_operations, self.operations_per_us)
        return ProgramTiming([*map(max, read_us, computed_us)], *self.least_us)


def estimated_us(info: CommandInfo, isa: Isa, model: MachineModel) -> float:
    """Microseconds that one thread needs for a command, about."""
    operations_per_us, bytes_per_us = _rates(info.work, isa, model)
    return max(info.num_operations / operations_per_us, info.num_bytes / bytes_per_us)


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
    pieces = _Pieces(*_rates(work, choices.isa, choices.model))
    return computed(pieces, num_operations, num_bytes)


@dataclass(frozen=True, slots=True)
class _Pieces:
    """`num_pieces` of plain numbers, by rates that are looked up once for all sizes."""

    operations_per_us: float
    bytes_per_us: float

    def __call__(self, num_operations: int, num_bytes: int) -> int:
        duration_us = max(num_operations / self.operations_per_us, num_bytes / self.bytes_per_us)
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


def _rates(work: str, isa: Isa, model: MachineModel) -> tuple[float, float]:
    """Operations and bytes per microsecond; products of one vector wait for weights."""
    if work in _WEIGHTS:
        return math.inf, 1000 * _READ_ONCE * model.levels[-2].bytes_per_ns
    rate = _REACHED * operations_per_us(work, isa, model)
    return rate, 1000 * _MOVED * model.levels[-1].bytes_per_ns
