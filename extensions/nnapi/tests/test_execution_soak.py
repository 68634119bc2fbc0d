"""Every way to execute at once: threads, networks, backends, priorities and deadlines mixed."""

from __future__ import annotations

import contextlib
import gc
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from armpy.execution import RuntimeOptions
from armpy.ops.operation import Array
from armpy_nnapi import (
    Burst,
    Compilation,
    DeviceManager,
    Event,
    Execution,
    ModelBuilder,
    NnapiError,
    OperandType,
    Priority,
    ResultCode,
)
from armpy_testing.effort import effort
from armpy_testing.watchdogs import use_watchdog

SOAK_S = effort(2.5)
NUM_THREADS = 8
MOST_GROWTH_BYTES = 16 << 20
"""Allocators keep some of what many threads have freed; a result that is kept is 1 MB in 20 ms."""

MOST_WAIT_S = 60.0
"""What takes longer is lost."""

LATE = (ResultCode.MISSED_DEADLINE_TRANSIENT, ResultCode.MISSED_DEADLINE_PERSISTENT)
SIZE, LARGE = 64, 20_000


class Network:
    """A compiled model that computes ``x * factor + factor`` for a vector.

    Parameters
    ----------
    manager : DeviceManager
    backend_ids : list of str
        Of the chosen devices.
    priority : Priority
    factor, size : int
    """

    def __init__(
        self,
        manager: DeviceManager,
        backend_ids: list[str],
        priority: Priority,
        factor: int,
        size: int = SIZE,
    ) -> None:
        builder = ModelBuilder()
        factors = np.full(size, factor, np.float32)
        value = builder.add(builder.mul(builder.input(np.float32, (size,)), factors), factors)
        devices = [manager.get_device_of_backend(name) for name in backend_ids]
        self.compilation = Compilation.create_for_devices(builder.finish(value), devices)
        self.compilation.set_priority(priority)
        self.compilation.finish()
        self.has_deadlines = len(devices) == 1
        self.size = size
        self._factor = factor

    def expected(self, first: float) -> Array:
        """The result for a vector of `first`, `first` + 1, ..., exact in float32."""
        return (first + np.arange(self.size, dtype=np.float32)) * self._factor + self._factor


@pytest.fixture(scope="module")
def networks() -> Iterator[list[Network]]:
    options = RuntimeOptions(backends=["NumbaAcc", "CpuRef"], execution_threads=3)
    with DeviceManager(options) as manager:
        yield [
            Network(manager, ["NumbaAcc"], Priority.LOW, 2),
            Network(manager, ["CpuRef"], Priority.HIGH, 3),
            Network(manager, ["NumbaAcc", "CpuRef"], Priority.MEDIUM, 4),
            Network(manager, ["CpuRef"], Priority.MEDIUM, 5, LARGE),
        ]


def wait_for(event: Event) -> None:
    """Wait for an execution, which comes to an end whatever its deadline."""
    try:
        event.wait(MOST_WAIT_S)
    finally:
        assert event.is_done, "an execution was lost"


