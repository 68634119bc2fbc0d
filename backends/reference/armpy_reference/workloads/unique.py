"""CpuRef's Unique."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from armpy.ops import Unique
from armpy.ops.operation import Array
from armpy_reference.workload import ReferenceWorkload

_MOST_RANKS = 1 << 32


class UniqueWorkload(ReferenceWorkload[Unique]):
    """Find values with NumPy, which sorts them, and put them in order of appearance if asked."""

    def compute_dynamic(self, inputs: Sequence[Array]) -> Sequence[Array]:
        """Compare elements, or slices of them."""
        axis = self.operation.axis
        if axis is None:
            values, *places = np.unique(
                inputs[0], return_index=True, return_inverse=True, return_counts=True
            )
        else:
            slices = np.moveaxis(inputs[0], axis, 0)
            places = _unique_rows(slices.reshape(len(slices), math.prod(slices.shape[1:])))
            values = np.take(inputs[0], places[0], axis)
        indices, inverse, counts = places
        inverse = inverse.reshape(-1)
        if not self.operation.is_sorted:
            order = np.argsort(indices)
            values = np.take(values, order, 0 if axis is None else axis)
            indices, counts = indices[order], counts[order]
            inverse = np.argsort(order)[inverse]
        return values, *(array.astype(np.int64) for array in (indices, inverse, counts))


def _unique_rows(rows: Array) -> list[Array]:
    """Return the first row of each kind in lexicographic order, the kind of each row, and counts.

    Notes
    -----
    `numpy.unique` along an axis makes a structured type of a field for each element of a slice,
    some 400 bytes of Python objects each. Here rows are compared as bytes: ranks of their elements
    in big-endian order. Rows with NaN differ from all others.
    """
    count, length = rows.shape
    order = np.arange(count)
    if count > 1 and length:
        ranks = np.unique(rows, return_inverse=True)[1].reshape(count, length)
        keys = ranks.astype(">u4" if rows.size <= _MOST_RANKS else ">u8")
        row_type = np.dtype((np.void, keys.dtype.itemsize * length))
        order = np.argsort(keys.view(row_type)[:, 0], kind="stable")
    in_order = rows[order]
    is_first = np.ones(count, bool)
    is_first[1:] = (in_order[1:] != in_order[:-1]).any(axis=1)
    starts = np.flatnonzero(is_first)
    inverse = np.empty(count, np.int64)
    inverse[order] = np.cumsum(is_first) - 1
    return [order[starts], inverse, np.diff(starts, append=count)]
