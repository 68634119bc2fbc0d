"""Timing: the duration of an execution on a device, as measured by its backend."""

from __future__ import annotations

import threading
from contextvars import ContextVar

_lock = threading.Lock()
"""Shared by all timings, as few are updated and each briefly."""


class ExecutionTiming:
    """Device time of a measured execution.

    Attributes
    ----------
    on_device_ns : int or None
        Nanoseconds; None until a backend has reported them.

    Notes
    -----
    Workloads add to it from any thread.
    """

    __slots__ = ("on_device_ns",)

    def __init__(self) -> None:
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
        with _lock:
            self.on_device_ns = (self.on_device_ns or 0) + max(0, round(duration_us * 1000))


_current: ContextVar[ExecutionTiming | None] = ContextVar("current_timing", default=None)


# What runs executions calls these, as a `with` statement takes as long as they do.
enter_timing = _current.set
leave_timing = _current.reset


def current_timing() -> ExecutionTiming | None:
    """Return the timing to which the current execution reports its time on the device.

    Returns
    -------
    ExecutionTiming or None
        Receiver of times; None if no measurement was requested.

    Notes
    -----
    To be asked in ``execute``, on the thread that calls it.
    """
    return _current.get()


class timed_by:  # noqa: N801 - called like a function
    """Collect in a timing what executions of this block take on their devices."""

    # No generator, as it would add to the measured time.
    __slots__ = ("_timing", "_token")

    def __init__(self, timing: ExecutionTiming) -> None:
        self._timing = timing

    def __enter__(self) -> None:
        self._token = _current.set(self._timing)

    def __exit__(self, *exc_info: object) -> None:
        _current.reset(self._token)
