"""Latency of several things that take turns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class ExecutionTimes:
    """Latency of executions, in milliseconds.

    Parameters
    ----------
    median, mean, deviation, best, p90 : float
    times : tuple of float
        Of each execution, in order.
    """

    median: float
    mean: float
    deviation: float
    best: float
    p90: float
    times: tuple[float, ...] = ()


def latency_of(times_s: Sequence[float]) -> ExecutionTimes:
    """Sum executions up; at least one."""
    each = np.array(times_s) * 1e3
    return ExecutionTimes(
        float(np.median(each)),
        float(each.mean()),
        float(each.std()),
        float(each.min()),
        float(np.quantile(each, 0.9)),
        tuple(float(time) for time in each),
    )


def take_turns(
    runs: Mapping[str, Callable[[], object]],
    seconds: float,
    clock: Callable[[], float],
    *,
    least: int = 5,
    most: int = 1000,
) -> dict[str, list[float]]:
    """Time several things in turns, so that whatever else the machine does falls on all alike.

    Parameters
    ----------
    runs : mapping of str to callable
    seconds : float
        How long together.
    clock : callable
        In seconds.
    least, most : int
        Executions of each.
    """
    times: dict[str, list[float]] = {name: [] for name in runs}
    until = clock() + seconds
    for number in range(most):
        if number >= least and clock() >= until:
            break
        order = list(runs.items())
        for name, run in order if number % 2 else reversed(order):
            started = clock()
            run()
            times[name].append(clock() - started)
    return times
