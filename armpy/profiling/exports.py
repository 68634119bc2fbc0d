"""Profiles as files: JSON with everything, and traces for Chrome's and Perfetto's viewers."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from armpy.profiling.counters import CounterSample
from armpy.profiling.events import EventKind, ProfilingEvent, statistics_of
from armpy.profiling.phases import phase_of
from armpy.profiling.saved import OTHER_DATA, other_data
from armpy.profiling.summary import summarize

if TYPE_CHECKING:
    from armpy.profiling.recorded import ProfileRecord

_Document = dict[str, Any]  # Any: whatever JSON can hold


def profile_json(recorded: ProfileRecord) -> str:
    """Events, phases of loading, counters and statistics of a profile as JSON text."""
    events = recorded.events
    summary = summarize(events, recorded.load_events, recorded.num_dropped)
    return json.dumps(
        {
            "unit": "us",
            "events": [asdict(event) for event in events],
            "load": [asdict(event) for event in recorded.load_events],
            "counters": [asdict(c) | {"kind": c.kind.value} for c in recorded.counters],
            "statistics": [asdict(s) | {"mean_us": s.mean_us} for s in statistics_of(events)],
            "summary": asdict(summary),
            "layers": [asdict(layer) for layer in recorded.layers],
            "dropped": recorded.num_dropped,
        }
    )


def chrome_trace(recorded: ProfileRecord) -> str:
    """A profile as Trace Event JSON.

    References
    ----------
    SymbolicTrace Event Format: complete events (X), asynchronous events (b, e), counters (C).
    """
    traced: list[_Document] = []
    for number, event in enumerate((*recorded.events, *recorded.load_events)):
        traced += _queued(number, event) if event.kind is EventKind.QUEUED else [_complete(event)]
    traced += map(_counted, recorded.counter_samples)
    summary = summarize(recorded.events, recorded.load_events, recorded.num_dropped)
    return json.dumps({"traceEvents": traced, OTHER_DATA: other_data(summary)})


def _complete(event: ProfilingEvent) -> _Document:
    args: _Document = dict(event.details)
    if event.kernel:
        args["kernel"] = event.kernel
    if event.kind is EventKind.LOAD:
        args |= {"backend": event.backend} if event.backend else {}
        args |= {"about": event.layer} if event.layer else {}
    args["phase"] = phase_of(event.kind, event.name, event.operation).value
    return {
        "name": event.name,
        "cat": _category(event),
        "ph": "X",
        "ts": event.start_us,
        "dur": event.duration_us,
        "pid": 0,
        "tid": event.thread,
        "args": args,
    }


def _queued(number: int, event: ProfilingEvent) -> list[_Document]:
    """Beginning and end of what goes on while its thread does something else."""
    common = {"name": event.name, "cat": "waiting", "id": number, "pid": 0, "tid": event.thread}
    args = {"phase": phase_of(event.kind, event.name).value}
    return [
        common | {"ph": "b", "ts": event.start_us, "args": args},
        common | {"ph": "e", "ts": event.end_us},
    ]


def _counted(sample: CounterSample) -> _Document:
    """A counter's value from a moment on."""
    return {
        "name": sample.name,
        "cat": sample.backend,
        "ph": "C",
        "ts": sample.time_us,
        "pid": 0,
        "args": {sample.name: sample.value},
    }


def _category(event: ProfilingEvent) -> str:
    """What viewers can filter by."""
    if event.kind in (EventKind.WAITING, EventKind.LOAD):
        return event.kind.value
    return event.backend or "armpy"
