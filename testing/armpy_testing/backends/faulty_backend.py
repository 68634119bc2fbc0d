"""A backend that does to its process what its inputs say, for tests of isolation."""

from __future__ import annotations

import _thread
import ctypes
import faulthandler
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np

from armpy.backend import (
    Capabilities,
    Capability,
    IWorkloadFactory,
    NetworkResources,
    current_cancellation,
)
from armpy.errors import BackendError
from armpy_testing.backends.fake_backends import FakeBackend, Handles, Outputs, Step
from armpy_testing.descendants import kill, start_session

FINE, ABORT, SEGFAULT, HANG, EAT, EXIT, RAISE, HOLD_GIL, DOZE, KILLED, BABBLE, CUT, FORK = range(13)
TAKE_DESCRIPTORS, TAKE_THREADS, TAKE_MEMORY, CLOSE_ALL, CLOSE_STREAMS, MOVE, START_SESSION = range(
    13, 20
)
"""Events that the first element of an input orders; everything else is computed rightly."""
FAULTS = {
    "abort": ABORT,
    "segmentation fault": SEGFAULT,
    "hang": HANG,
    "out of memory": EAT,
    "exit": EXIT,
    "killed": KILLED,
}
ABORTED = "it exited with code 3" if sys.platform == "win32" else "it was ended by SIGABRT"
"""What has become of a process that aborts."""
FAULTED = "exception 0xc0000005" if sys.platform == "win32" else "SIGSEGV"
"""What ends one that reads where nothing is."""
DOZE_S = 0.3
NAME = "Faulty"


class FaultyBackend(FakeBackend):
    """Computes with CpuRef's workloads, after the event that the first element orders."""

    def __init__(self, name: str = NAME) -> None:
        super().__init__(name)

    def execute(self, step: Step, inputs: Handles, outputs: Outputs) -> None:
        assert inputs[0] is not None
        misbehave(int(inputs[0].map().flat[0]))
        step.right.execute(inputs, outputs)


class StoppableBackend(FaultyBackend):
    """Stops a hang when it is cancelled."""

    def get_capabilities(self) -> Capabilities:
        return {**super().get_capabilities(), Capability.CANCELLABLE_EXECUTION: True}


GATE = "ARMPY_TEST_GATE"
"""Variable that names a file: as long as it is there, backends with a gate wait."""


def wait_at_gate() -> None:
    """Wait until there is no gate, or no application."""
    while os.path.exists(os.environ.get(GATE, "")):
        time.sleep(0.01)


class SlowAtStart(StoppableBackend):
    """Waits at the gate when it is made."""

    def __init__(self) -> None:
        super().__init__()
        wait_at_gate()


class SlowInPreparation(StoppableBackend):
    """Waits at the gate when it prepares a layer."""

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        wait_at_gate()
        return super().create_workload_factory(network)


class BadAtStart(FaultyBackend):
    """Ends its process when it is made."""

    def __init__(self) -> None:
        super().__init__()
        os.abort()


class BadInPreparation(FaultyBackend):
    """Ends its process when it prepares a layer."""

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        os.abort()


def _eat() -> None:
    """Take memory until there is none."""
    hoard = []
    while True:
        hoard.append(np.ones(1 << 23))


def _raise() -> None:
    """Fail as a backend may."""
    raise BackendError("on request")


def misbehave(what: int) -> None:
    """Do what a number says."""
    _ACTIONS.get(what, lambda: None)()


def _take_descriptors() -> None:
    """Open files until there can be no more, and forget them."""
    with suppress(OSError):
        while True:
            os.memfd_create("leak")


def _take_threads() -> None:
    """Let the process start no more threads."""

    def refuse(*arguments: object) -> None:
        raise RuntimeError("can't start new thread")

    # As limits of the system would, which root does not have.
    _thread.start_new_thread = threading._start_new_thread = refuse  # type: ignore[attr-defined,assignment]


def _take_memory() -> None:
    """Leave the process no memory to speak of."""
    import resource  # not on Windows, where these faults are not injected

    text = Path("/proc/self/status").read_text()
    used = int(text.partition("VmData:")[2].split()[0]) << 10
    resource.setrlimit(resource.RLIMIT_DATA, (used, used))


