"""The least time that commands can take on a machine.

References
----------
Williams, Waterman, Patterson, "Roofline: An Insightful Visual Performance Model for Multicore
Architectures", 2009.
"""

from __future__ import annotations

from armpy_numba_acc.machine.cost_model.model import MachineModel
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.machine.work import WorkKind
from armpy_numba_acc.program.estimate import operations_per_us
from armpy_numba_acc.program.program import CommandInfo

_ARITHMETIC = {
    WorkKind.WINDOWS: WorkKind.FLOATS,
    WorkKind.BYTE_WINDOWS: WorkKind.BYTES,
    WorkKind.BYTE_WEIGHTS: WorkKind.BYTES,
}
"""Kinds whose estimate includes waiting for memory, and the arithmetic alone of each."""


def limits_us(
    info: CommandInfo, isa: Isa, num_threads: int, model: MachineModel
) -> tuple[float, float]:
    """Microseconds that a command needs at least for its arithmetic, and for its memory.

    Parameters
    ----------
    model
        Rates of multiplications in registers, and of bytes from the cache level that those of the
        command fit.
    """
    kind = WorkKind(info.work)
    work = _ARITHMETIC.get(kind, kind)
    arithmetic_us = info.num_operations / (operations_per_us(work, isa, model) * num_threads)
    share_bytes = info.num_bytes / num_threads
    return arithmetic_us, model.read_ns(share_bytes, share_bytes) / 1000


def roofline_us(info: CommandInfo, isa: Isa, num_threads: int, model: MachineModel) -> float:
    """Microseconds that a command takes at least, were it bound by arithmetic or memory alone.

    Parameters
    ----------
    info, isa, num_threads, model
        As for `limits_us`.
    """
    return max(limits_us(info, isa, num_threads, model))
