"""Latency of runs, and its percentiles."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, pstdev

from armpy.core.dataclass import dataclass
from armpy.profiling import percentile, quartiles_of


@dataclass(frozen=True, slots=True)
class Latency:
    """Latency of single runs, in milliseconds.

    Parameters
    ----------
    runs : int
    min_ms, median_ms, mean_ms, p90_ms, p99_ms, max_ms, deviation_ms : float
        The last one is the standard deviation.
    low_ms, high_ms : float
        Half of all runs take from the first to the second: the first and the third quartile.
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
    low_ms: float = 0.0
    high_ms: float = 0.0


def latency_of(durations_us: Sequence[float]) -> Latency:
    """Describe durations of runs, at least one."""
    ordered = sorted(durations_us)
    low, middle, high = quartiles_of(ordered)
    return Latency(
        len(ordered),
        ordered[0] / 1000,
        middle / 1000,
        fmean(ordered) / 1000,
        percentile(ordered, 0.9) / 1000,
        percentile(ordered, 0.99) / 1000,
        ordered[-1] / 1000,
        pstdev(ordered) / 1000,
        (high - low) / 2 / middle if middle else 0.0,
        low / 1000,
        high / 1000,
    )
