"""Tolerances of answers: one table by data type, and the comparison that uses it."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from armpy.core.dataclass import dataclass
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy.types import DataType


@dataclass(frozen=True, slots=True)
class Tolerance:
    """An answer ``a`` is right for an expected ``e`` if ``|e - a| <= absolute + relative |e|``.

    Parameters
    ----------
    absolute, relative : float
        Bounds in stored units, which are steps for quantised types.
    bias : float
        Largest mean of the errors, in the same units, of many elements.
    """

    absolute: float = 0.0
    relative: float = 0.0
    bias: float = math.inf

    def __str__(self) -> str:
        if not self.absolute and not self.relative:
            return "exactly"
        if not self.relative:
            return f"within {self.absolute:g}"
        return f"within {self.absolute:.3g} + {self.relative:.3g} |expected|"


EXACT = Tolerance()
FLOAT32 = Tolerance(1e-5, 5 * 2.0**-23)
FLOAT16 = Tolerance(5 * 2.0**-10, 5 * 2.0**-10)
FLOAT64 = Tolerance(1e-13, 1e-13)
OFF_BY_ONE = Tolerance(1.0)
ROUNDED = Tolerance(1.0, bias=0.25)
"""Off by one, but not always to the same side: rounding down is half a step off on average."""

_MANY = 32
"""Elements of which the mean error counts."""

TOLERANCES: dict[DataType, Tolerance] = {
    data_type: ROUNDED if data_type.is_quantized else EXACT for data_type in DataType
} | {DataType.FLOAT32: FLOAT32, DataType.FLOAT16: FLOAT16, DataType.FLOAT64: FLOAT64}
"""The tolerance of every data type: floats as above, quantised off by one without a bias, others
exact."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Difference of two tensors that should be the same.

    Parameters
    ----------
    text : str
        Statement of the difference, for people.
    index : tuple of int
        Index of the worst element; empty if dtype or shape differ already.
    expected, actual : float or None
        Values of that element.
    count, size : int
        Number of elements that leave the tolerance, and number of all.
    """

    text: str
    index: tuple[int, ...] = ()
    expected: float | None = None
    actual: float | None = None
    count: int = 0
    size: int = 0

    def __str__(self) -> str:
        return self.text


def compare(
    expected: Array, actual: object, info: TensorInfo, tolerance: Tolerance | None = None
) -> Difference | None:
    """Compare an answer with the expected one: dtype, shape, then values.

    Parameters
    ----------
    expected : ndarray, dtype of `info`
    actual : object
        Answer of a backend or a network.
    info : TensorInfo
        Says which tolerance holds.
    tolerance : Tolerance, optional
        Holds instead.

    Returns
    -------
    Difference or None
        The difference; None if the answer is right. NaN is right where NaN is expected, and nowhere
        else.
    """
    if not isinstance(actual, np.ndarray):
        return Difference(f"the answer is {type(actual).__name__}, not an array")
    if actual.dtype != expected.dtype:
        return Difference(f"the dtype differs. Expected {expected.dtype}; got {actual.dtype}")
    if actual.shape != expected.shape:
        return Difference(f"the shape differs. Expected {expected.shape}; got {actual.shape}")
    if expected.dtype.hasobject:
        return _other_strings(expected, actual)
    if are_same(expected, actual):
        return None
    tolerance = tolerance or TOLERANCES[info.data_type]
    excess = _excess(expected, actual, tolerance)
    count = int(np.count_nonzero(excess > 0))
    if not count:
        return _biased(expected, actual, tolerance)
    index = tuple(int(i) for i in np.unravel_index(int(np.argmax(excess)), excess.shape))
    wanted, got = expected[index].item(), actual[index].item()
    text = (
        f"{count} of {excess.size} elements are wrong, worst at index {index}. "
        f"Expected {_shown(wanted)} {tolerance}; got {_shown(got)}"
    )
    return Difference(text, index, float(wanted), float(got), count, excess.size)


def are_same(expected: Array, actual: Array) -> bool:
    """Return whether two arrays have the same type, shape and bytes: right at any tolerance."""
    return (
        actual.dtype == expected.dtype
        and actual.shape == expected.shape
        and actual.tobytes() == expected.tobytes()
    )


def _other_strings(expected: Array, actual: Array) -> Difference | None:
    """The first of the strings that differ."""
    differs = np.asarray(expected != actual)
    count = int(np.count_nonzero(differs))
    if not count:
        return None
    index = tuple(int(i) for i in np.unravel_index(int(np.argmax(differs)), differs.shape))
    text = (
        f"{count} of {differs.size} strings are wrong, the first at index {index}. "
        f"Expected {expected[index]!r}; got {actual[index]!r}"
    )
    return Difference(text, index, count=count, size=differs.size)


def _biased(expected: Array, actual: Array, tolerance: Tolerance) -> Difference | None:
    """Describe the mean error of elements that are all within the tolerance."""
    if expected.size < _MANY or not math.isfinite(tolerance.bias):
        return None
    errors = actual.astype(np.float64) - expected.astype(np.float64)
    bias = float(errors.mean())
    if abs(bias) <= tolerance.bias:
        return None
    text = (
        f"the {expected.size} elements are off to one side. Expected a mean error of at most "
        f"{tolerance.bias:g}; got {bias:.3g}"
    )
    return Difference(text, count=int(np.count_nonzero(errors)), size=expected.size)


def _excess(expected: Array, actual: Array, tolerance: Tolerance) -> npt.NDArray[np.float64]:
    """Return the excess of each element over the tolerance; 0 or less within it."""
    if tolerance == EXACT:
        differs = expected != actual
        if expected.dtype.kind == "f":
            differs &= ~(np.isnan(expected) & np.isnan(actual))
        with np.errstate(invalid="ignore", over="ignore"):
            distance = np.abs(expected.astype(np.float64) - actual.astype(np.float64))
        return np.where(differs, np.nan_to_num(distance, nan=np.inf) + 1, 0.0)
    wide, answers = expected.astype(np.float64), actual.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        allowed = tolerance.absolute + tolerance.relative * np.abs(wide)
        excess = np.asarray(np.abs(wide - answers) - allowed)  # 0-d results are plain numbers
    same = (wide == answers) | (np.isnan(wide) & np.isnan(answers))
    excess[same] = 0.0
    # The other NaN and infinities stand against a number or another infinity.
    excess[~same & ~np.isfinite(excess)] = np.inf
    excess[~same & ~np.isfinite(wide)] = np.inf
    return excess


def _shown(value: object) -> str:
    return f"{value:.9g}" if isinstance(value, float) else str(value)
