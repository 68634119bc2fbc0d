"""Latency of runs, and its percentiles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev


@dataclass(frozen=True, slots=True)
class Latency:
    """Latency of single runs, in milliseconds.

    Parameters
    ----------
    runs : int
    min_ms, median_ms, mean_ms, p90_ms, p99_ms, max_ms, deviation_ms : float
        The last one is the standard deviation.
    spread : float
        Half of the middle half of all runs, by the median: 0.1 if half of the runs are about
        within 10 % of it.
    """

    runs: int
    min_ms: float
    median_ms: float
    mean_ms: float
    p90_ms: float
    p99_ms: float
    max_ms: float
    deviation_ms: float
    spread: float


def percentile(ordered: Sequence[float], fraction: float) -> float:
    """A percentile of numbers in ascending order, between two of them in proportion.

    References
    ----------
    Hyndman, Fan, "Sample Quantiles in Statistical Packages", 1996: type 7.
    """
    place = fraction * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def latency_of(durations_us: Sequence[float]) -> Latency:
    """Describe durations of runs, at least one."""
    ordered = sorted(durations_us)
    middle = percentile(ordered, 0.5)
    quartiles = percentile(ordered, 0.75) - percentile(ordered, 0.25)
    return Latency(
        len(ordered),
        ordered[0] / 1000,
        middle / 1000,
        fmean(ordered) / 1000,
        percentile(ordered, 0.9) / 1000,
        percentile(ordered, 0.99) / 1000,
        ordered[-1] / 1000,
        pstdev(ordered) / 1000,
        quartiles / 2 / middle if middle else 0.0,
    )
