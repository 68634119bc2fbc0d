"""Weights of a vector times a matrix."""

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


def lines_f32(weights: Array, lanes: int) -> Array:
    """Weights (columns, depth) for `by_columns`."""
    columns, depth = weights.shape
    vectors = -(-columns // lanes)
    padded = np.zeros((vectors * lanes, depth), np.float32)
    padded[:columns] = weights
    lines = padded.reshape(vectors, lanes, depth).transpose(0, 2, 1)
    return np.ascontiguousarray(lines).view(np.uint8)


def lines_u8(isa: Isa, values: Array) -> Array:
    """Weights (columns, depth) for `by_columns`, in groups of four."""
    columns, depth = values.shape
    vectors, steps = -(-columns // isa.lanes), -(-depth // GROUP)
    padded = np.zeros((vectors * isa.lanes, steps * GROUP), _word(isa))
    padded[:columns, :depth] = values
    groups = padded.reshape(vectors, isa.lanes, steps, GROUP).transpose(0, 2, 1, 3)
    return _in_instructions_order(isa, groups)


def by_rows(weights: Array, lanes: int) -> Array:
    """Weights (columns, depth) in float32, each column's filled up with zeros to whole vectors.

    Returns
    -------
    ndarray, float32, shape (columns, depth rounded up)
    """
    columns, depth = weights.shape
    padded = np.zeros((columns, -(-depth // lanes) * lanes), np.float32)
    padded[:, :depth] = weights
    return padded


def rows_u8(isa: Isa, values: Array) -> Array:
    """The same for groups of four.

    Returns
    -------
    ndarray, uint8, shape (columns, vectors, bytes)
    """
    columns, depth = values.shape
    vectors = -(-depth // (GROUP * isa.lanes))
    padded = np.zeros((columns, vectors * isa.lanes * GROUP), _word(isa))
    padded[:, :depth] = values
    return _in_instructions_order(isa, padded.reshape(columns, vectors, isa.lanes, GROUP))


def _word(isa: Isa) -> type[np.signedinteger[Any]]:
    """What weights are multiplied as."""
    return np.int8 if isa.dot else np.int16


def _in_instructions_order(isa: Isa, groups: Array) -> Array:
    """Groups (units, lines, lanes, 4) as the bytes of one vector, or of two, per line."""
    units, lines = groups.shape[:2]
    ordered = groups if isa.dot else pairs_of_groups(groups, isa.lanes)
    return np.ascontiguousarray(ordered).reshape(units, lines, -1).view(np.uint8)
