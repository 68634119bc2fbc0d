"""Weights of recurrent networks, as their steps read them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

PANEL = 4
"""Vectors of sums that one stream of weights is for."""

ROWS = 8
"""States that are multiplied at once, if there are several: weights are read once for all."""


def side_by_side(
    matrices: Sequence[npt.NDArray[np.float32]], width: int
) -> npt.NDArray[np.float32]:
    """Matrices of equal height side by side, each filled up to a width with zeros.

    Returns
    -------
    ndarray, float32, shape (height, number of matrices * width)
    """
    height = len(matrices[0])
    result = np.zeros((height, len(matrices), width), np.float32)
    for number, matrix in enumerate(matrices):
        result[:, number, : matrix.shape[1]] = matrix
    return result.reshape(height, -1)


def panel_line(columns: int, lanes: int) -> int:
    """Columns filled up to whole panels."""
    width = PANEL * lanes
    return -(-columns // width) * width


def packed_panels(matrix: npt.NDArray[np.float32], lanes: int) -> npt.NDArray[np.float32]:
    """A matrix (depth, columns), panel by panel.

    Returns
    -------
    ndarray, float32, shape (panels, depth, PANEL * lanes)
    """
    depth, columns = matrix.shape
    filled = np.zeros((depth, panel_line(columns, lanes)), np.float32)
    filled[:, :columns] = matrix
    return np.ascontiguousarray(filled.reshape(depth, -1, PANEL * lanes).swapaxes(0, 1))
