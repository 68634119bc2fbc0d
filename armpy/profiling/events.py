"""Events of a profile: kind, time, and place."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import field

from armpy.core.dataclass import dataclass

EXECUTE = "Execute"
"""Name of the event that is a whole execution."""


class EventKind(enum.StrEnum):
    """Kind of an event."""

    EXECUTION = "execution"
    """A whole execution."""
    LAYER = "layer"
    """A layer of the optimised network, as the core sees it from outside."""
    COMMAND = "command"
    """A measurement by a backend, or added by other code."""
    WAITING = "waiting"
    """An execution has waited."""
    QUEUED = "queued"
    """An execution has waited before it began, while its thread did something else."""
    LOAD = "load"
    """A phase of optimising and preparing a network."""


@dataclass(frozen=True, slots=True)
class EventLabel:
    """Label of an event: all that is the same in every execution."""

    kind: EventKind
    name: str
    backend: str = ""
    """`name` and `backend`: as for `ProfilingEvent`."""
    operation: str = ""
    layer: str = ""
    graph: str = ""
    kernel: str = ""
    """`operation`, `layer`, `graph` and `kernel`: as for `ProfilingEvent`."""


@dataclass(frozen=True, slots=True)
class ProfilingEvent:
    """One thing that took time."""

    name: str
    """``Execute`` for a whole execution, otherwise a layer's operation and name, or what its
    backend calls it.
    """
    backend: str
    """Id of the backend; empty for armpy itself."""
    start_us: float
    duration_us: float
    """`start_us` and `duration_us`: Microseconds; the start is counted from an arbitrary moment."""
    thread: int
    """Number of the thread."""
    # A dictionary has no hash.
    details: Mapping[str, float] = field(default_factory=dict, hash=False)
    """Further measurements of the backend, by name; see `armpy.backend.Measurement`."""
    kind: EventKind = field(default=EventKind.COMMAND, compare=False)
    operation: str = field(default="", compare=False)
    layer: str = field(default="", compare=False)
    """`operation` and `layer`: operation and name of the layer that it belongs to; empty if it is
    not known. Of a phase of loading, `layer` is its object.
    """
    graph: str = field(default="", compare=False)
    """Graph of its control flow layer that the layer lies in, such as ``body``."""
    kernel: str = field(default="", compare=False)
    """Name of the kernel."""

    @property
    def end_us(self) -> float:
        """End of the event, in microseconds."""
        return self.start_us + self.duration_us


@dataclass(frozen=True, slots=True)
class ProfilingStatistics:
    """All events of one name and backend together, in microseconds."""

    name: str
    backend: str
    count: int
    total_us: float
    min_us: float
    max_us: float

    @property
    def mean_us(self) -> float:
        """Average duration."""
        return self.total_us / self.count


def statistics_of(events: Iterable[ProfilingEvent]) -> list[ProfilingStatistics]:
    """Events grouped by name and backend, the largest total first."""
    groups: dict[tuple[str, str], list[float]] = {}
    for event in events:
        groups.setdefault((event.name, event.backend), []).append(event.duration_us)
    statistics = [
        ProfilingStatistics(name, backend, len(times), sum(times), min(times), max(times))
        for (name, backend), times in groups.items()
    ]
    return sorted(statistics, key=lambda s: -s.total_us)
