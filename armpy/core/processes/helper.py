"""Helper processes: interpreters that work for one owner, and end with it.

References
----------
Linux man-pages, prctl(2), PR_SET_PDEATHSIG.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:  # the keeper of a worker imports as little as it can
    import subprocess

PR_SET_PDEATHSIG = 1
_LOOK_S = 0.5
"""Interval of looking for the owner where the system does not announce its end."""


def set_attribute(option: int, value: int) -> None:
    """Set an attribute of this process with ``prctl``, where the system has it."""
    if sys.platform == "linux":
        import ctypes  # noqa: PLC0415 - of no use elsewhere

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def end_with_parent(
    # Process id. The system watches the thread of the parent that started this process.
    parent: int,
) -> None:
    """Have Linux end this process when its parent ends, even while it is stopped."""
    if sys.platform != "win32":
        set_attribute(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it has ended before that was in force
            os._exit(1)


def end_with_owner(
    # The pipe. A process that the owner forks holds its other end, too, and may outlive it.
    stream: BinaryIO,
    owner: int,  # process id of the parent
) -> None:
    """End this process when its owner ends or closes a pipe."""
    end_with_parent(owner)
    threading.Thread(target=_leave_at_end, args=(stream,), daemon=True).start()
    if sys.platform not in ("linux", "win32"):
        threading.Thread(target=_leave_without, args=(owner,), daemon=True).start()


def _leave_at_end(stream: BinaryIO) -> None:
    stream.read()
    os._exit(0)


def _leave_without(owner: int) -> None:
    while os.getppid() == owner:
        time.sleep(_LOOK_S)
    os._exit(0)


def start_sending(process: subprocess.Popen[bytes], message: bytes) -> threading.Thread:
    """Write to the standard input of a process in a thread: a stopped process reads nothing.

    Raises
    ------
    RuntimeError
        If the system has no more threads.
    """
    assert process.stdin is not None
    sender = threading.Thread(target=_send, args=(process.stdin, message), daemon=True)
    sender.start()
    return sender


def _send(stream: BinaryIO, message: bytes) -> None:
    """Write a message; the process may have ended, which its owner notices."""
    with contextlib.suppress(OSError):
        stream.write(message)
        stream.flush()