def _close_all() -> None:
    """Close every file of the process."""
    os.closerange(0, 4096)


def _close_streams() -> None:
    """Close the standard streams, and print by their numbers all the same."""
    os.closerange(0, 3)

    def print_on() -> None:
        while True:
            for number in (1, 2):
                with suppress(OSError):
                    os.write(number, b"printed")
            time.sleep(0.001)

    threading.Thread(target=print_on, daemon=True).start()


def _move() -> None:
    """Go to another working directory, which is gone."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)


def _start_session() -> None:
    """Start a process in a session of its own, and report its number by failing."""
    raise BackendError(f"started {start_session()}")


def _fork() -> None:
    """Leave a child that goes on as its parent does."""
    os.fork()


def _hang() -> None:
    """Wait for ever, unless cancelled."""
    cancellation = current_cancellation()
    while cancellation is None or not cancellation.is_cancelled:
        time.sleep(0.002)
    cancellation.check()


def _babble() -> None:
    """Write nonsense to every socket of the process."""
    for number in os.listdir("/proc/self/fd"):
        try:
            with socket.socket(fileno=os.dup(int(number))) as stream:
                stream.send(b"\xff" * 64)
        except OSError:
            continue


def _cut() -> None:
    """Make all shared memory of the process smaller, and raise what came of it."""
    outcomes = []
    for number in os.listdir("/proc/self/fd"):
        try:
            if "memfd" in os.readlink(f"/proc/self/fd/{number}"):
                os.ftruncate(int(number), 0)
                outcomes.append("cut")
        except FileNotFoundError:  # that of the directory itself
            continue
        except PermissionError:
            outcomes.append("refused")
    raise BackendError(f"shared memory: {sorted(set(outcomes))}")


def tried(path: str) -> dict[str, str]:
    """What comes of things that a worker should not do; for the examination of a backend."""
    outcomes = {}
    attempts: dict[str, Callable[[], object]] = {
        "write outside": lambda: Path(path).write_text("x"),
        "udp": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
        "tcp": lambda: socket.create_connection(("127.0.0.1", 9), 0.2),
        "signal": lambda: os.kill(os.getppid(), 0),
        "write in the cache": _write_in_cache,
        "thread": lambda: threading.Thread(target=time.time).start(),
        "program": lambda: subprocess.run([sys.executable, "-c", ""], check=True),
    }
    for name, attempt in attempts.items():
        try:
            attempt()
            outcomes[name] = "done"
        except OSError as error:
            outcomes[name] = type(error).__name__
    return outcomes


def _write_in_cache() -> None:
    """Write a file to armpy's cache."""
    folder = Path(os.environ["ARMPY_CACHE_DIR"])
    (folder / "written").write_text("x")
    (folder / "written").unlink()


class CuriousBackend(FakeBackend):
    """Tries what a worker should not do, and says in its version what came of it."""

    @property
    def version(self) -> str:
        tries = tried(os.environ["ARMPY_TEST_FORBIDDEN_FILE"])
        return ";".join(f"{name}={outcome}" for name, outcome in tries.items())


_ACTIONS: dict[int, Callable[[], object]] = {
    ABORT: os.abort,
    # Not by ctypes, which makes an error of it on Windows.
    SEGFAULT: faulthandler._read_null,  # type: ignore[attr-defined]
    HANG: _hang,
    EAT: _eat,
    EXIT: lambda: os._exit(3),
    RAISE: _raise,
    HOLD_GIL: lambda: ctypes.PyDLL(None).sleep(1000),
    DOZE: lambda: time.sleep(DOZE_S),
    KILLED: lambda: kill(os.getpid()),
    BABBLE: _babble,
    CUT: _cut,
    FORK: _fork,
    TAKE_DESCRIPTORS: _take_descriptors,
    TAKE_THREADS: _take_threads,
    TAKE_MEMORY: _take_memory,
    CLOSE_ALL: _close_all,
    CLOSE_STREAMS: _close_streams,
    MOVE: _move,
    START_SESSION: _start_session,
}
