"""Errors of answers against real numbers, and their latency."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from armpy.ops.operation import Array


@dataclass(frozen=True, slots=True)
class Errors:
    """Differences of all outputs of all samples, in the units of the outputs.

    Parameters
    ----------
    mean_square, largest : float
        Of the differences.
    relative : float
        Root of the mean square over that of the right numbers; 0 where nothing differs.
    same_best : float or None
        Share of the samples whose largest element along the last axis is at the same place;
        None if no output has classes.
    """

    mean_square: float
    largest: float
    relative: float
    same_best: float | None = None

    @property
    def root_mean_square(self) -> float:
        """In the units of the outputs."""
        return math.sqrt(self.mean_square)


def errors_of(expected: Sequence[Sequence[Array]], actual: Sequence[Sequence[Array]]) -> Errors:
    """Compare the outputs of several samples.

    Parameters
    ----------
    expected, actual : sequence of sequences of ndarray
        By sample, then by output; real numbers. What is no number on one side alone is infinitely
        wrong.
    """
    squares = count = 0.0
    power, largest = 0.0, 0.0
    places: list[bool] = []
    for wanted, given in zip(expected, actual, strict=True):
        for right, answer in zip(wanted, given, strict=True):
            if right.shape != answer.shape:
                return Errors(math.inf, math.inf, math.inf, 0.0)
            difference = _differences(right, answer)
            squares += float(np.sum(difference**2))
            power += float(np.sum(np.nan_to_num(right.astype(np.float64), posinf=0, neginf=0) ** 2))
            count += difference.size
            largest = max(largest, float(difference.max(initial=0.0)))
            if _has_classes(right):
                places += list((right.argmax(-1) == answer.argmax(-1)).reshape(-1))
    mean_square = squares / count if count else 0.0
    relative = math.sqrt(squares / power) if power else (0.0 if not squares else math.inf)
    same_best = float(sum(places) / len(places)) if places else None
    return Errors(mean_square, largest, relative, same_best)


def _differences(right: Array, answer: Array) -> Array:
    """Absolute differences; 0 where both are the same infinity or no number."""
    wide, given = right.astype(np.float64), answer.astype(np.float64)
    with np.errstate(invalid="ignore"):
        difference = np.abs(wide - given)
    same = (wide == given) | (np.isnan(wide) & np.isnan(given))
    return np.where(same, 0.0, np.nan_to_num(difference, nan=np.inf, posinf=np.inf))


def _has_classes(array: Array) -> bool:
    """Whether an output looks like scores of classes: one row for each sample."""
    return array.ndim == 2 and array.shape[-1] > 1 and array.dtype.kind == "f"


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
