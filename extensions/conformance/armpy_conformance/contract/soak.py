"""A rule about thousands of executions, for what happens once in a while."""

from __future__ import annotations

import statistics
import threading
import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

from armpy_conformance.backend_under_test import BackendUnderTest
from armpy_conformance.contract.case import NothingToKeepError, check
from armpy_conformance.contract.every_operation import unlike_benches
from armpy_conformance.contract.networks import Bench, sample_bench, samples

_TICK_S = 0.005
_STALL_S = 0.25
"""Shorter executions are not stalls, whatever the others take."""

_TIMES_MEDIAN = 100


def executions_go_on_for_long(subject: BackendUnderTest) -> None:
    """Each of many executions is right, and none takes a hundred times as long as the others."""
    if not subject.soak:
        raise NothingToKeepError("it needs soak, a number of executions")
    for case in samples(subject):
        both = unlike_benches(subject, case) or (sample_bench(subject, case),) * 2
        network_id = subject.runtime.load_network(both[0].graph)
        with ticking(_TICK_S) as ticks:
            calls = [_timed(subject, network_id, both[k % 2], k) for k in range(subject.soak)]
        subject.runtime.unload_network(network_id)
        _check_calls(calls, ticks, both[0].operations)


def _timed(
    subject: BackendUnderTest, network_id: int, bench: Bench, number: int
) -> tuple[float, float]:
    """Execute once and check the answers; when it began and ended."""
    feeds = {name: array.copy() for name, array in bench.feeds.items()}
    started = time.perf_counter()
    outputs = subject.runtime.enqueue_workload(network_id, feeds)
    ended = time.perf_counter()
    bench.check(outputs, f"in execution {number + 1} of {subject.soak}")
    return started, ended


@contextmanager
def ticking(period_s: float) -> Iterator[list[float]]:
    """Times at which another thread was awake: it sleeps for a period, again and again."""
    ticks: list[float] = []
    is_over = threading.Event()

    def tick() -> None:
        while not is_over.wait(period_s):
            ticks.append(time.perf_counter())

    thread = threading.Thread(target=tick, name="armpy-kit-ticks", daemon=True)
    thread.start()
    try:
        yield ticks
    finally:
        is_over.set()
        thread.join()


def _check_calls(
    calls: Sequence[tuple[float, float]], ticks: Sequence[float], operations: str
) -> None:
    """Check the slowest execution during which other threads went on."""
    durations = [ended - started for started, ended in calls]
    usual = statistics.median(durations)
    limit = max(_STALL_S, _TIMES_MEDIAN * usual)
    stalls = [
        (ended - started, number)
        for number, (started, ended) in enumerate(calls)
        if ended - started > limit and not _has_machine_stalled(started, ended, ticks)
    ]
    slowest, number = max(stalls, default=(0.0, 0))
    check(
        not stalls,
        f"execution {number + 1} of {operations} takes {slowest:.3f} s. The median of "
        f"{len(calls)} executions is {usual:.6f} s",
    )


def _has_machine_stalled(started: float, ended: float, ticks: Sequence[float]) -> bool:
    """Return whether other threads slept as well for half of an execution."""
    inside = ticks[bisect_left(ticks, started) : bisect_right(ticks, ended)]
    gaps = [after - before for before, after in pairwise((started, *inside, ended))]
    return max(gaps) > (ended - started) / 2
