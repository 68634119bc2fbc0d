"""Profiles of a runtime's networks, with the backends' own measurements."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import partial

from armpy.backend import IBackendProfilingContext, Measurement
from armpy.errors import ArmpyError
from armpy.logs import wants_traceback
from armpy.plugins.boundary import ask_backend, call_method
from armpy.plugins.guard import GuardedBackend
from armpy.profiling import Profiler, ProfilingEvent
from armpy.types import BackendId

_log = logging.getLogger("armpy.runtime")


def make_profiler(backends: Sequence[GuardedBackend]) -> Profiler:
    """A profiler that also asks the backends for their own measurements."""
    profiler = Profiler()
    for backend in backends:
        try:
            _add_measurements(profiler, backend)
        except ArmpyError as error:
            _log.warning(
                "%s; the profile goes without its measurements",
                error,
                exc_info=wants_traceback(_log),
            )
    return profiler


def _add_measurements(profiler: Profiler, backend: GuardedBackend) -> None:
    """Let a backend add its own measurements to a profile."""
    context = backend.create_backend_profiling_context()
    if context is not None:
        backend_id = backend.backend_id
        call_method(backend_id, context, "enable_profiling", True)
        profiler.add_source(backend_id, partial(_measurements, backend_id, context))


def _measurements(backend_id: BackendId, context: IBackendProfilingContext) -> list[ProfilingEvent]:
    """A backend's own measurements since the last time."""

    def take_measurements() -> object:
        found = context.take_measurements()
        if not isinstance(found, Mapping):
            return found
        return {str(name): float(duration_us) for name, duration_us in found.items()}

    def take_events() -> object:
        return [_event(backend_id, one) for one in context.take_events()]

    durations_us = ask_backend(backend_id, dict, take_measurements)
    events = [ProfilingEvent(n, backend_id, 0.0, us, 0) for n, us in durations_us.items()]
    return [*events, *ask_backend(backend_id, list, take_events)]


def _event(backend_id: BackendId, one: Measurement) -> ProfilingEvent:
    """A measurement as an event, of the types that it should have."""
    details = {str(name): float(number) for name, number in one.details.items()}
    start_us, duration_us = float(one.start_us), float(one.duration_us)
    return ProfilingEvent(
        str(one.name), backend_id, start_us, duration_us, int(one.thread), details
    )
