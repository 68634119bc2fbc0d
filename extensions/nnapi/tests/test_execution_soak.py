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
NUM_SLOW_STEPS = 12


class Network:
    """A compiled model that computes ``x * factor + factor + steps`` for a vector.

    Parameters
    ----------
    manager : DeviceManager
    backend_ids : list of str
        Of the chosen devices.
    factor, num_steps, size : int
    priority : Priority
    """

    def __init__(
        self,
        manager: DeviceManager,
        backend_ids: list[str],
        priority: Priority,
        factor: int,
        num_steps: int = 0,
        size: int = SIZE,
    ) -> None:
        builder = ModelBuilder()
        value = builder.input(np.float32, (size,))
        value = builder.mul(value, np.full(size, factor, np.float32))
        value = builder.add(value, np.full(size, factor, np.float32))
        for _ in range(num_steps):
            value = builder.add(value, np.ones(size, np.float32))
        devices = [device for device in manager.devices if device.backend_id in backend_ids]
        assert len(devices) == len(backend_ids)
        self.compilation = Compilation.create_for_devices(builder.finish(value), devices)
        self.compilation.set_priority(priority)
        self.compilation.finish()
        self.name = f"{'+'.join(backend_ids)} {priority.name} x{factor}"
        self.has_deadlines = len(devices) == 1
        self.size = size
        self._factor, self._num_steps = factor, num_steps

    def expected(self, first: float) -> Array:
        """The result for a vector of `first`, `first` + 1, ..., exact in float32."""
        values = first + np.arange(self.size, dtype=np.float32)
        return values * self._factor + np.float32(self._factor + self._num_steps)


@pytest.fixture(scope="module")
def networks() -> Iterator[list[Network]]:
    options = RuntimeOptions(backends=["NumbaAcc", "CpuRef"], execution_threads=3)
    with DeviceManager(options) as manager:
        numba, reference = ["NumbaAcc"], ["CpuRef"]
        yield [
            Network(manager, numba, Priority.LOW, 2),
            Network(manager, reference, Priority.HIGH, 3),
            Network(manager, [*numba, *reference], Priority.MEDIUM, 4),
            Network(manager, reference, Priority.MEDIUM, 5, NUM_SLOW_STEPS, LARGE),
        ]


def wait_for(event: Event) -> None:
    """Wait for an execution, which comes to an end whatever its deadline."""
    if not ended(event):
        raise AssertionError("an execution was lost")
    event.wait(0)


