"""Counters and measurements of backends, taken into the profile of one loaded network."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from armpy.backend import (
    Counter,
    IBackendProfiling,
    IBackendProfilingContext,
    LayerMeasurement,
    Measurement,
    OptionValues,
)
from armpy.core.vlog import wants_traceback
from armpy.errors import ArmpyError, InvalidArgumentError
from armpy.plugins.proxy.guard import BackendProxy
from armpy.plugins.proxy.guarded_call import ask_backend, call_method
from armpy.profiling import ProfilingEvent
from armpy.types import BackendId

if TYPE_CHECKING:
    from armpy.profiling import Profiler

_log = logging.getLogger("armpy.execution")


class BackendProfiling(IBackendProfiling):
    """A backend's way into the profile of one network."""

    def __init__(self, profiler: Profiler, backend_id: BackendId) -> None:
        self._profiler = profiler
        self._backend_id = backend_id

    def declare_counter(self, counter: Counter) -> None:
        """Announce a counter; it is shown as ``Profiler.counters`` even if it stays 0."""
        self._profiler.counter_store.declare(self._backend_id, counter)

    def add_to_counter(self, name: str, value: float) -> None:
        """Add to a counter, or set it."""
        self._profiler.counter_store.add(self._backend_id, name, value)

    def add_event(self, event: Measurement) -> None:
        """Add something that took time."""
        try:
            profiled = event_of(self._backend_id, event)
        except (AttributeError, TypeError, ValueError) as error:
            raise InvalidArgumentError(
                f"the measurement cannot be used: {error}",
                expected="an armpy.backend.Measurement, times and details being numbers",
                actual=type(event).__name__,
            ) from error
        self._profiler.add_event(profiled)


def open_profiling(
    backend: BackendProxy,
    options: OptionValues,  # model options
    profiler: Profiler | None,  # the network's
) -> tuple[IBackendProfiling | None, IBackendProfilingContext | None]:
    """Let a backend begin to measure one network, if that is profiled.

    One that fails is not measured from within.

    Returns
    -------
    IBackendProfiling or None
        The backend's way into the profile; None if there is none.
    IBackendProfilingContext or None
        The backend's objects.
    """
    if profiler is None:
        return None, None
    backend_id = backend.get_id()
    profiling = BackendProfiling(profiler, backend_id)
    try:
        context = backend.create_backend_profiling_context(options, profiling)
        if context is not None:
            call_method(backend_id, context, "enable_profiling", True)
    except ArmpyError as error:
        _log.warning(
            "%s; the profile goes without its measurements", error, exc_info=wants_traceback(_log)
        )
        # Counters need no context, so they still count.
        return profiling, None
    if context is not None:
        profiler.add_source(backend_id, partial(_measurements, backend_id, context))
    return profiling, context


def _measurements(backend_id: BackendId, context: IBackendProfilingContext) -> list[ProfilingEvent]:
    """A backend's own measurements since the last time."""

    # Read inside the boundary, as any look at an answer may run the backend's code.
    def take_measurements() -> object:
        measurements = context.take_measurements()
        if not isinstance(measurements, Mapping):
            return measurements
        return {str(name): float(duration_us) for name, duration_us in measurements.items()}

    def take_events() -> object:
        return [event_of(backend_id, event) for event in context.take_events()]

    durations_us = ask_backend(backend_id, dict, take_measurements)
    events = [ProfilingEvent(n, backend_id, 0.0, us, 0) for n, us in durations_us.items()]
    return [*events, *ask_backend(backend_id, list, take_events)]


def event_of(backend_id: BackendId, one: Measurement) -> ProfilingEvent:
    """A measurement as an event, of the types that it should have.

    Raises AttributeError, TypeError or ValueError if it is none.
    """
    details = {str(name): float(number) for name, number in one.details.items()}
    start_us, duration_us = float(one.start_us), float(one.duration_us)
    # A single NaN would spoil all sums of the profile, and its order.
    if not math.isfinite(start_us) or not 0 <= duration_us < math.inf:
        raise ValueError(f"{duration_us} us from {start_us} us on is not a finite span")
    event = ProfilingEvent(
        str(one.name), backend_id, start_us, duration_us, int(one.thread), details
    )
    if not isinstance(one, LayerMeasurement):
        return event
    for name in (one.operation, one.layer, one.kernel):
        if not isinstance(name, str):
            raise TypeError(f"a name is {name!r}, not text")
    return replace(event, operation=one.operation, layer=one.layer, kernel=one.kernel)
