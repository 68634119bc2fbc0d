"""Preparation in time: how long backends may take, and answers that come too late."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import wait
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from armpy.core.apart import begin_apart
from armpy.core.dataclass import dataclass
from armpy.errors import PreparationTimeoutError, QueueFullError
from armpy.types import BackendId

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Allowance:
    """Time allowed for each call of a backend, and for everything."""

    timeout_s: float | None = None
    deadline_s: float | None = None


_UNLIMITED = _Allowance()
# In the context, as preparations lie in each other: control flow loads networks within others'.
_ALLOWANCE: ContextVar[_Allowance] = ContextVar("allowance", default=_UNLIMITED)


@contextmanager
def time_per_part(timeout_s: float | None) -> Iterator[None]:
    """Let backends take so long for each part while a block runs; None for as long as they like."""
    # The deadline for all stays: time for a part never makes it later.
    token = _ALLOWANCE.set(_Allowance(timeout_s, _ALLOWANCE.get().deadline_s))
    try:
        yield
    finally:
        _ALLOWANCE.reset(token)


@contextmanager
def prepared_by(deadline_s: float | None) -> Iterator[None]:
    """Let all backends together take until a deadline, by `time.perf_counter`, in a block."""
    token = _ALLOWANCE.set(_Allowance(_ALLOWANCE.get().timeout_s, deadline_s))
    try:
        yield
    finally:
        _ALLOWANCE.reset(token)


def next_deadline() -> float | None:
    """Return the deadline of a preparation by `time.perf_counter`; None if there is none."""
    allowance = _ALLOWANCE.get()
    limits = [] if allowance.deadline_s is None else [allowance.deadline_s]
    if allowance.timeout_s is not None:
        limits.append(time.perf_counter() + allowance.timeout_s)
    return min(limits, default=None)


def in_time(
    backend_id: BackendId,  # whose preparation it is, for messages
    # By `time.perf_counter`. Without one, the preparation runs in the calling thread.
    deadline_s: float | None,
    prepare: Callable[[], T],
) -> T:
    """The answer of a preparation, if it comes before its deadline.

    Raises PreparationTimeoutError if the deadline has passed before it began, or passes before it
    is done; QueueFullError if the process can have no thread for it.

    Nothing in a process can stop a backend's native code. With a deadline, it runs in a thread of
    its own, which is abandoned when the deadline has passed: its later answer or error
    is dropped. So the caller has its answer in time even if the backend never comes back, for the
    price of a thread that may go on computing. Backends have to expect calls from several threads
    anyway.
    """
    # The usual case costs no thread and keeps the caller's traceback whole.
    if deadline_s is None:
        return prepare()
    started_s = time.perf_counter()
    # No thread is started for an answer that is late already.
    if started_s >= deadline_s:
        raise PreparationTimeoutError(
            "the deadline has passed before the preparation began", where=backend_id
        )
    try:
        done = begin_apart(prepare, f"armpy prepares for {backend_id}")
    # Python raises this if the system gives no more threads.
    except RuntimeError as error:
        raise QueueFullError(
            f"no thread can be started to prepare within the deadline: {error}",
            where=backend_id,
            fix="Let the process have more threads (ulimit -u), or prepare without a deadline",
        ) from error
    # Python refuses to wait for longer than TIMEOUT_MAX with an OverflowError.
    if not wait([done], min(deadline_s - started_s, threading.TIMEOUT_MAX)).done:
        raise PreparationTimeoutError(
            "the preparation takes too long and is no longer waited for",
            where=backend_id,
            expected=f"an answer within {_seconds(deadline_s - started_s)}",
            fix="Allow it more time, or prefer another backend",
        )
    return done.result()


def _seconds(duration_s: float) -> str:
    """A duration for people: three digits."""
    digits = max(0, 2 - math.floor(math.log10(duration_s))) if duration_s > 0 else 0
    return f"{duration_s:.{digits}f} s"
