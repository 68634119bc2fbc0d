"""Packing of weights for a vector times a matrix: by columns, or by rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.packing.weights_u8 import GROUP, pairs_of_groups

Array = npt.NDArray[Any]  # Any: float32 or integers

PANEL = 8
"""Vectors of columns that are computed side by side."""

AT_ONCE = 4
"""Vectors of sums that are requantised together."""


def filled_up(array: Array, *multiples: int) -> Array:
    """An array with zeros behind it up to a multiple along each axis."""
    return np.pad(array, [(0, -n % m) for n, m in zip(array.shape, multiples, strict=True)])


def by_columns(lines: Array, bias: Array, columns: int, lanes: int) -> Array:
    """Weights and bias in the order in which they are read, without gaps.

    Parameters
    ----------
    lines : ndarray, uint8, shape (vectors, steps, bytes)
        Each vector's weights.
    bias : ndarray, float32 or int32, shape (vectors * lanes,)
    columns : int
    lanes : int

    Returns
    -------
    ndarray, uint8
        Each panel's bias, then its steps, each with all of its vectors; where there are less than
        `PANEL` full vectors left, the same vector by vector.
    """
    vectors, steps, size = lines.shape
    heads = bias.view(np.uint8).reshape(vectors, -1)
    panels = columns // lanes // PANEL
    whole = panels * PANEL
    together = lines[:whole].reshape(panels, PANEL, steps, size).transpose(0, 2, 1, 3)
    parts = []
    for head, body in ((heads[:whole], together), (heads[whole:], lines[whole:])):
        count = len(body)
        if count:
            parts.append(np.hstack([head.reshape(count, -1), body.reshape(count, -1)]).reshape(-1))
    return np.concatenate(parts)


def lines_f32(isa: Isa, weights: Array) -> Array:
    """float32 weights (columns, depth) for `by_columns`."""
    columns = filled_up(weights, isa.lanes, 1).reshape(-1, isa.lanes, weights.shape[1])
    return np.ascontiguousarray(columns.transpose(0, 2, 1)).view(np.uint8)


def lines_u8(isa: Isa, weights: Array) -> Array:
    """Integer weights (columns, depth) for `by_columns`, in groups of four."""
    columns = filled_up(weights.astype(_word(isa)), isa.lanes, GROUP)
    groups = columns.reshape(len(columns) // isa.lanes, isa.lanes, -1, GROUP)
    return _in_instructions_order(isa, groups.transpose(0, 2, 1, 3))


def rows_u8(isa: Isa, weights: Array) -> Array:
    """Integer weights (columns, depth) by rows, in groups of four, filled up to whole vectors.

    Returns
    -------
    ndarray, uint8, shape (columns, vectors, bytes)
    """
    rows = filled_up(weights.astype(_word(isa)), 1, GROUP * isa.lanes)
    return _in_instructions_order(isa, rows.reshape(len(rows), -1, isa.lanes, GROUP))


def _word(isa: Isa) -> type[np.signedinteger[Any]]:
    """What weights are multiplied as."""
    return np.int8 if isa.dot else np.int16


def _in_instructions_order(isa: Isa, groups: Array) -> Array:
    """Groups (units, lines, lanes, 4) as the bytes of one vector, or of two, per line."""
    units, lines = groups.shape[:2]
    ordered = groups if isa.dot else pairs_of_groups(groups, isa.lanes)
    return np.ascontiguousarray(ordered).reshape(units, lines, -1).view(np.uint8)
