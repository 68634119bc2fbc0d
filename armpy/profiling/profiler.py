"""Profiler of one loaded network: collects times and counters."""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from armpy import __version__
from armpy.errors import ArmpyError
from armpy.profiling.counters import Counters, CounterValue
from armpy.profiling.details import LayerDetails, ProfilingDetails
from armpy.profiling.events import (
    EXECUTE,
    EventKind,
    EventLabel,
    ProfilingEvent,
    ProfilingStatistics,
    statistics_of,
)
from armpy.profiling.phases import phase_of

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

    from armpy.profiling.summary import Summary

MAX_EVENTS = 100_000
"""Events that a profiler keeps; later ones are counted but dropped."""

_Raw: TypeAlias = tuple[EventLabel, float, float, int]
"""An event as it is recorded: label, beginning and end in seconds, thread."""


class Profiler:
    """Collects events of one loaded network; several threads may add to it.

    Parameters
    ----------
    details : ProfilingDetails
        Properties of layers that it records beside their times.

    Attributes
    ----------
    num_dropped : int
        Events for which there was no room.
    counter_store : Counters
        Where counters are declared and added to.
    spans : Spans or None
        Spans for the application's tracer, if it has one.

    References
    ----------
    Arm NN IProfiler.
    """

    def __init__(self, details: ProfilingDetails = ProfilingDetails.UNDEFINED) -> None:
        self.details = details
        # Executions only append raw records; events are made of it when the profile is read.
        self._recorded: deque[_Raw] = deque()
        self._events: list[ProfilingEvent] = []
        self._phases: list[ProfilingEvent] = []
        self._sources: dict[str, Callable[[], Iterable[ProfilingEvent]]] = {}
        self.counter_store = Counters()
        self._layers: dict[tuple[str, str, str], LayerDetails] = {}
        self._lock = threading.Lock()
        self.num_dropped = 0
        self.spans = spans_for_application()

    def add(self, name: str, backend: str, start_s: float, end_s: float) -> None:
        """Add an event, with times of `time.perf_counter`."""
        is_whole = name == EXECUTE and not backend
        kind = EventKind.EXECUTION if is_whole else EventKind.COMMAND
        self.record(EventLabel(kind, name, backend), start_s, end_s)

    def record(self, label: EventLabel, start_s: float, end_s: float) -> None:
        """Add an event of this thread, with times of `time.perf_counter`."""
        if len(self._recorded) + len(self._events) < MAX_EVENTS:
            self._recorded.append((label, start_s, end_s, threading.get_ident()))
        else:
            with self._lock:
                self.num_dropped += 1
        if self.spans is not None and label.kind is not EventKind.EXECUTION:
            self.spans.add(label, start_s, end_s)  # a whole execution is one while it lasts

    def add_waiting(
        self, what: str, start_s: float, end_s: float, *, is_ahead: bool = False
    ) -> None:
        """Add a wait of an execution, with times of `time.perf_counter`.

        It is the next execution in this thread that has waited ahead, as one does in the queue of
        a pool; otherwise the one that is under way in it.
        """
        kind = EventKind.QUEUED if is_ahead else EventKind.WAITING
        self.record(EventLabel(kind, what), start_s, end_s)

    def add_phase(self, name: str, backend: str, about: str, start_s: float, end_s: float) -> None:
        """Add a phase of optimising or preparing the network; see `phase`."""
        label = EventLabel(EventKind.LOAD, name, backend, layer=about)
        raw = (label, start_s, end_s, threading.get_ident())
        with self._lock:
            if len(self._phases) < MAX_EVENTS:
                self._phases.append(_event(raw))
            else:
                self.num_dropped += 1

    def add_source(self, backend: str, take: Callable[[], Iterable[ProfilingEvent]]) -> None:
        """Add a backend whose own measurements are taken when the profile is read."""
        self._sources[backend] = take

    def add_event(self, event: ProfilingEvent) -> None:
        """Add an event as it is, if there is room for it."""
        if self.spans is not None:
            self.spans.add_event(event)
        with self._lock:
            self._gather()
            self._keep(event)

    def _gather(self) -> None:
        """Make events of the records; under the lock."""
        recorded = self._recorded
        while recorded:
            self._events.append(_event(recorded.popleft()))

    def _keep(self, event: ProfilingEvent) -> None:
        """Add an event, if there is room for it; under the lock."""
        if len(self._events) < MAX_EVENTS:
            self._events.append(event)
        else:
            self.num_dropped += 1

    @property
    def events(self) -> tuple[ProfilingEvent, ...]:
        """All events of executions since the last `clear`, in order of completion.

        Raises
        ------
        ArmpyError
            If a backend fails to give its own measurements; it is not asked again.
        """
        with self._lock:
            self._gather()
        for backend, take in list(self._sources.items()):
            try:
                events = take()
            except ArmpyError:
                self._sources.pop(backend, None)
                raise
            with self._lock:
                for event in events:
                    self._keep(event)
        with self._lock:
            return tuple(self._events)

    @property
    def load_events(self) -> tuple[ProfilingEvent, ...]:
        """Phases of optimising and preparing the network, in order of completion; always kept."""
        with self._lock:
            return tuple(self._phases)

    def describe(self, layer: LayerDetails) -> None:
        """Describe a layer; of one that is prepared for other shapes, the latest is kept."""
        with self._lock:
            self._layers[layer.graph, layer.name, layer.backend] = layer

    @property
    def layers(self) -> tuple[LayerDetails, ...]:
        """Return the layers of the optimised network; empty if no details are wanted."""
        with self._lock:
            return tuple(self._layers.values())

    @property
    def counters(self) -> tuple[CounterValue, ...]:
        """Return the backends' counters, in order of declaration."""
        return self.counter_store.values

    def clear(self) -> None:
        """Discard the events of executions, also those that backends have not delivered yet.

        Totals begin with 0 again; gauges and the phases of loading stay.

        Raises
        ------
        ArmpyError
            As `events` does.
        """
        _ = self.events
        with self._lock:
            self._recorded.clear()
            self._events.clear()
            self.num_dropped = 0
        self.counter_store.clear()

    def summary(self) -> Summary:
        """Split all of the time into parts, nothing twice and nothing left out.

        Raises
        ------
        ArmpyError
            As `events` does.
        """
        from armpy.profiling.summary import summarize  # noqa: PLC0415 - few ask for it

        return summarize(self.events, self.load_events, self.num_dropped)

    def statistics(self) -> list[ProfilingStatistics]:
        """Events grouped by name and backend, the largest total first."""
        return statistics_of(self.events)


