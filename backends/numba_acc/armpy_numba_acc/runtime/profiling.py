"""Takes the time of every command, for profiles."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from armpy.backend import IBackendProfilingContext, Measurement
from armpy.records import dataclass
from armpy_numba_acc.runtime.instance import Code
from armpy_numba_acc.runtime.roofline import roofline_us

_MOST_EXECUTIONS = 10_000
"""That are kept until somebody asks for them; older ones are dropped."""

_begun = threading.local()
"""The context that this thread has begun to measure with last, for the factory that it makes."""


@dataclass(frozen=True, eq=False, slots=True)
class _Execution:
    """Times of one execution."""

    code: Code
    times_ns: npt.NDArray[np.int64]
    thread: int


class Recorder:
    """Keeps the times of executions; several threads may add to it."""

    def __init__(self) -> None:
        self._executions: deque[_Execution] = deque(maxlen=_MOST_EXECUTIONS)

    def add(self, code: Code, times_ns: npt.NDArray[np.int64], thread: int) -> None:
        """Add an execution, with the times as an `Instance` has them."""
        self._executions.append(_Execution(code, times_ns.copy(), thread))

    def take(self) -> list[Measurement]:
        """Every command of every execution since the last call; then forget them."""
        found: list[Measurement] = []
        while self._executions:
            found += _measurements(self._executions.popleft())
        return found


def _measurements(execution: _Execution) -> Sequence[Measurement]:
    """The commands of one execution."""
    code, times_us = execution.code, execution.times_ns / 1000
    found = []
    for number, info in enumerate(code.program.infos):
        details = {
            "bytes": float(info.num_bytes),
            "operations": float(info.num_operations),
            "roofline_us": roofline_us(
                info, code.isa, code.num_threads if code.is_parallel[number] else 1
            ),
        }
        begin_us, end_us = float(times_us[number]), float(times_us[number + 1])
        name = f"{info.label} ({info.kernel})"
        found.append(Measurement(name, begin_us, end_us - begin_us, execution.thread, details))
    return found


class NumbaProfilingContext(IBackendProfilingContext):
    """Measures the commands of one network."""

    def __init__(self) -> None:
        self.recorder = Recorder()

    def enable_profiling(self, enabled: bool) -> None:
        """Let the factory that this thread makes next measure, which is the network's."""
        _begun.context = weakref.ref(self) if enabled else None

    def take_events(self) -> Sequence[Measurement]:
        """Every command of every execution since the last call."""
        return self.recorder.take()


def recorder_of_network() -> Recorder | None:
    """The recorder for the network that this thread is loading; None without a profile.

    Notes
    -----
    The core asks for the network's factory in the thread in which it began to measure; a
    context that is gone by then belonged to a load that failed.
    """
    begun = getattr(_begun, "context", None)
    _begun.context = None
    context = None if begun is None else begun()
    return None if context is None else context.recorder
