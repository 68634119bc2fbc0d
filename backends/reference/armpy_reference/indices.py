"""Checks of indices that are not known before execution."""

from __future__ import annotations

import numpy as np

from armpy.errors import InvalidArgumentError
from armpy.ops.operation import Array


def places_of(indices: Array, size: int, wraps_negative: bool = False) -> Array:
    """Indices counted from the front, checked to lie within an axis.

    Parameters
    ----------
    indices : ndarray, any integer dtype, any shape
    size : int
        Of the axis.
    wraps_negative : bool
        Whether indices below 0 count from the end.

    Raises
    ------
    InvalidArgumentError
        If one lies outside.
    """
    least = -size if wraps_negative else 0
    if indices.size and (indices.min() < least or indices.max() >= size):
        raise InvalidArgumentError(
            "an index is out of range",
            expected=f"{least} to {size - 1}",
            actual=f"{indices.min()} to {indices.max()}",
        )
    return np.where(indices < 0, indices + size, indices) if wraps_negative else indices
