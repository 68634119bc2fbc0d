"""OpenTelemetry spans for the events of a profile, in applications that trace."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from armpy import __version__
from armpy.profiling.events import EventLabel, ProfilingEvent
from armpy.profiling.phases import phase_of

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer


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
