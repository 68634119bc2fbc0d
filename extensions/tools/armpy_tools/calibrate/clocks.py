"""Clocks that measurements go by, and what one measurement is."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import field

from armpy.core.dataclass import dataclass
from armpy_tools.devices.records import Sample

_ROUNDS = 8
_FEWEST_ROUNDS = 3
_MOST_CALLS = 10_000
_CONFIRMED = 1.1
_LONGER = 3.0
_LEAST_POWER = 0.01
"""Of a processor; whatever computes takes some."""


@dataclass(frozen=True, slots=True)
class Clock:
    """Two clocks: of passed time, and of the processor's time."""

    now: Callable[[], float] = field(default=time.perf_counter)  # seconds that have passed
    # Seconds that this process's threads have computed, all together.
    processors: Callable[[], float] = field(default=time.process_time)


def measure(run: Callable[[], object], clock: Clock, *, seconds: float) -> Sample:
    """Measure how long a call takes.

    Parameters
    ----------
    run : callable
        Called once before it is measured.
    seconds : float
        How long to measure, about: up to three times as long while no second round comes near the
        quickest, and a few rounds of a slow call.

    Returns
    -------
    Sample
        The quickest of several rounds, as what disturbs a measurement makes it longer; and what
        all threads computed for a call, divided by that time.
    """
    run()
    begin = clock.now()
    run()
    once = max(clock.now() - begin, 1e-9)
    calls = max(1, min(int(seconds / _ROUNDS / once), _MOST_CALLS))
    best, second, num_rounds = once, once, 0
    first, computed = clock.now(), clock.processors()
    while True:
        begin = clock.now()
        for _ in range(calls):
            run()
        now = clock.now()
        elapsed = (now - begin) / calls
        best, second = min(best, elapsed), max(best, min(second, elapsed))
        num_rounds += 1
        is_confirmed = second <= best * _CONFIRMED or now - first >= _LONGER * seconds
        if num_rounds >= _FEWEST_ROUNDS and now - first >= seconds and is_confirmed:
            break
    # What others compute meanwhile makes calls longer, but does not add to what a call computes.
    computed = (clock.processors() - computed) / (num_rounds * calls)
    return Sample(best, max(computed / best, _LEAST_POWER))
