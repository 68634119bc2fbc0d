"""Rules about what a backend measures of a network."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import suppress

from armpy.backend import (
    Counter,
    CounterKind,
    IBackendProfiling,
    IBackendProfilingContext,
    Measurement,
    NetworkResources,
)
from armpy.errors import InvalidArgumentError
from armpy_conformance.backend_under_test import BackendUnderTest
from armpy_conformance.contract.case import NothingToKeepError, check
from armpy_conformance.contract.driven import Driven, ExecutionTensors, backend_of_runtime
from armpy_conformance.contract.networks import sample_bench, samples

_SLACK_US = 1000.0
_APART_S = 0.005
"""Time before an execution, so that events of an earlier one are not taken for its own."""

_LEAST_IDENT = 1 << 16
"""Identifiers of threads are addresses; smaller numbers are positions or the system's own."""


class Record(IBackendProfiling):
    """A profile that records a backend's measurements and the errors in them."""

    def __init__(self) -> None:
        self.counters: dict[str, Counter] = {}
        self.values: dict[str, float] = {}
        self.events: list[Measurement] = []
        self.problems: list[str] = []
        self._lock = threading.Lock()

    def declare_counter(self, counter: Counter) -> None:
        """Write it down; another one of the same name is an error."""
        with self._lock:
            if self.counters.setdefault(counter.name, counter) != counter:
                self._refuse(f"two counters are called '{counter.name}'")
            if not isinstance(counter.kind, CounterKind) or not counter.name.strip():
                self._refuse(f"the counter {counter!r} has no name or no kind")

    def add_to_counter(self, name: str, value: float) -> None:
        """Add or set; a counter that was never declared is an error."""
        with self._lock:
            if name not in self.counters:
                self._refuse(f"the counter '{name}' was never declared")
            is_total = self.counters[name].kind is CounterKind.TOTAL
            if is_total and value < 0:
                self._refuse(f"{value} is added to the total '{name}'")
            self.values[name] = value + (self.values.get(name, 0.0) if is_total else 0.0)

    def add_event(self, event: Measurement) -> None:
        """Write it down."""
        with self._lock:
            self.events.append(event)

    def _refuse(self, problem: str) -> None:
        """Store the failure, and raise it."""
        self.problems.append(problem)
        raise InvalidArgumentError(problem, where="IBackendProfiling")


class _ProfiledNetwork:
    """A network that is profiled."""

    def __init__(self, subject: BackendUnderTest, number: int) -> None:
        backend = backend_of_runtime(subject)
        self.record = Record()
        self.context: IBackendProfilingContext | None = None
        resources = NetworkResources()
        with suppress(InvalidArgumentError):  # it is on the record
            self.context = backend.create_backend_profiling_context(
                resources.model_options, self.record
            )
        if self.context is not None:
            self.context.enable_profiling(True)
        network_resources = NetworkResources(profiling=self.record, profiling_context=self.context)
        cases = samples(subject)
        self.driven = Driven(
            backend, sample_bench(subject, cases[number % len(cases)]), network_resources
        )
        self.memory: ExecutionTensors = self.driven.memory()

    def run(self, when: str) -> None:
        """Execute once; errors of the record are reported later."""
        with suppress(InvalidArgumentError):
            self.driven.run(self.memory, when)

    def events(self) -> Sequence[Measurement]:
        """Everything with times since the last call."""
        events, self.record.events = self.record.events, []
        return [*events, *(self.context.take_events() if self.context is not None else ())]

    def has_measured(self) -> bool:
        """Return whether there is anything new that was measured; then forget it."""
        durations = self.context.take_measurements() if self.context is not None else {}
        values, self.record.values = self.record.values, {}
        totals = [n for n in values if self.record.counters[n].kind is CounterKind.TOTAL]
        return bool(self.events()) or any(durations.values()) or any(values[n] for n in totals)


def _profiled(subject: BackendUnderTest, number: int = 0) -> _ProfiledNetwork:
    """A network of which the backend measures anything."""
    network = _ProfiledNetwork(subject, number)
    for _ in range(2):
        network.run("while it is profiled")
    if not network.has_measured() and not network.record.counters and not network.record.problems:
        raise NothingToKeepError("it measures nothing")
    return network


def counters_are_declared(subject: BackendUnderTest) -> None:
    """Nothing is added to a counter before it was declared, with a name of its own and a kind."""
    network = _profiled(subject)
    network.run("while it is profiled")
    check(not network.record.problems, "; ".join(dict.fromkeys(network.record.problems)))


def events_lie_in_their_execution(subject: BackendUnderTest) -> None:
    """Events lie within their execution by the core's clock, in threads that exist, named alike."""
    network = _profiled(subject)
    network.events()
    time.sleep(_APART_S)
    started_us = time.perf_counter() * 1e6
    network.run("while it is profiled")
    ended_us = time.perf_counter() * 1e6
    threads = {thread.native_id for thread in threading.enumerate()}
    for event in (events := network.events()):
        check(
            not event.thread or (event.thread > _LEAST_IDENT and event.thread not in threads),
            f"'{event.name}' took place in the thread {event.thread}, which is no number of "
            "threading.get_ident",
        )
        end_us = event.start_us + event.duration_us
        is_inside = started_us - _SLACK_US <= event.start_us and end_us <= ended_us + _SLACK_US
        check(
            is_inside and event.duration_us >= 0,
            f"'{event.name}' took place from {event.start_us:.0f} to {end_us:.0f} us, "
            f"the execution from {started_us:.0f} to {ended_us:.0f}",
        )
    network.run("while it is profiled")
    again = network.events()
    check(
        _names(events) == _names(again),
        f"two executions have events of other names: {_names(events)}, then {_names(again)}",
    )


def _names(events: Sequence[Measurement]) -> list[str]:
    """Names of events, each once."""
    return sorted({event.name for event in events})


def networks_are_measured_apart(subject: BackendUnderTest) -> None:
    """Events of one network are not in another one's profile."""
    network, other = _profiled(subject), _profiled(subject, 1)
    network.has_measured()
    other.has_measured()
    network.run("beside another network that is profiled")
    check(not other.has_measured(), "executions of one network are in another one's profile")
