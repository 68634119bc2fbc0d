"""Statistics of measured times: percentiles, and ratios with their intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, median, stdev

CONFIDENCE = 0.95
"""Of intervals."""

# Two-sided 95 % points of Student's t by degrees of freedom; published tables have these.
_T_95 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)

_BLOCKS = 8
"""Into which the turns of a single process are cut: neighbours in time are alike."""

_LEAST_UNITS = 3
"""Of which an interval is made."""


@dataclass(frozen=True, slots=True)
class Latency:
    """Latency of single runs, in milliseconds.

    Parameters
    ----------
    runs : int
    min_ms, median_ms, mean_ms, p90_ms, p99_ms, max_ms : float
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
    spread: float


@dataclass(frozen=True, slots=True)
class Ratio:
    """Speed of a subject relative to the baseline.

    Parameters
    ----------
    value : float
        Above 1 if it is faster.
    low, high : float
        Ends of the interval that holds the true ratio with `CONFIDENCE`; 0 and infinity if there
        is too little to tell.
    verdict : {"faster", "slower", "no difference shown", "too few runs"}
    units : int
        Of how many independent measurements the interval is made.
    unit : {"process", "block of turns"}
    """

    value: float
    low: float
    high: float
    verdict: str
    units: int
    unit: str


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
        quartiles / 2 / middle if middle else 0.0,
    )


def compare(baseline: Sequence[Sequence[float]], other: Sequence[Sequence[float]]) -> Ratio:
    """Say how many times as fast a subject is, by turns that were taken in pairs.

    Parameters
    ----------
    baseline, other : sequence of sequence of float
        Times of turns, one sequence per process; turns of the same process and number were taken
        beside each other. A turn that has no counterpart does not count.

    Returns
    -------
    Ratio

    Notes
    -----
    The logarithm of the ratio is taken turn by turn. A unit is the median of these in a process;
    in a single process, of each of a few blocks of turns that follow each other. The interval is
    Student's t on the mean of the units: it holds also where turns of one process are alike, as
    they are where memory lies well or badly for as long as a process lives.
    """
    logs = [
        [math.log(a / b) for a, b in zip(one, two, strict=False)]
        for one, two in zip(baseline, other, strict=False)
    ]
    logs = [each for each in logs if each]
    unit = "process"
    if len(logs) == 1:
        unit, logs = "block of turns", _blocks(logs[0])
    units = [median(each) for each in logs]
    if not units:
        return Ratio(math.nan, 0.0, math.inf, "too few runs", 0, unit)
    value = fmean(units)
    if len(units) < _LEAST_UNITS:
        return Ratio(math.exp(value), 0.0, math.inf, "too few runs", len(units), unit)
    half = student_t(len(units) - 1) * stdev(units) / math.sqrt(len(units))
    low, high = math.exp(value - half), math.exp(value + half)
    verdict = "faster" if low > 1 else "slower" if high < 1 else "no difference shown"
    return Ratio(math.exp(value), low, high, verdict, len(units), unit)


def student_t(degrees: int) -> float:
    """The two-sided 95 % point of Student's t; a little too large beyond the table."""
    if degrees <= len(_T_95):
        return _T_95[degrees - 1]
    return 1.96 + 2.46 / degrees  # 2.042 at 30, 1.98 at 120, as tables have it


def _blocks(turns: Sequence[float]) -> list[list[float]]:
    """Cut turns into blocks of neighbours, of about the same size."""
    count = min(_BLOCKS, len(turns))
    ends = [len(turns) * number // count for number in range(count + 1)]
    return [[*turns[begin:end]] for begin, end in pairwise(ends)]
