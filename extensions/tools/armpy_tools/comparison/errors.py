"""Errors of tensors against the right numbers, over any number of samples."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from armpy.core.dataclass import dataclass
from armpy.ops.operation import Array


@dataclass(frozen=True, slots=True)
class ErrorStats:
    """Differences of answers from the right numbers, in the units of these.

    Parameters
    ----------
    mean_square, mean, largest : float
        Of the absolute differences.
    relative : float
        Root of the mean square over that of the right numbers; 0 where nothing differs.
    sqnr_db : float
        Signal to quantisation noise: ten times the logarithm of the mean square of the right
        numbers over that of the differences; infinite where nothing differs.
    cosine : float
        Cosine of the angle between both.
    same_best : float or None
        Share of the rows whose largest element is at the same place, and the only one; None if
        there are no rows.
    num_rows : int
        Number of rows that `same_best` is a share of: those with one largest right number.
    """

    mean_square: float
    mean: float
    largest: float
    relative: float
    sqnr_db: float
    cosine: float
    same_best: float | None = None
    num_rows: int = 0

    @property
    def rms(self) -> float:
        """Root of the mean square."""
        return math.sqrt(self.mean_square)


class ErrorSums:
    """Sums over samples of what `ErrorStats` are made of."""

    def __init__(self) -> None:
        self._signal = self._noise = self._product = self._power = 0.0
        self._largest = self._total = 0.0
        self._count = self._same = self._rows = 0

    def add(self, expected: Array, actual: Array) -> None:
        """Take up the real numbers of a tensor.

        Notes
        -----
        A NaN on one side alone, or another infinity, is infinitely wrong; so is a
        tensor of another shape.
        """
        if expected.shape != actual.shape:
            self._noise = self._largest = self._total = math.inf
            self._count += expected.size
            return
        right = expected.astype(np.float64).ravel()
        real = actual.astype(np.float64).ravel()
        with np.errstate(invalid="ignore", over="ignore"):
            difference = np.abs(real - right)
            noise = float(difference @ difference)
        if not math.isfinite(noise):  # rare, and only then the elements are looked at one by one
            same = (right == real) | (np.isnan(right) & np.isnan(real))
            difference = np.where(same, 0.0, np.nan_to_num(difference, nan=np.inf, posinf=np.inf))
            with np.errstate(over="ignore"):
                noise = float(np.sum(difference**2))
            right, real = (np.nan_to_num(array, posinf=0, neginf=0) for array in (right, real))
        self._signal += float(right @ right)
        self._power += float(real @ real)
        self._product += float(real @ right)
        self._noise += noise
        self._total += float(difference.sum())
        self._largest = max(self._largest, float(difference.max(initial=0.0)))
        self._count += difference.size

    def add_rows(self, expected: Array, actual: Array) -> None:
        """Take up where the largest elements of rows are: along the last of two axes or more.

        Notes
        -----
        A row whose right numbers have several largest has no best element, and does not count.
        Several largest in the other row are a tie, which is not the same best element.
        """
        if expected.ndim < 2 or expected.shape[-1] < 2 or not expected.size:
            return
        has_best = _has_best(expected)
        if expected.shape == actual.shape:
            is_same = expected.argmax(-1) == actual.argmax(-1)
            self._same += int((is_same & has_best & _has_best(actual)).sum())
        self._rows += int(has_best.sum())

    @property
    def stats(self) -> ErrorStats:
        """The figures of all that was taken up."""
        count = max(self._count, 1)
        lengths = math.sqrt(self._signal) * math.sqrt(self._power)
        return ErrorStats(
            self._noise / count,
            self._total / count,
            self._largest,
            _relative(self._noise, self._signal),
            _decibels(self._signal, self._noise),
            self._product / lengths if lengths else float(self._signal == self._power),
            self._same / self._rows if self._rows else None,
            self._rows,
        )


def errors(expected: Sequence[Array], actual: Sequence[Array]) -> ErrorStats:
    """Compare tensors with the right ones.

    Parameters
    ----------
    expected, actual : sequence of ndarray
        Real numbers. Floats of two axes are taken for scores of classes, one row for a sample.
    """
    sums = ErrorSums()
    for right, array in zip(expected, actual, strict=True):
        sums.add(right, array)
        if right.ndim == 2 and right.dtype.kind == "f":
            sums.add_rows(right, array)
    return sums.stats


def _has_best(rows: Array) -> npt.NDArray[np.bool_]:
    """Return of each row whether one element is larger than all others, or not a number."""
    return np.asarray((rows == rows.max(-1, keepdims=True)).sum(-1) <= 1)


def _relative(noise: float, signal: float) -> float:
    """Root of a ratio of powers."""
    if not signal:
        return math.inf if noise else 0.0
    return math.sqrt(noise / signal)


def _decibels(signal: float, noise: float) -> float:
    """Ten times the logarithm of a ratio."""
    if not noise:
        return math.inf
    ratio = signal / noise
    return 10 * math.log10(ratio) if ratio else -math.inf
