"""Waiting for a process in time of its own."""

from __future__ import annotations

import select
import socket
import time
from contextlib import suppress
from pathlib import Path

_MOST = 3.0
"""How many times its limit a process may take that waits for a processor all the time."""


def starved_s(pid: int) -> float:
    """How long a process was ready to run and had no processor; 0 where the system does not tell.

    References
    ----------
    Linux kernel, ``Documentation/scheduler/sched-stats.rst``: the second number of
    ``/proc/PID/schedstat``, in nanoseconds, of the main thread.
    """
    with suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) * 1e-9
    return 0.0


def await_answer(connection: socket.socket, pid: int, timeout_s: float) -> None:
    """Wait until there is something to read from a process.

    Time for which the process wanted a processor and others had them does not count, up to three
    times the limit: what is slow on a busy machine has not hung.

    Raises
    ------
    TimeoutError
        If nothing came in time.
    """
    start, starved = time.monotonic(), starved_s(pid)
    end = start + timeout_s
    poll = select.poll()  # which takes no descriptor, as other ways of waiting do
    poll.register(connection, select.POLLIN)
    while not poll.poll(max(end - time.monotonic(), 0.0) * 1e3):
        later = min(starved_s(pid) - starved, (_MOST - 1) * timeout_s) + start + timeout_s
        if later <= time.monotonic():
            raise TimeoutError
        end = later
