"""Keeper: the process between the application and a worker, which ends the worker's children.

Notes
-----
The keeper starts the worker and does nothing but wait, for the worker's end or the application's;
then it ends the worker with all its descendants, those in sessions and groups of their own
included, and ends as the worker did. On Linux it is the descendants' *subreaper*: a process that
loses its parent becomes the keeper's child. So it only ever ends its own children. Their numbers
cannot be those of others: the system does not give a number anew before the parent has waited
for the child that had it, and only the keeper waits for these.

A control group would do as well, and few users may make one.

References
----------
Linux man-pages, prctl(2), PR_SET_CHILD_SUBREAPER.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from armpy.core.processes.helper import end_with_parent, set_attribute

if sys.platform == "win32":
    raise ImportError("a keeper forks, and Windows has a job in its place")

import resource

PID = struct.Struct("<i")
"""Form of the message with the worker's process number, from the keeper to the application."""

_PR_SET_CHILD_SUBREAPER = 36
_LOOK_S = 0.02
"""Interval of looking for children while some are ending."""
_END_S = 10.0
"""Time that children have to end; one of another user's cannot be ended."""


def keep(
    # A socket of the application's, which closes when the worker is to end, whatever it is doing.
    life: int,
    connection: int,  # the worker's, which the keeper has nothing to do with
) -> None:
    """Start the worker, which alone returns; the keeper leaves when all is over."""
    set_attribute(_PR_SET_CHILD_SUBREAPER, 1)
    woken, wake = socket.socketpair()
    wake.setblocking(False)
    before = signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, _do_nothing)  # which wakes the keeper
    keeper = os.getpid()
    worker = os.fork()
    if worker == 0:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.set_wakeup_fd(before)
        woken.close()
        wake.close()
        os.close(life)
        os.setsid()
        end_with_parent(keeper)
        return
    os.close(connection)
    try:
        with suppress(OSError):  # the application has gone, which is noticed next
            os.write(life, PID.pack(worker))
        status = _wait(worker, life, woken)
    finally:  # an error here is none for the worker to go on with
        _end_children(woken)
    _leave_as(status)


def adopts() -> bool:
    """Return whether this process's keeper adopts orphaned descendants, for `in_force`."""
    return sys.platform == "linux"


def _do_nothing(number: int, frame: object) -> None:
    """Have a handler, without which the system would not wake anybody."""


def _wait(worker: int, life: int, woken: socket.socket) -> int:
    """Wait for the worker's end, and bring it about when the application says so; its status."""
    poll = select.poll()
    for descriptor in (life, woken.fileno()):
        poll.register(descriptor, select.POLLIN)
    while True:
        status = _reap(worker)
        if status is not None:
            return status
        ready = [number for number, _ in poll.poll()]
        if woken.fileno() in ready:
            woken.recv(4096)
        if life in ready:
            poll.unregister(life)
            with suppress(ProcessLookupError):  # it has no group yet, or has left it
                os.killpg(worker, signal.SIGKILL)
            os.kill(worker, signal.SIGKILL)


def _reap(worker: int) -> int | None:
    """Wait for children that have ended; the worker's status, if it is one of them."""
    status = None
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == worker:
                status = ended[1]
    return status


def _end_children(woken: socket.socket) -> None:
    late_at = time.monotonic() + _END_S
    woken.settimeout(_LOOK_S)
    while time.monotonic() < late_at:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        for child in _children():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(child, signal.SIGKILL)
        with suppress(TimeoutError):
            woken.recv(4096)


def _children() -> Iterator[int]:
    mine = str(os.getpid())
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, IndexError):  # others end as they like
            if (entry / "stat").read_text().rpartition(")")[2].split()[1] == mine:
                yield int(entry.name)


def _leave_as(status: int) -> None:
    """End as the worker did, so that the application learns it of its own child."""
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with suppress(OSError):  # of SIGKILL, which needs none
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(abs(code))
