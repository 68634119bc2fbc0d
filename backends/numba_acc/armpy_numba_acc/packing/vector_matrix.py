"""Packing of weights for a vector times a matrix: by columns, or by rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.packing.origins import Origin, PackedArray
from armpy_numba_acc.packing.weights_u8 import GROUP, pairs_of_groups

Array = npt.NDArray[Any]  # Any: float32 or integers
Word = np.dtype[Any]  # Any: float32, int8 or int16

PANEL = 8
"""Vectors of columns that are computed side by side."""

AT_ONCE = 4
"""Vectors of sums that are requantised together."""


def filled_up(array: Array, *multiples: int) -> Array:
    """An array with zeros after it up to a multiple along each axis."""
    return np.pad(array, [(0, -n % m) for n, m in zip(array.shape, multiples, strict=True)])


def pack_columns(isa: Isa, weights: Array, bias: Array, word: Word) -> PackedArray:
    """Weights and bias in the order in which they are read, without gaps.

    Parameters
    ----------
    weights : ndarray, float32 or integers, shape (columns, depth)
    bias : ndarray, float32 or int32, shape (columns,)
    word : dtype, float32, int8 or int16
        What weights are stored as.

    Returns
    -------
    PackedArray
        One row: each panel's bias, then its steps, each with all of its vectors; where there are
        less than `PANEL` full vectors left, the same vector by vector. float32 is so from the
        beginning, as products of few rows read it: both have the same bytes then.
    """
    panels = 0 if word == np.float32 else len(weights) // isa.lanes // PANEL
    lines = _lines(isa, weights.astype(word, copy=False), word)
    heads = filled_up(bias, isa.lanes).view(word).reshape(len(lines), -1)
    packed = _in_panels(lines, heads, panels)
    num_heads, num_steps = heads.shape[1], lines[0].nbytes // isa.vector_bytes

    def moved(values: Array) -> Array:
        lines = _lines(isa, values, word)
        heads = np.zeros((len(lines), num_heads), values.dtype)
        return _in_panels(lines, heads, panels)

    def moved_bias(values: Array) -> Array:
        heads = filled_up(values, isa.lanes).reshape(-1, isa.lanes)
        lines = np.zeros((len(heads), num_steps, isa.lanes), values.dtype)
        return _in_panels(lines, heads, panels)

    origins = (
        Origin.of(weights, moved, word.itemsize),
        Origin.of(bias, moved_bias, 4),
    )
    return PackedArray(packed.view(np.uint8), origins)


def _in_panels(lines: Array, heads: Array, panels: int) -> Array:
    """Lines (vectors, steps, elements) and heads (vectors, elements) of vectors as one row.

    Parameters
    ----------
    panels
        Of whole vectors.
    """
    whole = panels * PANEL
    steps, size = lines.shape[1:]
    together = lines[:whole].reshape(panels, PANEL, steps, size).transpose(0, 2, 1, 3)
    parts = []
    for head, body in ((heads[:whole], together), (heads[whole:], lines[whole:])):
        count = len(body)
        if count:
            parts.append(np.hstack([head.reshape(count, -1), body.reshape(count, -1)]).reshape(-1))
    return np.concatenate(parts)[None]


def pack_rows(isa: Isa, weights: Array, word: Word) -> PackedArray:
    """Integer weights (columns, depth) by rows, in groups of four, filled up to whole vectors.

    Parameters
    ----------
    word : dtype, int8 or int16
        What weights are stored as.

    Returns
    -------
    PackedArray
        Shape (columns, vectors, elements).
    """

    def moved(values: Array) -> Array:
        rows = filled_up(values, 1, GROUP * isa.lanes)
        return _in_instructions_order(isa, rows.reshape(len(rows), -1, isa.lanes, GROUP), word)

    packed = moved(weights.astype(word))
    origin = Origin.of(weights, moved, word.itemsize, pitch=packed[0].nbytes)
    return PackedArray(packed, (origin,))


def _lines(isa: Isa, weights: Array, word: Word) -> Array:
    """Each vector's weights (vectors, steps, elements); integers in groups of four."""
    if word == np.float32:
        columns = filled_up(weights, isa.lanes, 1).reshape(-1, isa.lanes, weights.shape[1])
        return np.ascontiguousarray(columns.transpose(0, 2, 1))
    columns = filled_up(weights, isa.lanes, GROUP)
    groups = columns.reshape(len(columns) // isa.lanes, isa.lanes, -1, GROUP)
    return _in_instructions_order(isa, groups.transpose(0, 2, 1, 3), word)


def _in_instructions_order(isa: Isa, groups: Array, word: Word) -> Array:
    """Groups (units, lines, lanes, 4) as the elements of one vector, or of two, per line."""
    units, lines = groups.shape[:2]
    ordered = groups if word.itemsize == 1 else pairs_of_groups(groups, isa.lanes)
    return np.ascontiguousarray(ordered).reshape(units, lines, -1)
