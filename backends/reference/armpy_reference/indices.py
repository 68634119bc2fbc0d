"""Checks of indices that are not known before execution."""

from __future__ import annotations

from armpy.errors import InvalidArgumentError
from armpy.ops.operation import Array


def check_range(indices: Array, size: int) -> None:
    """Check that indices lie within an axis.

    Parameters
    ----------
    indices : ndarray, any integer dtype, any shape
    size : int
        Of the axis.

    Raises
    ------
    InvalidArgumentError
        If an index is negative or not below `size`.
    """
    if indices.size and (indices.min() < 0 or indices.max() >= size):
        raise InvalidArgumentError(
            "an index is out of range",
            expected=f"0 to {size - 1}",
            actual=f"{indices.min()} to {indices.max()}",
        )
