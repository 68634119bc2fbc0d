"""Summaries of profiles in files: in traces, beside what viewers show, and in JSON documents."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from armpy.errors import ParserError
from armpy.profiling.shares import Share
from armpy.profiling.summary import Summary

_Document = Mapping[str, Any]  # Any: whatever JSON can hold

OTHER_DATA = "otherData"
"""Where traces have what viewers leave alone."""

_PARTS = ("layers", "operations", "overhead", "waiting", "beside", "load")


def other_data(summary: Summary) -> dict[str, object]:
    """What a trace has of a summary."""
    return {"armpy_summary": asdict(summary)}


def read_summary(path: str | os.PathLike[str]) -> Summary:
    """Read where all of the time went from a file.

    Parameters
    ----------
    path : path
        A trace of ``armpy run --profile FILE.json`` or `Profiler.to_chrome_trace`, or what
        `Profiler.to_json` gives.

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
        found = document.get("summary") or document.get(OTHER_DATA, {})["armpy_summary"]
        return _summary(found)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ParserError(
            "there is no profile in the file",
            where=where,
            expected="a file that 'armpy run MODEL --profile FILE.json' has written",
            fix="Write it anew: files of earlier versions have events only",
        ) from error


def _summary(document: _Document) -> Summary:
    """A summary of what `asdict` has made of one."""
    known = {field.name for field in fields(Summary)}
    values = {name: value for name, value in document.items() if name in known}
    for name in _PARTS:
        values[name] = tuple(map(_share, values[name]))
    summary = Summary(**values)
    numbers = (summary.num_executions, summary.wall_ns, summary.elapsed_ns, summary.load_ns)
    if not all(type(number) is int and number >= 0 for number in numbers):
        raise ValueError("a time is no number")
    return summary


def _share(document: _Document) -> Share:
    """A part of the time."""
    share = Share(**document)
    texts = (share.name, share.backend, share.operation, share.layer)
    if not all(type(text) is str for text in texts) or type(share.total_ns) is not int:
        raise TypeError("a part of the time is not as it should be")
    return share
