"""Indices that are not known before execution: checks, and writing where they say."""

from __future__ import annotations

import numpy as np

from armpy.errors import InvalidArgumentError
from armpy.ops import ScatterReduction
from armpy.ops.operation import Array


def places_of(indices: Array, size: int, wraps_negative: bool = False) -> Array:
    """Indices counted from the front, checked to lie within an axis.

    Parameters
    ----------
    size
        Size of the axis.
    wraps_negative
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
            fix="Pass indices in this range",
        )
    return np.where(indices < 0, indices + size, indices) if wraps_negative else indices


def element_places(
    indices: Array, shape: tuple[int, ...], axis: int, wraps_negative: bool
) -> tuple[Array, ...]:
    """The NumPy index of the elements that indices along an axis name.

    Parameters
    ----------
    shape
        Shape of the tensor that is indexed.
    wraps_negative
        See `places_of`.
    """
    places = list(np.ogrid[tuple(slice(size) for size in indices.shape)])
    places[axis] = places_of(indices, shape[axis], wraps_negative)
    return tuple(places)


def scatter(
    out: Array, places: tuple[Array, ...], updates: Array, reduction: ScatterReduction
) -> None:
    """Write updates in place, one after the other."""
    if reduction is ScatterReduction.NONE:
        out[places] = updates
    else:
        _COMBINED[reduction].at(out, places, updates)


_COMBINED = {
    ScatterReduction.ADD: np.add,
    ScatterReduction.MUL: np.multiply,
    ScatterReduction.MAX: np.maximum,
    ScatterReduction.MIN: np.minimum,
}
