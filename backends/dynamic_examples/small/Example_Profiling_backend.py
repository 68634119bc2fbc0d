"""A backend that measures itself: counters, and what took time.

References
----------
Arm NN IBackendProfiling, IBackendProfilingContext.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence

from armpy.backend import (
    Counter,
    CounterKind,
    IBackendInternal,
    IBackendProfiling,
    IBackendProfilingContext,
    IWorkloadFactory,
    Measurement,
    NetworkResources,
    OptionValues,
)

from .Example_common import ElementwiseBackend, ElementwiseFactory, Floats, add

BACKEND_ID = "ExampleProfiling"
ADDITIONS = Counter("additions", "", CounterKind.TOTAL, "Elements that were added.")
LAST = Counter("last tensor", "B", CounterKind.GAUGE, "Size of the tensor written last.")


def get_backend_id() -> str:
    """First entry point."""
    return BACKEND_ID


def get_version() -> str:
    """Second entry point."""
    return "2.0"


def backend_factory() -> IBackendInternal:
    """Third entry point."""
    return ProfilingBackend(BACKEND_ID)


class Measuring(IBackendProfilingContext):
    """Measurements of one network that its profile has not read yet.

    Parameters
    ----------
    profiling : IBackendProfiling
        Of the network.
    """

    def __init__(self, profiling: IBackendProfiling) -> None:
        for counter in (ADDITIONS, LAST):
            profiling.declare_counter(counter)
        self._profiling = profiling
        self._events: deque[Measurement] = deque()

    def add(self, lhs: Floats, rhs: Floats, out: Floats) -> None:
        """Add and record the time; several threads may do so at once."""
        start = time.perf_counter()
        add(lhs, rhs, out)
        duration_us = (time.perf_counter() - start) * 1e6
        details = {"operations": out.size, "bytes": lhs.nbytes + rhs.nbytes + out.nbytes}
        thread = threading.get_ident()
        self._events.append(Measurement("Adding", start * 1e6, duration_us, thread, details))
        self._profiling.add_to_counter(ADDITIONS.name, out.size)
        self._profiling.add_to_counter(LAST.name, out.nbytes)

    def take_events(self) -> Sequence[Measurement]:
        """What took time since the last call."""
        return [self._events.popleft() for _ in range(len(self._events))]


class ProfilingBackend(ElementwiseBackend):
    """Adds tensors, and reports their times where a network is profiled."""

    def create_backend_profiling_context(
        self, options: OptionValues, profiling: IBackendProfiling
    ) -> IBackendProfilingContext:
        """Called once for each network that is profiled, before its workload factory is made."""
        return Measuring(profiling)

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        """Without a profile nothing is measured, which costs nothing."""
        measuring = network.profiling_context
        return ElementwiseFactory(measuring.add if isinstance(measuring, Measuring) else add)
