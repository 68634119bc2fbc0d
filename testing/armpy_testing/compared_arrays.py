"""The comparison of arrays in tests: dtype, shape, then elements, by the core's tolerances."""

from __future__ import annotations

import numpy as np

from armpy.ops.operation import Array
from armpy.ops.tolerance import EXACT, Tolerance, compare
from armpy.tensor import TensorInfo
from armpy.types import DataType

_ANY = TensorInfo(None, DataType.FLOAT32)
"""For `compare`, which reads it only where no tolerance is given."""


def of_largest(
    expected: Array, share: float, *, relative: float = 0.0, least: float = 0.0
) -> Tolerance:
    """A share of the largest finite magnitude, or of `least` if that is larger, as a bound.

    `relative` is a share of each element itself, which is added.
    """
    finite = np.abs(expected[np.isfinite(expected)])
    return Tolerance(share * float(finite.max(initial=least)), relative)


def difference(expected: Array, actual: Array, tolerance: Tolerance = EXACT) -> str:
    """Describe how two arrays differ; empty if they do not."""
    return str(compare(expected, actual, _ANY, tolerance) or "")


def check_arrays(
    expected: Array, actual: Array, tolerance: Tolerance = EXACT, label: str = "output"
) -> None:
    """Check that two arrays have one dtype and shape, and elements within the tolerance."""
    text = difference(expected, actual, tolerance)
    assert not text, f"{label}: {text}"
