"""Weights as the kernels want them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]  # Any: float32 or integers


def pack_panels_f32(weights: Array, bias: Array | None, width: int) -> Array:
    """Weights and bias, panel by panel.

    Parameters
    ----------
    weights : ndarray, float32, shape (columns, depth)
    bias : ndarray, float32, shape (columns,), optional
        Zeros if left out.
    width : int
        Columns of a panel; the last one is filled up with zeros.

    Returns
    -------
    ndarray, float32, shape (panels, 1 + depth, width)
        Each panel's bias, then its lines.
    """
    columns, depth = weights.shape
    panels = -(-columns // width)
    packed = np.zeros((panels * width, 1 + depth), np.float32)
    packed[:columns, 1:] = weights
    if bias is not None:
        packed[:columns, 0] = bias
    return np.ascontiguousarray(packed.reshape(panels, width, 1 + depth).transpose(0, 2, 1))
