"""The profile that belongs to what a thread is doing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from armpy.profiling.profiler import Profiler

_current: ContextVar[Profiler | None] = ContextVar("profiler", default=None)


@contextmanager
def profiled_by(profiler: Profiler | None) -> Iterator[None]:
    """Let phases and waits inside go to a profile; to none for None."""
    token = _current.set(profiler)
    try:
        yield
    finally:
        _current.reset(token)


@contextmanager
def phase(name: str, backend: str = "") -> Iterator[None]:
    """Measure a phase of optimising or preparing a network, if that is profiled.

    Parameters
    ----------
    name : str
        For people; see `armpy.profiling.armnn_json` for what Arm NN calls it.
    backend : str
        Who does it; empty for armpy itself.
    """
    profiler = _current.get()
    if profiler is None:
        yield
        return
    started_s = time.perf_counter()
    try:
        yield
    finally:
        profiler.add_phase(name, backend, started_s, time.perf_counter())


def record_waiting(what: str, started_s: float) -> None:
    """Tell the profile of the execution in this thread, if it has one, of a wait that is over.

    Parameters
    ----------
    what : str
        What it has waited for, such as ``the device Npu``.
    started_s : float
        Time of `time.perf_counter` when the wait began.
    """
    profiler = _current.get()
    if profiler is not None:
        profiler.add_waiting(what, started_s, time.perf_counter())
