"""Packing of 3x3 filters for Winograd's algorithm."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np
import numpy.typing as npt

Float32Array = npt.NDArray[np.float32]
Float64Array = npt.NDArray[np.float64]

PAIRS: Mapping[int, tuple[float, ...]] = {1: (1.0,), 2: (0.75, 1.25)}
"""By their number, the numbers that lines are transformed for, with both signs; see
`armpy_numba_acc.tiles.windows.winograd_f32`. Those that are not 1 lose the least precision."""


def pack_winograd_f32(
    weights: Float32Array, num_pairs: tuple[int, int], width: int
) -> Float32Array:
    """Transformed weights, position by position.

    Parameters
    ----------
    weights : ndarray, float32, shape (columns, 3, 3, depth)
    num_pairs
        Of `PAIRS`, vertical and horizontal.
    width
        Columns of a panel; the last one is filled up with zeros.

    Returns
    -------
    ndarray, float32, shape (positions, panels, depth, width)
    """
    down, right = (_filter_transform(PAIRS[number]) for number in num_pairs)
    columns, _, _, depth = weights.shape
    panels = -(-columns // width)
    lines = weights.astype(np.float64).transpose(3, 0, 1, 2).reshape(-1, 9)
    factors = np.kron(down, right) @ lines.T
    packed = np.zeros((len(factors), depth, panels * width), np.float32)
    packed[:, :, :columns] = factors.reshape(-1, depth, columns)
    return np.ascontiguousarray(packed.reshape(-1, depth, panels, width).transpose(0, 2, 1, 3))


def _filter_transform(pairs: tuple[float, ...]) -> Float64Array:
    """Return the factors of three weights of a line, for each point: shape (points, 3)."""
    points = [0.0, *(sign * pair for pair in pairs for sign in (1, -1))]
    scales = [prod(point - other for other in points if other != point) for point in points]
    factors = [
        [point**power / scale for power in range(3)]
        for point, scale in zip(points, scales, strict=True)
    ]
    return np.array([*factors, [0.0, 0.0, 1.0]])