def ended(event: Event) -> bool:
    """Whether an execution comes to its end."""
    with contextlib.suppress(NnapiError):
        event.wait(MOST_WAIT_S)
    return event.is_done


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
        self._number = number
        self._random = random.Random(number)
        self._networks = networks
        self._next = number
        self.counts: Counter[tuple[str, str, str]] = Counter()
        self.problems: list[str] = []
        self._bursts = [Burst(network.compilation) for network in networks]
        self._reusable = [self._new(network, reusable=True) for network in networks]
        ways = (self._call, self._start, self._burst, self._chain, self._reuse)
        self._ways: tuple[Callable[[int], None], ...] = ways

    def _new(self, network: Network, *, reusable: bool = False) -> tuple[Execution, Array, Array]:
        """An execution with its input and output."""
        execution = Execution(network.compilation)
        execution.set_reusable(reusable)
        values, result = (np.zeros(network.size, np.float32) for _ in range(2))
        execution.set_input(0, values)
        execution.set_output(0, result, OperandType.of(result))
        return execution, values, result

    def work(self, ends_s: float) -> None:
        """Execute until a time."""
        while time.monotonic() < ends_s and not self.problems:
            index = self._random.randrange(len(self._networks))
            way = self._random.choice(self._ways)
            try:
                way(index)
            except Exception as error:  # noqa: BLE001 - reported by the test
                self.problems.append(f"{self._networks[index].name} {way.__name__}: {error!r}")

    def close(self) -> None:
        """Release the prepared program."""
        for burst in self._bursts:
            burst.close()

    def _fill(self, values: Array) -> float:
        """Write elements that no other thread uses at the time, and say the first."""
        self._next = (self._next + NUM_THREADS) % 4096
        values[:] = self._next + np.arange(values.size, dtype=np.float32)
        return self._next

    def _limit(self, network: Network, execution: Execution) -> None:
        """Give some executions a deadline, which may be hard to meet."""
        if network.has_deadlines and self._random.random() < 0.4:
            execution.set_timeout(self._random.choice((1, 50_000, 500_000, 5_000_000, 10**9)))

    def _check(
        self, way: str, network: Network, wait: Callable[[], None], first: float, result: Array
    ) -> None:
        """Wait for an execution, and check its result."""
        outcome = "right"
        try:
            wait()
        except NnapiError as error:
            if error.code not in LATE and not str(error).endswith("late"):
                raise
            outcome = "late"
        if outcome == "right" and not np.array_equal(result, network.expected(first)):
            self.problems.append(f"{network.name} {way}: wrong result for {first}: {result[:4]}")
        self.counts[network.name, way, outcome] += 1

    def _call(self, index: int) -> None:
        """Compute on this thread."""
        network = self._networks[index]
        execution, values, result = self._new(network)
        self._limit(network, execution)
        self._check("call", network, execution.compute, self._fill(values), result)

    def _start(self, index: int) -> None:
        """Start several, and wait for all."""
        network = self._networks[index]
        started: list[tuple[Event, float, Array]] = []
        for _ in range(self._random.randint(1, 4)):
            execution, values, result = self._new(network)
            self._limit(network, execution)
            first = self._fill(values)
            started.append((execution.start_compute(), first, result))
        for event, first, result in started:
            self._check("start", network, lambda event=event: wait_for(event), first, result)  # type: ignore[misc]

    def _burst(self, index: int) -> None:
        """Compute several times in this thread's burst."""
        network = self._networks[index]
        execution, values, result = self._reusable[index]
        for _ in range(5):
            first = self._fill(values)
            self._check(
                "burst",
                network,
                lambda: self._bursts[index].compute(execution),
                first,
                result,
            )

    def _reuse(self, index: int) -> None:
        """Start a reusable execution, which the watchdog may release meanwhile."""
        network = self._networks[index]
        execution, values, result = self._reusable[index]
        first = self._fill(values)
        self._check("reuse", network, lambda: wait_for(execution.start_compute()), first, result)

    def _chain(self, index: int) -> None:
        """Let one depend on another, by a fence in this process or through a descriptor."""
        network, after = self._networks[index], self._networks[2]
        execution, values, result = self._new(network)
        self._limit(network, execution)
        other, other_values, other_result = self._new(after)
        first, other_first = self._fill(values), self._fill(other_values)
        event = execution.start_compute_with_dependencies([])
        fence = event
        if hasattr(os, "eventfd") and self._random.random() < 0.5:
            fd = event.get_sync_fence_fd()
            fence = Event.create_from_sync_fence_fd(fd)
            os.close(fd)
        last = other.start_compute_with_dependencies([fence])
        is_late: list[bool] = []

        def wait_first() -> None:
            try:
                wait_for(event)
            except NnapiError:
                is_late.append(True)
                raise

        def wait_last() -> None:
            try:
                wait_for(last)
            except NnapiError as error:
                if is_late and error.code is ResultCode.OP_FAILED:  # like its dependency
                    raise NnapiError("late", code=ResultCode.MISSED_DEADLINE_TRANSIENT) from error
                raise
            if is_late:
                self.problems.append("an execution has run although its dependency failed")

        self._check("chain", network, wait_first, first, result)
        self._check("chain", after, wait_last, other_first, other_result)


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
    counts = sum((worker.counts for worker in workers), Counter())
    for worker in workers:
        worker.close()
    by_outcome: Counter[str] = Counter()
    by_network: Counter[str] = Counter()
    by_way: Counter[str] = Counter()
    for (name, way, outcome), count in counts.items():
        by_outcome[outcome] += count
        by_network[name] += count * (outcome == "right")
        by_way[way] += count
    print(
        f"\n{dict(by_outcome)}, {dict(by_way)}, {dict(by_network)}, grown {growth / 2**20:.1f} MB"
    )
    assert growth < MOST_GROWTH_BYTES
    assert more_fds <= 8  # threads that have come and gone
    assert by_outcome["late"] > 0  # deadlines were hard to meet
    assert set(by_way) == {"call", "start", "burst", "reuse", "chain"}
    assert len(by_network) == len(networks)
    assert all(by_network.values())  # no thread was starved
    assert all(sum(worker.counts.values()) for worker in workers)