def _event(raw: _Raw) -> ProfilingEvent:
    label, start_s, end_s, thread = raw
    return ProfilingEvent(
        label.name,
        label.backend,
        1e6 * start_s,
        1e6 * (end_s - start_s),
        thread,
        kind=label.kind,
        operation=label.operation,
        layer=label.layer,
        graph=label.graph,
        kernel=label.kernel,
    )


class Spans:
    """Sends events to a tracer, as parts of the span that a thread is in."""

    def __init__(
        self,
        tracer: Tracer,
        current_span: Callable[[], Span],  # gives the span that the thread is in
    ) -> None:
        self._tracer = tracer
        self._current_span = current_span
        # Profiles go by another clock than spans.
        self._offset_ns = time.time_ns() - time.perf_counter_ns()

    @contextmanager
    def around(self, label: EventLabel) -> Iterator[None]:
        """A span that others inside are parts of; an error that passes ends it as failed."""
        attributes = _attributes(label)
        with self._tracer.start_as_current_span(label.name, attributes=attributes):
            yield

    def add(self, label: EventLabel | ProfilingEvent, start_s: float, end_s: float) -> None:
        """A span that is over, with times of `time.perf_counter`."""
        begin_ns = self._offset_ns + round(1e9 * start_s)
        span = self._tracer.start_span(
            label.name, attributes=_attributes(label), start_time=begin_ns
        )
        span.end(self._offset_ns + round(1e9 * end_s))

    def add_event(self, event: ProfilingEvent) -> None:
        """Add a backend's measurement, if the thread is in a span that it is a part of."""
        if not self._current_span().is_recording():
            return
        self.add(event, event.start_us / 1e6, event.end_us / 1e6)


def _attributes(label: EventLabel | ProfilingEvent) -> dict[str, str]:
    known = {
        "armpy.phase": phase_of(label.kind, label.name, label.operation).value,
        "armpy.kind": label.kind.value,
        "armpy.backend": label.backend,
        "armpy.operation": label.operation,
        "armpy.layer": label.layer,
        "armpy.graph": label.graph,
        "armpy.kernel": label.kernel,
    }
    return {name: text for name, text in known.items() if text}


def spans_for_application() -> Spans | None:
    """Make the spans for the application's tracer; None if it has none.

    OpenTelemetry is not imported for those who do not use it: an application that traces has
    imported it, and set a provider, before it loads networks.
    """
    if "opentelemetry.trace" not in sys.modules:
        return None
    from opentelemetry import trace  # noqa: PLC0415 - few trace

    provider = trace.get_tracer_provider()
    if isinstance(provider, trace.ProxyTracerProvider):
        return None
    return Spans(provider.get_tracer("armpy", __version__), trace.get_current_span)
