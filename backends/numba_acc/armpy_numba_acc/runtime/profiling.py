"""Takes the time of every command, for profiles."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from armpy.backend import (
    IBackendProfilingContext,
    LayerMeasurement,
    Measurement,
    NetworkResources,
)
from armpy.core.dataclass import dataclass
from armpy_numba_acc.runtime.instance import LoadedCode
from armpy_numba_acc.runtime.roofline import limits_us

_MOST_EXECUTIONS = 10_000
"""Number of executions that are kept until they are read; older ones are dropped."""


@dataclass(frozen=True, eq=False, slots=True)
class _Execution:
    """Times of one execution."""

    code: LoadedCode
    times_ns: npt.NDArray[np.int64]
    thread: int


class Recorder:
    """Keeps the times of executions; several threads may add to it."""

    def __init__(self) -> None:
        self._executions: deque[_Execution] = deque(maxlen=_MOST_EXECUTIONS)

    def add(self, code: LoadedCode, times_ns: npt.NDArray[np.int64], thread: int) -> None:
        """Add an execution, with the times as an `Instance` has them."""
        self._executions.append(_Execution(code, times_ns.copy(), thread))

    def take(self) -> list[Measurement]:
        """Every command of every execution since the last call; then forget them."""
        measurements: list[Measurement] = []
        while self._executions:
            measurements += _measurements(self._executions.popleft())
        return measurements


def _measurements(execution: _Execution) -> Sequence[Measurement]:
    code, times_us = execution.code, execution.times_ns / 1000
    measurements: list[Measurement] = []
    for number, info in enumerate(code.sized.infos):
        num_threads = code.num_threads if code.is_parallel[number] else 1
        compute_us, memory_us = limits_us(info, code.isa, num_threads, code.model)
        details = {
            "bytes": float(info.num_bytes),
            "operations": float(info.num_operations),
            "roofline_us": max(compute_us, memory_us),
            "compute_us": compute_us,
            "memory_us": memory_us,
        }
        begin_us, end_us = float(times_us[number]), float(times_us[number + 1])
        about = info.operation, info.layer, info.kernel
        times = begin_us, end_us - begin_us, execution.thread
        measurements.append(LayerMeasurement(info.title, *times, details, *about))
    return measurements


class NumbaProfilingContext(IBackendProfilingContext):
    """Measures the commands of one network."""

    def __init__(self) -> None:
        self.recorder = Recorder()

    def take_events(self) -> Sequence[Measurement]:
        """Every command of every execution since the last call."""
        return self.recorder.take()


def recorder_of(network: NetworkResources) -> Recorder | None:
    """Return the recorder of a network's commands; None without a profile."""
    context = network.profiling_context
    return context.recorder if isinstance(context, NumbaProfilingContext) else None