class Worker:
    """One thread, which executes in a way that is drawn again each time.

    Attributes
    ----------
    counts : Counter
        Executions by network, way and result.
    problems : list of str
        Results that were wrong, lost, or errors that were not to be.
    """

    def __init__(self, number: int, networks: list[Network]) -> None:
        self._random = random.Random(number)
        self._networks = networks
        self._next = number
        self.counts: Counter[tuple[int, str, str]] = Counter()
        self.problems: list[str] = []
        self._bursts = [Burst(network.compilation) for network in networks]
        self._reusable = [self._new(network, reusable=True) for network in networks]

    def work(self, ends_s: float) -> None:
        """Execute until a time."""
        ways = (self._call, self._start, self._burst, self._chain, self._reuse)
        while time.monotonic() < ends_s and not self.problems:
            index = self._random.randrange(len(self._networks))
            way = self._random.choice(ways)
            try:
                way(index)
            except Exception as error:  # noqa: BLE001 - reported by the test
                self.problems.append(f"network {index}, {way.__name__}: {error!r}")

    def close(self) -> None:
        """Release what the bursts have prepared."""
        for burst in self._bursts:
            burst.close()

    def _new(self, network: Network, *, reusable: bool = False) -> tuple[Execution, Array, Array]:
        """An execution with its input and output."""
        execution = Execution(network.compilation)
        execution.set_reusable(reusable)
        values, result = (np.zeros(network.size, np.float32) for _ in range(2))
        execution.set_input(0, values)
        execution.set_output(0, result, OperandType.of(result))
        if not reusable and network.has_deadlines and self._random.random() < 0.4:
            execution.set_timeout(self._random.choice((1, 50_000, 500_000, 5_000_000, 10**9)))
        return execution, values, result

    def _fill(self, values: Array) -> float:
        """Write elements that no other thread uses at the time, and return the first."""
        self._next = (self._next + NUM_THREADS) % 4096
        values[:] = self._next + np.arange(values.size, dtype=np.float32)
        return self._next

    def _judge(
        self, index: int, way: str, wait: Callable[[], None], first: float, result: Array
    ) -> bool:
        """Wait for an execution and check its result; return whether it was in time."""
        try:
            wait()
        except NnapiError as error:
            if error.code not in LATE:
                raise
            self.counts[index, way, "late"] += 1
            return False
        if not np.array_equal(result, self._networks[index].expected(first)):
            self.problems.append(f"network {index}, {way}: wrong for {first}: {result[:4]}")
        self.counts[index, way, "right"] += 1
        return True

    def _call(self, index: int) -> None:
        """Compute on this thread."""
        execution, values, result = self._new(self._networks[index])
        self._judge(index, "call", execution.compute, self._fill(values), result)

    def _start(self, index: int) -> None:
        """Start several, and wait for all."""
        started: list[tuple[Event, float, Array]] = []
        for _ in range(self._random.randint(1, 4)):
            execution, values, result = self._new(self._networks[index])
            first = self._fill(values)
            started.append((execution.start_compute(), first, result))
        for event, first, result in started:
            self._judge(index, "start", partial(wait_for, event), first, result)

    def _burst(self, index: int) -> None:
        """Compute several times in this thread's burst."""
        execution, values, result = self._reusable[index]
        compute = partial(self._bursts[index].compute, execution)
        for _ in range(5):
            self._judge(index, "burst", compute, self._fill(values), result)

    def _reuse(self, index: int) -> None:
        """Start a reusable execution, which the watchdog may release meanwhile."""
        execution, values, result = self._reusable[index]
        first = self._fill(values)
        self._judge(index, "reuse", partial(wait_for, execution.start_compute()), first, result)

    def _chain(self, index: int) -> None:
        """Let one depend on another, by a fence in this process or through a descriptor."""
        execution, values, result = self._new(self._networks[index])
        other, other_values, other_result = self._new(self._networks[2])
        first, other_first = self._fill(values), self._fill(other_values)
        event = fence = execution.start_compute_with_dependencies([])
        if hasattr(os, "eventfd") and self._random.random() < 0.5:
            fd = event.get_sync_fence_fd()
            fence = Event.create_from_sync_fence_fd(fd)
            os.close(fd)
        last = other.start_compute_with_dependencies([fence])
        if self._judge(index, "chain", partial(wait_for, event), first, result):
            self._judge(2, "chain", partial(wait_for, last), other_first, other_result)
            return
        try:
            wait_for(last)
        except NnapiError as error:
            if error.code is not ResultCode.OP_FAILED:
                raise
        else:
            self.problems.append("an execution has run although its dependency failed")


def resident_bytes() -> int:
    """Resident memory of this process; 0 where it is unknown."""
    gc.collect()
    with contextlib.suppress(OSError):
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def num_descriptors() -> int:
    """Number of open descriptors; 0 where it is unknown."""
    with contextlib.suppress(OSError):
        return len(os.listdir("/proc/self/fd"))
    return 0


def soak(workers: list[Worker], duration_s: float) -> None:
    """Let all workers work at once."""
    ends_s = time.monotonic() + duration_s
    threads = [threading.Thread(target=worker.work, args=(ends_s,)) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(duration_s + 120)
    assert not any(thread.is_alive() for thread in threads), "an execution was lost"
    assert [problem for worker in workers for problem in worker.problems] == []


@pytest.mark.slow
def test_nothing_is_lost_or_mixed_up_and_memory_stays_flat(
    networks: list[Network], monkeypatch: pytest.MonkeyPatch
) -> None:
    use_watchdog(monkeypatch, release_after_s=0.05)
    workers = [Worker(number, networks) for number in range(NUM_THREADS)]
    soak(workers, max(1.0, SOAK_S / 4))  # until everything that is kept has been made
    before, fds_before = resident_bytes(), num_descriptors()
    soak(workers, SOAK_S)
    growth, more_fds = resident_bytes() - before, num_descriptors() - fds_before
    for worker in workers:
        worker.close()
    assert growth < MOST_GROWTH_BYTES
    assert more_fds <= 8  # threads that have come and gone
    done = {key for worker in workers for key in worker.counts}
    assert any(outcome == "late" for _, _, outcome in done)  # deadlines were hard to meet
    assert {way for _, way, _ in done} == {"call", "start", "burst", "reuse", "chain"}
    right = {index for index, _, outcome in done if outcome == "right"}
    assert right == set(range(len(networks)))  # no network was starved
    assert all(worker.counts for worker in workers)
