"""Packing of 3x3 filters for Winograd's algorithm."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

Float32Array = npt.NDArray[np.float32]
Float64Array = npt.NDArray[np.float64]
Integers = npt.NDArray[Any]  # Any: of any width

PAIRS: Mapping[int, tuple[float, ...]] = {1: (1.0,), 2: (0.75, 1.25)}
"""By their number, the numbers that lines are transformed for, with both signs; see
`armpy_numba_acc.tiles.windows.winograd_f32`. Those that are not 1 lose the least precision."""


def pack_winograd_f32(
    weights: Float32Array, num_pairs: tuple[int, int], width: int
) -> Float32Array:
    """Transformed weights, position by position.

    Parameters
    ----------
    weights : ndarray, float32, shape (columns, 3, 3, depth) or (columns, slices, 3, 3, depth)
    num_pairs
        Of `PAIRS`, vertical and horizontal.
    width
        Columns of a panel; the last one is filled up with zeros.

    Returns
    -------
    ndarray, float32, shape (positions, panels, depth, width)
        `depth` is that of all slices, one after the other.
    """
    down, right = (_filter_transform(PAIRS[number]) for number in num_pairs)
    by_slice = weights.reshape(len(weights), -1, 9, weights.shape[-1])
    columns, depth = len(weights), by_slice.shape[1] * by_slice.shape[3]
    panels = -(-columns // width)
    lines = by_slice.astype(np.float64).transpose(1, 3, 0, 2).reshape(-1, 9)
    factors = np.kron(down, right) @ lines.T
    packed = np.zeros((len(factors), depth, panels * width), np.float32)
    packed[:, :, :columns] = factors.reshape(-1, depth, columns)
    return np.ascontiguousarray(packed.reshape(-1, depth, panels, width).transpose(0, 2, 1, 3))


def pack_winograd_u8(weights: Integers, width: int) -> npt.NDArray[np.int16]:
    """Transformed weights for tiles of two by two pixels, times four, which makes them integers.

    Parameters
    ----------
    weights : ndarray, any integer dtype, shape (columns, 3, 3, depth)
        Less their zero point: from -255 to 255.
    width
        Columns of a panel; the last one is filled up with zeros.

    Returns
    -------
    ndarray, int16, shape (positions, panels, depth / 2, width, 2)
    """
    line = np.array([[2, 0, 0], [1, 1, 1], [1, -1, 1], [0, 0, 2]], np.float32)
    columns, _, _, depth = weights.shape
    panels = -(-columns // width)
    # float32 holds all of these integers, and is multiplied faster.
    lines = weights.reshape(columns, 9, depth).transpose(1, 2, 0).astype(np.float32)
    factors = np.kron(line, line) @ lines.reshape(9, -1)
    packed = np.zeros((len(factors), depth, panels * width), np.int16)
    packed[:, :, :columns] = factors.reshape(-1, depth, columns)
    pairs = packed.reshape(-1, depth // 2, 2, panels, width)
    return np.ascontiguousarray(pairs.transpose(0, 3, 1, 4, 2))


def _filter_transform(pairs: tuple[float, ...]) -> Float64Array:
    """Return the factors of three weights of a line, for each point: shape (points, 3)."""
    points = [0.0, *(sign * pair for pair in pairs for sign in (1, -1))]
    scales = [prod(point - other for other in points if other != point) for point in points]
    factors = [
        [point**power / scale for power in range(3)]
        for point, scale in zip(points, scales, strict=True)
    ]
    return np.array([*factors, [0.0, 0.0, 1.0]])
