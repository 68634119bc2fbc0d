"""Quartiles: the median and the middle half of some numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Quartiles(NamedTuple):
    """The median, and the range of the middle half around it."""

    low: float
    median: float
    high: float


def quartiles_of(numbers: Iterable[float]) -> Quartiles:
    """Quartiles of at least one number."""
    ordered = sorted(numbers)
    low, median, high = (percentile(ordered, fraction) for fraction in (0.25, 0.5, 0.75))
    return Quartiles(low, median, high)


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
