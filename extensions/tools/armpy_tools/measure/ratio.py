"""Ratios of times that were taken in turns, with their intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean, median
from typing import TypeVar

from armpy.core.dataclass import dataclass

CONFIDENCE = 0.95
"""Of intervals."""

LEAST_UNITS = 6
"""Independent measurements of which an interval is made: between fewer, none is that sure."""

Turn = TypeVar("Turn")

_BLOCKS = 8
"""Into which the turns are cut where there are few processes: neighbours in time are alike."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """Speed of a subject relative to the baseline.

    Parameters
    ----------
    value : float
        Above 1 if it is faster.
    low, high : float
        Ends of the interval that holds the true ratio with `CONFIDENCE`; 0 and infinity if there
        are too few runs.
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

    def __str__(self) -> str:
        return f"{self.value:.3g} ({self.low:.3g} to {self.high:.3g})"


def median_interval(
    numbers: Sequence[float], confidence: float = CONFIDENCE
) -> tuple[float, float]:
    """Confidence interval of the median, as positions among sorted samples.

    Parameters
    ----------
    numbers : sequence of float
        At least one.
    confidence : float

    Notes
    -----
    By ranks, as the number of values below the true median is binomial; whatever the distribution.
    Of fewer than `LEAST_UNITS` numbers it is their whole range, which is not that sure.

    References
    ----------
    W. J. Conover, Practical Nonparametric Statistics, 3.2: a quantile's confidence interval.
    """
    ordered, count = sorted(numbers), len(numbers)
    tail, rank = 0.0, 0
    while rank < count // 2:
        tail += math.exp(_log_chance(count, rank))
        if tail > (1 - confidence) / 2:
            break
        rank += 1
    low = max(rank - 1, 0)
    return ordered[low], ordered[count - 1 - low]


def _log_chance(count: int, number: int) -> float:
    """Logarithm of the chance that so many of some values are below the median."""
    ways = math.lgamma(count + 1) - math.lgamma(number + 1) - math.lgamma(count - number + 1)
    return ways - count * math.log(2)


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
    The ratio is taken turn by turn. A unit is the median of these in a process, as turns of one
    process are alike where memory lies well or badly for as long as it lives; where there are
    fewer than `LEAST_UNITS` processes, in each of a few blocks of turns that follow each other.
    Value and interval are the units' median and `median_interval`.
    """
    ratios = [
        [a / b for a, b in zip(first, two, strict=False)]
        for first, two in zip(baseline, other, strict=False)
    ]
    ratios = [unit for unit in ratios if unit]
    unit = "block of turns" if 0 < len(ratios) < LEAST_UNITS else "process"
    units = [median(unit) for unit in units_of(ratios)]
    if not units:
        return Ratio(math.nan, 0.0, math.inf, "too few runs", 0, unit)
    value = median(units)
    if len(units) < LEAST_UNITS:
        return Ratio(value, 0.0, math.inf, "too few runs", len(units), unit)
    low, high = median_interval(units)
    verdict = "no difference shown"
    if low > 1:
        verdict = "faster"
    elif high < 1:
        verdict = "slower"
    return Ratio(value, low, high, verdict, len(units), unit)


def units_of(processes: Sequence[Sequence[Turn]]) -> list[list[Turn]]:
    """The processes, or blocks of their turns where they are too few for an interval."""
    if not 0 < len(processes) < LEAST_UNITS:
        return [[*turns] for turns in processes]
    most = -(-_BLOCKS // len(processes))
    return [block for turns in processes for block in blocks(turns, most)]


def blocks(turns: Sequence[Turn], most: int) -> list[list[Turn]]:
    """Cut turns into blocks of neighbours, of about the same size."""
    count = min(most, len(turns))
    ends = [len(turns) * number // count for number in range(count + 1)]
    return [[*turns[begin:end]] for begin, end in pairwise(ends)]


def geometric_mean(ratios: Sequence[float]) -> float:
    """Geometric mean; NaN of nothing."""
    return math.exp(fmean(map(math.log, ratios))) if ratios else math.nan
