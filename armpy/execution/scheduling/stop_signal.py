"""Stop signals of an execution: from its caller, or its deadline."""

from __future__ import annotations

import threading
import time
from copy import copy
from typing import Protocol

from armpy.backend import Cancellation
from armpy.core.arguments import check_seconds
from armpy.errors import ArmpyError, ExecutionCancelledError, ExecutionTimeoutError


class CancellationToken(Cancellation):
    """A cancellation that can be used for one execution after the other.

    Attributes
    ----------
    lock : Lock
        Held while it is decided whether an execution is stopped or has come to its end.
    """

    __slots__ = ("_is_committed", "_limit_s", "_reason", "_was_late", "lock")

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()
        self._is_committed = False
        self._was_late = False
        self._limit_s: float | None = None
        self._reason: ArmpyError | None = None

    def set(self, *, is_late: bool, reason: ArmpyError | None = None) -> bool:
        """Stop the running work, with `lock` held, for a reason of its own or the usual ones.

        Returns whether that can be.
        """
        # The caller's arrays are being written to: half of a result is worse than a late one.
        if self._is_committed:
            return False
        # The first one to stop it gives the reason.
        if not self._flag[0]:
            self._was_late = is_late
            self._reason = reason
            # Last: workers look at it without the lock, and then ask for the reason.
            self._flag[0] = 1
        return True

    def commit(self) -> None:
        """Begin what cannot be undone: from here on the execution is not stopped.

        Raises ExecutionCancelledError or ExecutionTimeoutError if it has been stopped.
        """
        with self.lock:
            if not self._is_committed:
                self.check()
                self._is_committed = True

    def reset(self, limit_s: float | None = None) -> None:
        """Reset it for the next execution, which may take `limit_s`; errors as of `deadline_in`."""
        self.deadline_s = deadline_in(limit_s)
        self._limit_s = limit_s
        self._is_committed = self._was_late = False
        self._reason = None
        self._flag[0] = 0

    @property
    def error(self) -> ArmpyError:
        """Return the error that a stopped execution raises."""
        if self._reason is not None:
            return copy(self._reason)  # which keeps the frames that it is raised by
        if self._was_late or not self._flag[0]:
            limit = f"the run to end within {self._limit_s or 0:g} s (deadline_s)"
            return ExecutionTimeoutError(
                "the execution was stopped at its deadline",
                expected=limit,
                fix="Raise deadline_s above the time of a run without it, or call "
                "model.warm_up() first",
            )
        return ExecutionCancelledError("the execution was cancelled")


def commit(cancellation: Cancellation | None) -> None:
    """Let an execution come to its end, unless stopped; errors as of `CancellationToken`."""
    if isinstance(cancellation, CancellationToken):
        cancellation.commit()
    elif cancellation is not None:
        cancellation.check()


class Acquirable(Protocol):
    """Lock, or anything else that is waited for as a lock is."""

    def acquire(self, *, timeout: float = -1) -> bool:
        """Take it; whether that was possible in time."""


def acquire(lock: Acquirable, cancellation: Cancellation | None) -> None:
    """Acquire a lock that others may hold for long.

    Raises ExecutionCancelledError or ExecutionTimeoutError if the execution is stopped before.
    """
    if cancellation is None:
        lock.acquire()
        return
    # In slices, as a stop cannot wake a thread that waits for a lock.
    while not lock.acquire(timeout=_SLICE_S):
        cancellation.check()


_SLICE_S = 0.002
"""How long to wait for a lock before looking whether to stop."""


_FOREVER_S = threading.TIMEOUT_MAX / 2
"""Longer than any wait: 2**64 - 1 ns stands for no limit in C."""


def deadline_in(duration_s: float | None) -> float | None:
    """Return the deadline of a task that begins now, by `time.perf_counter`; None for no limit.

    Raises InvalidArgumentError if it is not a time.
    """
    limit_s = check_seconds(duration_s, "deadline_s", failed="the deadline cannot be used")
    if limit_s is None or limit_s >= _FOREVER_S:
        return None
    return time.perf_counter() + limit_s
