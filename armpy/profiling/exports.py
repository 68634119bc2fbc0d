"""Profiles as files: JSON with everything, traces for viewers, and summaries read from both."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from armpy.core.arguments import check_instance
from armpy.errors import ParserError
from armpy.profiling.events import EventKind, ProfilingEvent, statistics_of
from armpy.profiling.phases import phase_of
from armpy.profiling.profiler import Profiler
from armpy.profiling.summary import Share, Summary, summarize

_Document = dict[str, Any]  # Any: whatever JSON can hold
_OTHER_DATA = "otherData"  # where traces have what viewers leave alone

_PARTS = ("layers", "operations", "overhead", "waiting", "beside", "load")


def to_json(profiler: Profiler) -> str:
    """Events, phases of loading, counters and statistics of a profile as JSON text."""
    _check(profiler)
    events = profiler.events
    summary = summarize(events, profiler.load_events, profiler.num_dropped)
    return json.dumps(
        {
            "unit": "us",
            "events": [asdict(event) for event in events],
            "load": [asdict(event) for event in profiler.load_events],
            "counters": [asdict(c) | {"kind": c.kind.value} for c in profiler.counters],
            "statistics": [asdict(s) | {"mean_us": s.mean_us} for s in statistics_of(events)],
            "summary": asdict(summary),
            "layers": [asdict(layer) for layer in profiler.layers],
            "dropped": profiler.num_dropped,
        }
    )


def to_chrome_trace(profiler: Profiler) -> str:
    """A profile in the JSON format that Chrome's and Perfetto's trace viewers read.

    References
    ----------
    SymbolicTrace Event Format: complete events (X), asynchronous events (b, e), counters (C).
    """
    _check(profiler)
    traced: list[_Document] = []
    for number, event in enumerate((*profiler.events, *profiler.load_events)):
        traced += _queued(number, event) if event.kind is EventKind.QUEUED else [_complete(event)]
    for sample in profiler.counter_store.samples:
        traced.append(
            {
                "name": sample.name,
                "cat": sample.backend,
                "ph": "C",
                "ts": sample.time_us,
                "pid": 0,
                "args": {sample.name: sample.value},
            }
        )
    summary = summarize(profiler.events, profiler.load_events, profiler.num_dropped)
    return json.dumps({"traceEvents": traced, _OTHER_DATA: {"armpy_summary": asdict(summary)}})


def _check(profiler: object) -> None:
    """Check that there is a profile."""
    fix = "Load with RuntimeOptions(profiling=True)"
    check_instance(profiler, "profiler", Profiler, fix=fix)


def _complete(event: ProfilingEvent) -> _Document:
    args: _Document = dict(event.details)
    if event.kernel:
        args["kernel"] = event.kernel
    if event.kind is EventKind.LOAD:
        args |= {"backend": event.backend} if event.backend else {}
        args |= {"about": event.layer} if event.layer else {}
    args["phase"] = phase_of(event.kind, event.name, event.operation).value
    is_own = event.kind in (EventKind.WAITING, EventKind.LOAD)
    category = event.kind.value if is_own else event.backend or "armpy"
    return {
        "name": event.name,
        "cat": category,  # what viewers can filter by
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


def read_summary(path: str | os.PathLike[str]) -> Summary:
    """Read where all of the time went from a file.

    Parameters
    ----------
    path : path
        A trace of ``armpy profile MODEL -o FILE.json`` or `to_chrome_trace`, or what
        `to_json` gives.

    Raises
    ------
    ParserError
        If there is none in it.
    OSError
        If it cannot be read.
    """
    where = os.fspath(path)
    with open(path, "rb") as file:
        text = file.read()
    try:
        document = json.loads(text)
        summary = document.get("summary") or document.get(_OTHER_DATA, {})["armpy_summary"]
        return _summary(summary)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ParserError(
            "there is no profile in the file",
            where=where,
            expected="a file that 'armpy profile MODEL -o FILE.json' has written",
            fix="Write it again: files of earlier versions have events only",
        ) from error


def _summary(document: Mapping[str, Any]) -> Summary:
    """A summary of what `asdict` has made of one."""
    known = {field.name for field in fields(Summary)}
    values = {name: value for name, value in document.items() if name in known}
    for name in _PARTS:
        values[name] = tuple(map(_share, values[name]))
    values["run_ns"] = tuple(values.get("run_ns", ()))
    summary = Summary(**values)
    numbers = (
        summary.num_executions,
        summary.wall_ns,
        summary.elapsed_ns,
        summary.load_ns,
        *summary.run_ns,
    )
    if not all(type(number) is int and number >= 0 for number in numbers):
        raise ValueError("a time is not a number")
    return summary


def _share(document: Mapping[str, Any]) -> Share:
    share = Share(**document)
    texts = (share.name, share.backend, share.operation, share.layer)
    numbers = (share.total_ns, *share.run_ns)
    if not all(type(text) is str for text in texts) or any(type(n) is not int for n in numbers):
        raise TypeError("a share of the time has fields of the wrong type")
    return share
