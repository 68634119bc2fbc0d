"""Processes that a backend starts, and the faults that ended them."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

_FAULTS = tuple(
    getattr(signal, name)
    for name in ("SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGSEGV", "SIGSYS")
    if hasattr(signal, name)
)
"""Signals by which a process ends for its own mistake."""


def watch_children() -> Callable[[], list[str]]:
    """Note from now on which processes of this one end by a fault; return what lists them.

    Notes
    -----
    It sees processes that `subprocess` or `os.waitpid` waits for, and ended ones that are not
    waited for. A backend that calls the C function ``waitpid`` itself hides its own.
    """
    ended: dict[int, int] = {}  # the signal, by the process's number
    if not hasattr(os, "waitid"):  # the system ends no process by a signal
        return lambda: []
    wait = os.waitpid

    def waitpid(pid: int, options: int, /) -> tuple[int, int]:
        number, status = wait(pid, options)
        if number and os.WIFSIGNALED(status):
            ended[number] = os.WTERMSIG(status)
        return number, status

    class WatchedPopen(subprocess.Popen[bytes]):
        def __setattr__(self, name: str, value: object) -> None:
            super().__setattr__(name, value)
            if name == "returncode" and isinstance(value, int) and value < 0:
                ended[self.pid] = -value

    # Before the backend's modules are imported, so that these find the watched ones.
    os.waitpid = waitpid
    subprocess.Popen = WatchedPopen  # type: ignore[assignment,misc]

    def faults() -> list[str]:
        ended.update(_not_waited_for())
        return [
            f"process {number} by {signal.Signals(number_of_signal).name}"
            for number, number_of_signal in sorted(ended.items())
            if number_of_signal in _FAULTS
        ]

    return faults


def _not_waited_for() -> Iterator[tuple[int, int]]:
    """Ended processes whose parent has not asked for their end, and the signals that ended them."""
    for path in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):  # the thread has ended, or another one waits for the process
            for number in map(int, path.read_text("ascii").split()):
                ended = os.waitid(os.P_PID, number, os.WEXITED | os.WNOHANG | os.WNOWAIT)
                if ended is not None and ended.si_code in (os.CLD_KILLED, os.CLD_DUMPED):
                    yield number, ended.si_status
