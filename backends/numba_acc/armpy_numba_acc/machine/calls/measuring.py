"""Calls of kernels that measure what a processor can do."""

from __future__ import annotations

from armpy.core.dataclass import dataclass
from armpy_numba_acc.machine.call import Call, Pointer


@dataclass(frozen=True, slots=True)
class MachineTrial(Call):
    """Run a loop that keeps one part of the processor busy."""

    memory: Pointer  # as `armpy_numba_acc.machine.cost_model.trials` lays it out
    number: int  # of the trial, among those of the instruction set
    repeats: int  # turns, at least one
    mask: int  # bytes that loads and stores walk over, less one: all bits below a power of two
