"""Executions that a library starts, and that the host waits for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from ctypes import addressof, c_void_p
from typing import TYPE_CHECKING

from armpy.backend import Cancellation
from armpy.errors import BackendError
from armpy.ops.operation import Array

if TYPE_CHECKING:
    from armpy_native.library import Device
    from armpy_native.program import Arguments, Program

STOP_S = 10.0
"""How long a library has to end an execution that has been cancelled, by its header."""

_LOOK_NS = 20_000_000
"""How long to wait for a library before looking whether its execution has been cancelled."""

_REUSE_S = 1.0
"""How long the thread of an ended execution may take to say so."""

_TIMEOUT = 5
"""``AP_TIMEOUT``."""

_abandoned: list[object] = []
"""What libraries may still use for executions that have not ended; never freed."""


class Events:
    """Handles of a device's executions that are under way."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._handles: set[int] = set()

    def add(self, handle: int) -> bool:
        """Add a new handle; False if another execution has it.

        An address can be new again before the thread that has waited for its last execution
        removes it.
        """
        with self._changed:
            is_new = self._changed.wait_for(lambda: handle not in self._handles, _REUSE_S)
            self._handles.add(handle)
            return is_new

    def remove(self, handle: int) -> None:
        """Remove the handle of an execution that has ended."""
        with self._changed:
            self._handles.discard(handle)
            self._changed.notify_all()


def start_and_wait(
    program: Program,
    arguments: Arguments,
    arrays: Sequence[Array],
    cancellation: Cancellation | None,
) -> None:
    """Start an execution, and wait for its end.

    Parameters
    ----------
    program : Program
    arguments : Arguments
    arrays : sequence of ndarray
        What the arguments point to.
    cancellation : Cancellation, optional

    Raises
    ------
    DeadObjectError
        If the device has been given up.
    BackendError
        If the library breaks the rules of the header; the device is given up.
    ArmpyError
        What the library reports.
    """
    device, error = program.device, arguments.error_address
    table = device.library.table
    held = program, arguments, arrays
    event = c_void_p()
    try:
        with program.lock:
            device.check_is_there("start")
            status = table.start(
                *arguments.tensors,
                arguments.cancel_address(cancellation),
                addressof(event),
                error,
            )
    except BaseException:  # such as Ctrl-C, which is raised after the call
        if event.value:
            table.wait(event, -1, error)
        raise
    if status:
        raise device.failure("start", status, arguments.error)
    if not event.value:
        raise _give_up(device, held, "start", "returned no event")
    if not device.events.add(event.value):
        raise _give_up(device, held, "start", "returned the event of another execution")
    try:
        status = _wait(table.wait, event.value, error, cancellation)
    except BaseException:  # after it, whether the execution has ended is unknown
        _give_up(device, held, "wait", "was interrupted")
        raise
    if status == _TIMEOUT:
        text = "the execution does not end"
        if cancellation is not None:
            text = f"the execution has not ended {STOP_S:g} s after it was cancelled"
        raise _give_up(device, held, "wait", text)
    device.events.remove(event.value)
    if status:
        raise device.failure("wait", status, arguments.error)


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
