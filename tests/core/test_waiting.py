"""Waiting for a process in time of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from armpy.core.processes import worker
from armpy.core.processes.worker import await_answer, starved_s

pytestmark = pytest.mark.skipif(
    not (hasattr(os, "sched_setaffinity") and Path("/proc/self/schedstat").exists()),
    reason="the system does not report waiting threads",
)

_WORK = """
import os, socket, sys, time
os.sched_setaffinity(0, {int(sys.argv[2])})
connection = socket.socket(fileno=int(sys.argv[1]))
connection.send(b"ready")
connection.recv(1)
start = time.process_time()
SLEEPS
while time.process_time() < start + 0.2:
    pass
connection.send(b"done")
"""
_SPIN = "import os, sys\nos.sched_setaffinity(0, {int(sys.argv[1])})\nwhile True: pass"


@contextmanager
def process(code: str, cpu: int) -> Iterator[tuple[socket.socket, int]]:
    """A process that is ready and confined to one processor, and our end of its connection."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        command = [sys.executable, "-c", code, str(theirs.fileno()), str(cpu)]
        child = subprocess.Popen(command, pass_fds=(theirs.fileno(),))
        try:
            assert ours.recv(5) == b"ready"
            yield ours, child.pid
        finally:
            child.kill()
            child.wait()


@pytest.fixture
def busy_cpu() -> Iterator[int]:
    """A processor that two other processes want, too."""
    cpu = max(os.sched_getaffinity(0))
    with ExitStack() as stack:
        for _ in range(2):
            spinning = stack.enter_context(
                subprocess.Popen([sys.executable, "-c", _SPIN, str(cpu)])
            )
            stack.callback(spinning.kill)
        time.sleep(0.3)
        yield cpu


@pytest.mark.slow
def test_time_without_a_processor_does_not_count(
    busy_cpu: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "_MOST_WAITED", 60)  # others may want this processor as well
    with process(_WORK.replace("SLEEPS", ""), busy_cpu) as (connection, pid):
        before = starved_s(pid)
        connection.send(b"!")
        start = time.monotonic()
        await_answer(connection, pid, 0.5)
        assert time.monotonic() - start > 0.5  # or the processor was not busy
        assert starved_s(pid) > before
        assert connection.recv(4) == b"done"


def test_a_process_that_sleeps_is_late_after_its_limit() -> None:
    cpu = max(os.sched_getaffinity(0))
    with process(_WORK.replace("SLEEPS", "time.sleep(60)"), cpu) as (connection, pid):
        connection.send(b"!")
        start = time.monotonic()
        with pytest.raises(TimeoutError):
            await_answer(connection, pid, 0.2)
        assert 0.19 < time.monotonic() - start < 0.19 + 3 * 0.2


@pytest.mark.slow
def test_the_most_is_three_times_the_limit(busy_cpu: int) -> None:
    with process(_WORK.replace("SLEEPS", "while True: pass"), busy_cpu) as (connection, pid):
        connection.send(b"!")
        start = time.monotonic()
        with pytest.raises(TimeoutError):
            await_answer(connection, pid, 0.1)
        assert 0.15 < time.monotonic() - start < 2.0


def test_an_unknown_process_is_never_starved() -> None:
    assert starved_s(2**30) == 0.0
