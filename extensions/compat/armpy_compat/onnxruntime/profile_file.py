"""Profiles in the form of ONNX Runtime's files."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from armpy import Model
from armpy.profiling import EventKind, ProfilingEvent


class ProfileFile:
    """The profile of one session.

    Parameters
    ----------
    prefix : str
        First part of the file's name.
    start_s : float
        When the session began, by `time.perf_counter`.

    Attributes
    ----------
    start_ns : int
        When it began, by the system's clock.
    """

    def __init__(self, prefix: str, start_s: float) -> None:
        self.start_ns = time.time_ns() - round(1e9 * (time.perf_counter() - start_s))
        self._start_s = start_s
        moment = datetime.now().strftime("%Y-%m-%d_%H-%M-%S_%f")[:-3]
        self._path = f"{prefix}_{moment}.json"
        self._session: list[tuple[str, float, float]] = []

    def add(self, name: str, start_s: float) -> None:
        """Add what the session has done since a time of `time.perf_counter`."""
        self._session.append((name, start_s, time.perf_counter()))

    def write(self, model: Model | None) -> str:
        """Write the file and return its path."""
        events = [*self._session_events(), *(self._events(model) if model is not None else ())]
        lines = ",\n".join(map(json.dumps, events))
        with open(self._path, "w", encoding="utf-8") as file:
            file.write(f"[\n{lines}\n]\n")
        return self._path

    def _session_events(self) -> Iterator[dict[str, Any]]:
        for name, start_s, end_s in self._session:
            yield _event("Session", name, 1e6 * (start_s - self._start_s), 1e6 * (end_s - start_s))

    def _events(self, model: Model) -> Iterator[dict[str, Any]]:
        """Executions and layers, as armpy's profiler has them."""
        if model.profiler is None:
            return
        for event in model.profiler.events:
            start_us = event.start_us - 1e6 * self._start_s
            if event.kind is EventKind.EXECUTION:
                yield _event("Session", "model_run", start_us, event.duration_us)
            elif event.kind in (EventKind.LAYER, EventKind.COMMAND):
                name = f"{event.layer or event.name}_kernel_time"
                arguments = _arguments(event)
                yield _event("Node", name, start_us, event.duration_us, arguments)


def _arguments(event: ProfilingEvent) -> dict[str, str]:
    """Facts about a node."""
    provider = f"{event.backend or 'CPU'}ExecutionProvider"
    return {"op_name": event.operation or event.name, "provider": provider, "kernel": event.kernel}


def _event(
    kind: str, name: str, start_us: float, duration_us: float, args: dict[str, str] | None = None
) -> dict[str, Any]:
    """An event in the form of Chrome's traces."""
    return {
        "cat": kind,
        "pid": os.getpid(),
        "tid": threading.get_native_id(),
        "dur": round(duration_us),
        "ts": round(start_us),
        "ph": "X",
        "name": name,
        "args": args or {},
    }
