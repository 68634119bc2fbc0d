"""Turns of a subject: runs one after the other, or of several callers at the same time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from armpy.core.dataclass import dataclass

Call = Callable[[], object]
"""Runs a model once."""

_MOST_KEPT = 5_000
"""Runs of a caller in one turn."""


@dataclass(frozen=True, slots=True)
class SubjectTurn:
    """A turn of a subject."""

    durations_us: tuple[float, ...]  # of each run
    wall_s: float  # from the first one's beginning to the last one's end
    processors_s: float  # what all threads of the process have computed meanwhile

    @property
    def runs(self) -> int:
        """Return how many runs there were."""
        return len(self.durations_us)


def run_burst(
    calls: Sequence[Call],
    seconds: float,
    runs: int | None = None,
    *,
    unmeasured: int = 0,
    now: Callable[[], float] = time.perf_counter,
    computed: Callable[[], float] = time.process_time,
) -> SubjectTurn:
    """Run a model for some time.

    Parameters
    ----------
    calls : sequence of callable
        One per caller; several ones call from threads of their own.
    seconds : float
        How long, about: no run begins later, but each caller makes one.
    runs : int, optional
        So many of each caller instead.
    unmeasured : int
        Runs of each caller before these, as the previous subject has left its data in caches.
    now, computed : callable
        Seconds that have passed, and that threads have computed.
    """
    if len(calls) == 1:
        _repeat(calls[0], unmeasured)
        before = computed()
        times = _timed(calls[0], seconds, runs, now)
        return _burst([times], computed() - before)
    timings: list[list[tuple[float, float]]] = [[] for _ in calls]
    failures: list[BaseException] = []
    gate = threading.Barrier(len(calls) + 1)

    def caller(number: int) -> None:
        try:
            _repeat(calls[number], unmeasured)
            gate.wait()
            timings[number] = _timed(calls[number], seconds, runs, now)
        except threading.BrokenBarrierError:
            return  # another thread has failed, and raises
        except BaseException as error:  # noqa: BLE001 - raised in the thread that waits
            failures.append(error)
            gate.abort()

    threads = [threading.Thread(target=caller, args=(n,)) for n in range(len(calls))]
    for thread in threads:
        thread.start()
    try:
        gate.wait()
        before = computed()
    except threading.BrokenBarrierError:
        before = 0.0
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return _burst(timings, computed() - before)


def _repeat(call: Call, count: int) -> None:
    """Run without measuring."""
    for _ in range(count):
        call()


def _timed(
    call: Call, seconds: float, runs: int | None, now: Callable[[], float]
) -> list[tuple[float, float]]:
    """Beginnings and ends of runs."""
    times = []
    begin = now()
    end = begin + seconds
    while True:
        call()
        done = now()
        times.append((begin, done))
        if len(times) >= _MOST_KEPT or (done >= end if runs is None else len(times) >= runs):
            return times
        begin = now()


def _burst(callers: Sequence[Sequence[tuple[float, float]]], processors_s: float) -> SubjectTurn:
    """Measure callers together."""
    every = [pair for times in callers for pair in times]
    wall_s = max(end for _, end in every) - min(begin for begin, _ in every)
    return SubjectTurn(tuple([1e6 * (end - begin) for begin, end in every]), wall_s, processors_s)
