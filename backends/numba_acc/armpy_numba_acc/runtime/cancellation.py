"""Stops executions from other threads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np


class Cancellation:
    """Something that another thread can stop executions by, for good.

    Notes
    -----
    An execution looks at it between commands, and some times within a long one.

    Examples
    --------
    >>> from threading import Timer
    >>> deadline = Cancellation()
    >>> timer = Timer(0.5, deadline.cancel)
    >>> with cancellable(deadline):
    ...     timer.start()  # and run a network here
    >>> timer.cancel()
    """

    __slots__ = ("_flag", "address")

    def __init__(self) -> None:
        self._flag = np.zeros(1, np.int64)
        self.address = int(self._flag.ctypes.data)
        """Where the integer is that native code looks at: 0, or something else to stop."""

    def cancel(self) -> None:
        """Stop the executions that are under way with it, and all later ones."""
        self._flag[0] = 1

    @property
    def is_cancelled(self) -> bool:
        """Whether `cancel` has been called."""
        return bool(self._flag[0])


_current: ContextVar[Cancellation | None] = ContextVar("cancellation", default=None)

current_cancellation = _current.get
"""What stops the executions that begin in this context; None if nothing does."""


@contextmanager
def cancellable(cancellation: Cancellation) -> Iterator[Cancellation]:
    """Let executions that begin in a block be stopped.

    Notes
    -----
    They raise `armpy.errors.ExecutionTimeoutError` then, and what their outputs hold is not
    known.
    """
    token = _current.set(cancellation)
    try:
        yield cancellation
    finally:
        _current.reset(token)
