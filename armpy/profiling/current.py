"""The profile that belongs to what a thread is doing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, ParamSpec, Protocol, TypeVar

from armpy.core.system_trace import trace_section
from armpy.profiling.events import EXECUTE, EventKind, EventLabel

if TYPE_CHECKING:
    from armpy.profiling.profiler import Profiler

P = ParamSpec("P")
ResultT = TypeVar("ResultT")

_current: ContextVar[Profiler | None] = ContextVar("profiler", default=None)

_queued: ContextVar[tuple[float, float] | None] = ContextVar("queued", default=None)
"""Beginning and end of a wait that belongs to the next execution."""


_EXECUTION = EventLabel(EventKind.EXECUTION, EXECUTE)


@contextmanager
def profiled_by(profiler: Profiler | None) -> Iterator[None]:
    """Let phases and waits inside go to a profile; to none for None."""
    token = _current.set(profiler)
    try:
        yield
    finally:
        _current.reset(token)


def note_queue(since_s: float) -> None:
    """Say that what this context is for has waited until now, for an execution that is profiled."""
    _queued.set((since_s, time.perf_counter()))


def measured_execution(
    profiler: Profiler, run: Callable[P, ResultT], *args: P.args, **kwargs: P.kwargs
) -> ResultT:
    """Execute once, and record it in a profile at its end."""
    queued = _queued.get()
    if queued is not None:
        profiler.add_waiting("a free thread", *queued, is_ahead=True)
        # Recorded once: what this context executes later has not waited for it.
        _queued.set(None)
    token = _current.set(profiler)
    spans = profiler.spans
    started_s = time.perf_counter()
    try:
        with nullcontext() if spans is None else spans.around(_EXECUTION):
            result = run(*args, **kwargs)
        # After the call: a failed execution is not a measurement.
        profiler.add(EXECUTE, "", started_s, time.perf_counter())
    finally:
        _current.reset(token)
    return result


@contextmanager
def phase(name: str, backend: str = "", about: str = "") -> Iterator[None]:
    """Measure a phase of optimising or preparing a network, if that is profiled or traced.

    Parameters
    ----------
    name : str
        Name for people; see `armpy.profiling.armnn_json` for what Arm NN calls it.
    backend : str
        The backend that does it; empty for armpy itself.
    about : str
        Object of the phase.
    """
    with trace_section("armpy", name, backend, about):
        profiler = _current.get()
        if profiler is None:
            yield
            return
        spans, label = profiler.spans, EventLabel(EventKind.LOAD, name, backend, layer=about)
        started_s = time.perf_counter()
        try:
            with nullcontext() if spans is None else spans.around(label):
                yield
        finally:
            profiler.add_phase(name, backend, about, started_s, time.perf_counter())


def record_waiting(what: str, started_s: float) -> None:
    """Record a finished wait in the profile of this thread's execution, if it has one.

    Parameters
    ----------
    what : str
        The cause of the wait, such as ``the device Npu``.
    started_s : float
        Time of `time.perf_counter` when the wait began.
    """
    profiler = _current.get()
    if profiler is not None:
        profiler.add_waiting(what, started_s, time.perf_counter())


class Lock(Protocol):
    """Lock that one thread at a time can have."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take it; whether that was possible."""

    def release(self) -> None:
        """Give it back."""


class WatchedLock:
    """A lock that records in the profile of executions how long they wait for it.

    Parameters
    ----------
    what : str
        The cause of the wait.
    """

    def __init__(self, lock: Lock, what: str) -> None:
        self._lock = lock
        self._what = what

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *exc_info: object) -> None:
        self.release()

    def acquire(self, timeout: float | None = None) -> bool:
        """Acquire it as a `threading.Lock`."""
        # Nearly always it is free, and there is no wait to measure.
        if self._lock.acquire(blocking=False):
            return True
        started_s = time.perf_counter()
        # Semaphores and locks say in different ways that there is no limit.
        is_held = self._lock.acquire() if timeout is None else self._lock.acquire(timeout=timeout)
        record_waiting(self._what, started_s)
        return is_held

    def release(self) -> None:
        """Release it as a `threading.Lock`."""
        self._lock.release()
