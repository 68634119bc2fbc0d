"""Timing: how long an execution has taken on a device, as its backend tells."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class ExecutionTiming:
    """What an execution that is measured has taken on devices.

    Attributes
    ----------
    on_device_ns : int or None
        Nanoseconds; None as long as no backend has told any.

    Notes
    -----
    Workloads add to it from any thread. Since 1.3.
    """

    __slots__ = ("_lock", "on_device_ns")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.on_device_ns: int | None = None

    def add_device_time(self, duration_us: float) -> None:
        """Add the time that a piece of the execution has taken on the device.

        Parameters
        ----------
        duration_us : float
            Microseconds, 0 or more, waiting and copies to the device not counted.

        References
        ----------
        NNAPI HAL ``Timing.timeOnDevice``, in microseconds as well.
        """
        with self._lock:
            self.on_device_ns = (self.on_device_ns or 0) + max(0, round(duration_us * 1000))


_current: ContextVar[ExecutionTiming | None] = ContextVar("current_timing", default=None)


def current_timing() -> ExecutionTiming | None:
    """Where to tell how long the execution that is under way takes on the device.

    Returns
    -------
    ExecutionTiming or None
        None if nobody has asked for it to be measured.

    Notes
    -----
    To be asked in ``execute``, on the thread that calls it. Since 1.3.
    """
    return _current.get()


@contextmanager
def timed_by(timing: ExecutionTiming) -> Iterator[None]:
    """Let backends tell a timing what executions of this block take on their devices."""
    token = _current.set(timing)
    try:
        yield
    finally:
        _current.reset(token)
