"""Processes that workers start, and whether they are there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

_OUTER = """\
import subprocess
child = subprocess.Popen(["sleep", "600"], start_new_session=True, stdout=subprocess.DEVNULL)
print(child.pid)
"""


def start_session() -> int:
    """Start a process in a session of its own, whose parent, in another session, ends."""
    ended = subprocess.run(
        [sys.executable, "-c", _OUTER], start_new_session=True, stdout=subprocess.PIPE, check=True
    )
    return int(ended.stdout)


def kill(pid: int) -> None:
    """End a process at once."""
    # On Windows each signal but two does.
    os.kill(pid, signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL)


def is_running(pid: int) -> bool:
    """Return whether a process exists and is not a zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] not in "ZX"


def await_end(pid: int) -> None:
    """Wait until there is no such process."""
    deadline = time.monotonic() + 10.0
    while is_running(pid):
        assert time.monotonic() < deadline, f"process {pid} is running yet"
        time.sleep(0.01)
