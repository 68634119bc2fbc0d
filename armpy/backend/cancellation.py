"""The execution that is under way: what stops it, and how urgent it is."""

from __future__ import annotations

import time
from contextvars import ContextVar

import numpy as np

from armpy.errors import ArmpyError, ExecutionCancelledError, ExecutionTimeoutError
from armpy.types import Priority

_current_priority: ContextVar[Priority] = ContextVar("current_priority", default=Priority.MEDIUM)

# What runs executions calls these, as a `with` statement takes as long as they do.
enter_priority = _current_priority.set
leave_priority = _current_priority.reset


class Cancellation:
    """Something that executions are stopped by, from any thread and for good.

    Parameters
    ----------
    deadline_s : float, optional
        When it stops them by itself, by `time.perf_counter`; None for never.

    Attributes
    ----------
    address : int
        Where native code finds an int64 that is 0 until `cancel` is called.

    Notes
    -----
    Its owner calls `cancel`, also when the deadline has come: native code
    looks at the integer alone. A backend with the capability ``CancellableExecution`` looks often
    enough to stop within 10 ms, by raising `error`.

    Examples
    --------
    >>> cancellation = Cancellation()
    >>> with cancellable(cancellation):
    ...     current_cancellation() is cancellation
    True
    """

    __slots__ = ("_flag", "address", "deadline_s")

    def __init__(self, deadline_s: float | None = None) -> None:
        # An array, as compiled code looks at the flag by its address, between its own steps.
        flag = np.zeros(1, np.int64)
        self.address = int(flag.ctypes.data)
        self._flag = flag.data  # of which an element is read in a third of the time
        self.deadline_s = deadline_s

    def cancel(self) -> None:
        """Stop the executions that are under way with it, and all later ones."""
        # Without a lock: it goes from 0 to 1 only, and never back.
        self._flag[0] = 1

    @property
    def is_late(self) -> bool:
        """Return whether its deadline has passed."""
        return self.deadline_s is not None and time.perf_counter() >= self.deadline_s

    @property
    def is_cancelled(self) -> bool:
        """Return whether executions are to stop: it was cancelled, or its deadline has passed."""
        return bool(self._flag[0]) or self.is_late

    @property
    def error(self) -> ArmpyError:
        """Return the error that a stopped execution raises."""
        if self.is_late:
            return ExecutionTimeoutError("the execution was stopped at its deadline")
        return ExecutionCancelledError("the execution was cancelled")

    def check(self) -> None:
        """Raise `error` if executions are to stop.

        Raises
        ------
        ExecutionTimeoutError
            If the deadline has passed.
        ExecutionCancelledError
            If it was cancelled.
        """
        # Between any two layers it comes by here, where properties would take most of the time.
        if self._flag[0] or (self.deadline_s is not None and self.is_late):
            raise self.error


_current: ContextVar[Cancellation | None] = ContextVar("cancellation", default=None)


def current_cancellation() -> Cancellation | None:
    """Give what can stop this context's execution, or None."""
    return _current.get()


class cancellable:  # noqa: N801 - called like a function
    """Let executions that begin in a block be stopped; their outputs are then undefined.

    Parameters
    ----------
    cancellation : Cancellation
        The block's argument, too.
    """

    # No generator, which takes as long as a small layer.
    __slots__ = ("_cancellation", "_token")

    def __init__(self, cancellation: Cancellation) -> None:
        self._cancellation = cancellation

    def __enter__(self) -> Cancellation:
        self._token = _current.set(self._cancellation)
        return self._cancellation

    def __exit__(self, *exc_info: object) -> None:
        _current.reset(self._token)


def current_priority() -> Priority:
    """Return the priority of the current execution among the application's.

    To be asked while a workload is executed. `PreparationRequest.priority` says what the network
    was prepared for; an execution may be started with another one.
    """
    return _current_priority.get()
