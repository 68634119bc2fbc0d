"""Kills workers at random times while several networks execute, and checks the outcomes."""

from __future__ import annotations

import gc
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from armpy import IsolationLimits, Runtime
from armpy.core.processes.worker import Worker
from armpy.errors import ArmpyError, BackendError, DeadObjectError
from armpy.model import Model
from armpy.ops.operation import Array
from armpy_testing.backends import faulty_backend as faulty
from armpy_testing.backends.injections import held, isolated, negation, run
from armpy_testing.descendants import is_running

LIMITS = IsolationLimits(timeout_s=60.0, memory_bytes=1 << 30, max_failures=10**9)
SIZES = (8, 1000, 70_000)
FIRST_FINE = 100
"""From here on a first element asks for nothing but its negative."""
LONGEST_PAUSE_S = 0.3
STUCK_S = 120.0
"""An execution that takes longer hangs; several workers may have to be started for one."""


@dataclass
class Campaign:
    """What became of kills."""

    num_kills: int = 0
    num_right: int = 0
    # How often executions ended in each class of error
    errors: Counter[str] = field(default_factory=Counter)
    # Wrong results, errors that are not armpy's, executions that did not end, orphans
    wrong: list[str] = field(default_factory=list)
    # Processes, descriptors and mappings of shared memory before and after that differ
    left: dict[str, tuple[int, int]] = field(default_factory=dict)
    longest_s: float = 0.0  # of one execution


class _Callers:
    """Threads that execute without end, each in a way of its own, and check every result."""

    def __init__(self, runtime: Runtime, campaign: Campaign) -> None:
        self._runtime = runtime
        self._campaign = campaign
        self._is_over = False
        self._lock = threading.Lock()
        self._began_s: dict[str, float] = {}
        self.sessions: list[int] = []
        self.networks = [runtime.load_network(negation(size)) for size in SIZES]
        model = Model(negation(SIZES[1]), runtime)
        bound = np.zeros(SIZES[1], np.float32)
        execution = model.bind({"x": bound})

        def call_bound(array: Array) -> Array:
            bound[:] = array
            return execution()["y"].copy()

        def enqueue(network: int) -> Callable[[Array], Array]:
            return lambda array: runtime.enqueue_workload(network, {"x": array})["y"]

        ways: dict[str, tuple[int, Callable[[Array], Array]]] = {
            f"called {size}": (size, enqueue(network))
            for size, network in zip(SIZES, self.networks, strict=True)
        }
        ways["bound"] = SIZES[1], call_bound
        ways["started"] = SIZES[1], lambda array: model.start({"x": array}).result()["y"]
        ways["with deadline"] = SIZES[1], lambda array: model.run({"x": array}, deadline_s=100)["y"]
        self.threads = [
            threading.Thread(target=self._work, args=(name, *way), name=name, daemon=True)
            for name, way in ways.items()
        ]
        self.threads.append(
            threading.Thread(target=self._start_sessions, name="sessions", daemon=True)
        )
        for thread in self.threads:
            thread.start()

    def _work(self, name: str, size: int, execute: Callable[[Array], Array]) -> None:
        """Execute in one way, with other numbers each time."""
        number = FIRST_FINE
        while not self._is_over:
            number = FIRST_FINE + (number + 1) % 10_000
            numbers = np.arange(number, number + size, dtype=np.float32)
            self._count(name, execute, numbers)
            time.sleep(0.002)

    def _start_sessions(self) -> None:
        """Let workers start processes in sessions of their own, which report their numbers."""
        while not self._is_over:
            try:
                run(self._runtime, self.networks[0], faulty.START_SESSION)
            except DeadObjectError:
                pass  # the worker was killed, as is tried here
            except BackendError as error:
                with suppress(ValueError):
                    self.sessions.append(int(error.failed.split()[-1]))
            except ArmpyError as error:
                self._campaign.errors[type(error).__name__] += 1
            time.sleep(0.05)

    def _count(self, name: str, execute: Callable[[Array], Array], array: Array) -> None:
        """Execute once, and count what came of it."""
        campaign = self._campaign
        began_s = self._began_s[name] = time.monotonic()
        outcome, problem = "", ""
        try:
            is_right = np.array_equal(execute(array), -array)
            problem = "" if is_right else f"{name}: wrong result"
        except ArmpyError as error:
            outcome = type(error).__name__
        except BaseException as error:  # noqa: BLE001 - the test looks for it
            problem = f"{name}: {error!r}"
        duration_s = time.monotonic() - began_s
        with self._lock:
            del self._began_s[name]
            campaign.longest_s = max(campaign.longest_s, duration_s)
            if problem:
                campaign.wrong.append(problem)
            elif outcome:
                campaign.errors[outcome] += 1
            else:
                campaign.num_right += 1

    def stuck(self) -> list[str]:
        """Those whose execution has begun too long ago."""
        late_s = time.monotonic() - STUCK_S
        return [name for name, began_s in [*self._began_s.items()] if began_s < late_s]

    def end(self) -> None:
        """Wait for the last executions."""
        self._is_over = True
        for thread in self.threads:
            thread.join(STUCK_S)
            if thread.is_alive():
                self._campaign.wrong.append(f"{thread.name}: hangs")


def kill_workers(count: int, seed: int = 1) -> Campaign:
    """Kill workers that serve, spare ones and such as have just been started."""
    numbers, campaign = random.Random(seed), Campaign()
    with isolated(limits=LIMITS) as runtime:  # loaded when it is first used
        run(runtime, runtime.load_network(negation()), FIRST_FINE)
    del runtime
    gc.collect()
    before = held()
    with isolated(limits=LIMITS) as runtime:
        callers = _Callers(runtime, campaign)
        supervisor = runtime._setup.isolated[faulty.NAME].supervisor
        while campaign.num_kills < count and not callers.stuck():
            time.sleep(numbers.uniform(0, LONGEST_PAUSE_S))
            worker = supervisor.current if numbers.random() < 0.7 else supervisor._spare
            campaign.num_kills += worker is not None and _kill(worker)
        campaign.wrong += [f"{name}: hangs" for name in callers.stuck()]
        callers.end()
    sessions = callers.sessions
    del runtime, callers, supervisor, worker
    gc.collect()
    _await_ends(sessions)
    campaign.wrong += [f"process {pid} is running yet" for pid in sessions if is_running(pid)]
    after = held()
    campaign.left = {
        name: (before[name], after[name]) for name in before if before[name] != after[name]
    }
    return campaign


def _kill(worker: Worker) -> bool:
    """Kill a worker, and nothing else that may have its number by now."""
    pid = worker.pid
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        if int(fields[1]) != worker._process.pid or fields[0] == "Z":
            return False
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    except OSError:  # it has ended
        return False
    finally:
        os.close(handle)
    return True


def _await_ends(pids: list[int]) -> None:
    """Wait a while for the ends of processes."""
    deadline = time.monotonic() + 10.0
    while any(map(is_running, pids)) and time.monotonic() < deadline:
        time.sleep(0.02)
