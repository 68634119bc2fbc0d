"""Measures where the time of executions goes."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, field

from armpy.errors import ArmpyError
from armpy.records import dataclass

MAX_EVENTS = 100_000
"""Events that a profiler keeps; later ones are counted but dropped."""


@dataclass(frozen=True, slots=True)
class ProfilingEvent:
    """One thing that took time.

    Parameters
    ----------
    name : str
        ``Execute`` for a whole execution, otherwise a layer's operation and name.
    backend : str
        Who did it; empty for armpy itself.
    start_us, duration_us : float
        Microseconds; the start is counted from an arbitrary moment.
    thread : int
        Number of the thread.
    details : mapping of str to float
        What else its backend says about it; see `armpy.backend.Measurement`.
    """

    name: str
    backend: str
    start_us: float
    duration_us: float
    thread: int
    details: Mapping[str, float] = field(default_factory=dict, hash=False)


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


class Profiler:
    """Collects events of one loaded network; several threads may add to it.

    References
    ----------
    Arm NN IProfiler.
    """

    def __init__(self) -> None:
        self._events: list[ProfilingEvent] = []
        self._sources: dict[str, Callable[[], Iterable[ProfilingEvent]]] = {}
        self._lock = threading.Lock()
        self.num_dropped = 0

    def add(self, name: str, backend: str, start_s: float, end_s: float) -> None:
        """Add an event, with times of `time.perf_counter`."""
        event = ProfilingEvent(
            name, backend, 1e6 * start_s, 1e6 * (end_s - start_s), threading.get_ident()
        )
        self._keep(event)

    def _keep(self, event: ProfilingEvent) -> None:
        """Add an event, if there is room for it."""
        with self._lock:
            if len(self._events) < MAX_EVENTS:
                self._events.append(event)
            else:
                self.num_dropped += 1

    def add_source(self, backend: str, take: Callable[[], Iterable[ProfilingEvent]]) -> None:
        """Add a backend whose own measurements are taken when the profile is read."""
        self._sources[backend] = take

    @property
    def events(self) -> tuple[ProfilingEvent, ...]:
        """Everything since the last `clear`, in order of completion.

        Raises
        ------
        ArmpyError
            If a backend fails to give its own measurements; it is not asked again.
        """
        for backend, take in list(self._sources.items()):
            try:
                events = take()
            except ArmpyError:
                self._sources.pop(backend, None)
                raise
            for event in events:
                self._keep(event)
        with self._lock:
            return tuple(self._events)

    def clear(self) -> None:
        """Forget all events, those that backends have not given yet as well.

        Raises
        ------
        ArmpyError
            As `events` does.
        """
        _ = self.events
        with self._lock:
            self._events.clear()
            self.num_dropped = 0

    def statistics(self) -> list[ProfilingStatistics]:
        """Events grouped by name and backend, the largest total first."""
        return _statistics(self.events)

    def to_json(self) -> str:
        """Events and statistics as JSON text."""
        events = self.events
        return json.dumps(
            {
                "unit": "us",
                "events": [asdict(event) for event in events],
                "statistics": [asdict(s) | {"mean_us": s.mean_us} for s in _statistics(events)],
                "dropped": self.num_dropped,
            }
        )

    def to_chrome_trace(self) -> str:
        """Events in the JSON format that Chrome's and Perfetto's trace viewers read."""
        return json.dumps(
            {
                "traceEvents": [
                    {
                        "name": event.name,
                        "cat": event.backend or "armpy",
                        "ph": "X",
                        "ts": event.start_us,
                        "dur": event.duration_us,
                        "pid": 0,
                        "tid": event.thread,
                        **({"args": dict(event.details)} if event.details else {}),
                    }
                    for event in self.events
                ]
            }
        )


def _statistics(events: Iterable[ProfilingEvent]) -> list[ProfilingStatistics]:
    """Events grouped by name and backend, the largest total first."""
    groups: dict[tuple[str, str], list[float]] = {}
    for event in events:
        groups.setdefault((event.name, event.backend), []).append(event.duration_us)
    found = [
        ProfilingStatistics(name, backend, len(times), sum(times), min(times), max(times))
        for (name, backend), times in groups.items()
    ]
    return sorted(found, key=lambda s: -s.total_us)
