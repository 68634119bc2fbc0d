"""Executions that a library starts, and that the host waits for."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from armpy.backend import Cancellation
from armpy.errors import BackendError
from armpy_native.arguments import Arguments
from armpy_native.library import Device

STOP_S = 10.0
"""Time that a library has to end an execution that has been cancelled, by its header."""

_LOOK_NS = 20_000_000
"""Time to wait for a library before looking whether its execution has been cancelled."""

_REUSE_S = 1.0
"""Time that the thread of an ended execution may take to report it."""

_TIMEOUT = 5
"""Number of ``AP_TIMEOUT``."""

_abandoned: list[object] = []
"""Objects that libraries may still use for executions that have not ended; never freed."""


def start_and_wait(
    device: Device,
    lock: AbstractContextManager[object],
    arguments: Arguments,
    cancellation: Cancellation | None,
    held: object,
) -> None:
    """Start an execution, and wait for its end.

    Parameters
    ----------
    device : Device
    lock : context manager
        Held while the library starts the execution.
    arguments : Arguments
    cancellation : Cancellation, optional
    held : object
        Objects that the library uses until the execution has ended, such as the program and the
        arrays that the arguments point to; kept for ever if the device is given up.

    Raises
    ------
    DeadObjectError
        If the device has been given up.
    BackendError
        If the library breaks the rules of the header; the device is given up.
    ArmpyError
        The library's error.
    """
    error = arguments.error_address
    table = device.library.table
    cancel = arguments.cancel_address(cancellation)
    arguments.event.value = None
    try:
        with lock:
            device.check_is_there("start")
            status = table.start(*arguments.tensors, cancel, arguments.event_address, error)
    except BaseException:  # such as Ctrl-C, which is raised after the call
        if arguments.event.value:
            table.wait(arguments.event, -1, error)
        raise
    if status:
        raise device.failure("start", status, arguments.error)
    event = arguments.event.value
    if not event:
        raise _give_up(device, held, "start", "returned no event")
    if not _is_new(device.events, event, arguments):
        raise _give_up(device, held, "start", "returned the event of another execution")
    try:
        status = _wait(table.wait, event, error, cancellation)
    except BaseException:  # after it, whether the execution has ended is unknown
        _give_up(device, held, "wait", "was interrupted")
        raise
    if status == _TIMEOUT:
        text = "the execution does not end"
        if cancellation is not None:
            text = f"the execution has not ended {STOP_S:g} s after it was cancelled"
        raise _give_up(device, held, "wait", text)
    del device.events[event]
    if status:
        raise device.failure("wait", status, arguments.error)


def _is_new(events: dict[int, object], event: int, arguments: Arguments) -> bool:
    """Whether no other execution has an event; it is entered among those under way.

    An address can be new again before the thread of its last execution has removed it.
    """
    late_s = time.monotonic() + _REUSE_S
    while events.setdefault(event, arguments) is not arguments:
        if time.monotonic() > late_s:
            return False
        time.sleep(0.001)
    return True


def _wait(
    wait: Callable[[int, int, int], int],
    event: int,
    error: int,
    cancellation: Cancellation | None,
) -> int:
    """Wait for the end of an execution; the library's status."""
    if cancellation is None:
        return wait(event, -1, error)
    while not cancellation.is_cancelled:
        status = wait(event, _LOOK_NS, error)
        if status != _TIMEOUT:
            return status
    return wait(event, round(STOP_S * 1e9), error)


def _give_up(device: Device, held: object, name: str, failed: str) -> BackendError:
    """Give up a device whose execution may go on; the error."""
    _abandoned.append(held)
    error = device.broken(name, failed)
    device.lost = str(error)
    return error
