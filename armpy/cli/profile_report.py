"""Report of `armpy run --profile`: the slowest steps, and all time by its parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from armpy.profiling import EventKind, Profiler, ProfilingEvent, Share, Summary, short_names
from armpy.profiling.events import EXECUTE, statistics_of

_NO_STEPS = (EventKind.WAITING, EventKind.QUEUED)


@dataclass(frozen=True, slots=True)
class StepReport:
    """Time of one step, all executions together.

    Parameters
    ----------
    name, backend : str
    count : int
        How often it was done.
    mean_us, max_us : float
    share : float
        Of the time of all executions.
    details : mapping of str to float
        What its backend says about it; see `armpy.backend.Measurement`.
    """

    name: str
    backend: str
    count: int
    mean_us: float
    max_us: float
    share: float
    details: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PartReport:
    """A part of the time.

    Parameters
    ----------
    name, backend : str
    total_us : float
        All executions together.
    share : float
        Of the time of all executions, or of loading.
    count : int
        How often it was done.
    operation, layer : str
        Of a layer; empty for what is none.
    short_name : str
        The layer's name without what all have in front; distinct among the layers.
    details : mapping of str to float
        Sums of what its backend says about it; see `armpy.backend.Measurement`.
    """

    name: str
    backend: str
    total_us: float
    share: float
    count: int = 0
    operation: str = ""
    layer: str = ""
    short_name: str = ""
    details: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CounterReport:
    """Value of a backend's counter, all executions together.

    Parameters
    ----------
    name, backend, unit : str
    value : float
    """

    name: str
    backend: str
    unit: str
    value: float


@dataclass(frozen=True, slots=True)
class ProfileReport:
    """Division of all time of a profile; see `armpy.profiling.Summary`.

    Parameters
    ----------
    runs : int
    wall_ms : float
        All executions added up: operations, overhead and waiting make 100 % of it.
    layers, operations, overhead, waiting : tuple of PartReport
    load_ms : float
    load : tuple of PartReport
        Phases of loading.
    counters : tuple of CounterReport
    dropped : int
        Events for which there was no room.
    """

    runs: int
    wall_ms: float
    layers: tuple[PartReport, ...]
    operations: tuple[PartReport, ...]
    overhead: tuple[PartReport, ...]
    waiting: tuple[PartReport, ...]
    load_ms: float
    load: tuple[PartReport, ...]
    counters: tuple[CounterReport, ...] = ()
    dropped: int = 0


def profile_report(profiler: Profiler) -> ProfileReport:
    """Where all of the time of a profile went."""
    counters = tuple(CounterReport(c.name, c.backend, c.unit, c.value) for c in profiler.counters)
    return summary_report(profiler.summary(), counters)


def summary_report(summary: Summary, counters: tuple[CounterReport, ...] = ()) -> ProfileReport:
    """Where all of the time went, as it is told."""
    return ProfileReport(
        summary.num_executions,
        summary.wall_ns / 1e6,
        _parts(summary.layers, summary.wall_ns),
        _parts(summary.operations, summary.wall_ns),
        _parts(summary.overhead, summary.wall_ns),
        _parts(summary.waiting, summary.wall_ns),
        summary.load_ns / 1e6,
        _parts(summary.load, summary.load_ns),
        counters,
        summary.num_dropped,
    )


def _parts(shares: Iterable[Share], whole_ns: int) -> tuple[PartReport, ...]:
    """Parts of a whole."""
    shares = list(shares)
    short = short_names(share.layer for share in shares if share.layer)
    return tuple(
        PartReport(
            s.name,
            s.backend,
            s.total_us,
            s.total_ns / whole_ns if whole_ns else 0.0,
            s.count,
            s.operation,
            s.layer,
            short.get(s.layer, ""),
            dict(s.details),
        )
        for s in shares
    )


def steps_of(profiler: Profiler) -> Iterator[StepReport]:
    """The steps of a profile; the share is 0 if no execution was measured as a whole.

    Steps that others are measured within are left out, so that no time counts twice.
    """
    events = [event for event in profiler.events if event.kind not in _NO_STEPS]
    statistics = statistics_of(events)
    outer = _outer_steps(events)
    total_us = sum(s.total_us for s in statistics if s.name == EXECUTE)
    details = {(event.name, event.backend): dict(event.details) for event in events}
    for step in statistics:
        if step.name != EXECUTE and (step.name, step.backend) not in outer:
            share = step.total_us / total_us if total_us else 0.0
            yield StepReport(
                step.name,
                step.backend,
                step.count,
                step.mean_us,
                step.max_us,
                share,
                details[step.name, step.backend],
            )


def _outer_steps(events: Sequence[ProfilingEvent]) -> set[tuple[str, str]]:
    """Names and backends of the events that others of the same thread lie within."""
    outer: set[tuple[str, str]] = set()
    open_events: dict[int, list[ProfilingEvent]] = {}
    for event in sorted(events, key=lambda e: (e.start_us, -e.duration_us)):
        around = open_events.setdefault(event.thread, [])
        while around and not _lies_within(event, around[-1]):
            around.pop()
        if around:
            outer.add((around[-1].name, around[-1].backend))
        around.append(event)
    return outer


def _lies_within(event: ProfilingEvent, other: ProfilingEvent) -> bool:
    """Whether an event that did not begin earlier is a part of another one."""
    # One that took no time may as well lie between two others.
    is_part = 0 < event.duration_us < other.duration_us
    return is_part and event.start_us + event.duration_us <= other.start_us + other.duration_us
