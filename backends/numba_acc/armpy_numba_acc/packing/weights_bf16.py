"""Weights as kernels of bfloat16 products want them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]  # Any: float32


def as_bfloat16(values: Array) -> npt.NDArray[np.uint16]:
    """The bits of the nearest bfloat16, ties to even.

    Parameters
    ----------
    values : ndarray, float32
    """
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    rounded = bits + (np.uint32(0x7FFF) + ((bits >> 16) & np.uint32(1)))
    quiet = bits | np.uint32(0x400000)  # rounding could make an infinity of a NaN
    return (np.where(np.isnan(values), quiet, rounded) >> 16).astype(np.uint16)


def pack_panels_bf16(weights: Array, bias: Array | None, width: int) -> npt.NDArray[np.uint32]:
    """Weights and bias, panel by panel.

    Parameters
    ----------
    weights : ndarray, float32, shape (columns, taps, depth)
    bias : ndarray, float32, shape (columns,), optional
        Zeros if left out.
    width : int
        Columns of a panel; the last one is filled up with zeros.

    Returns
    -------
    ndarray, uint32, shape (panels, 1 + taps * lines, width)
        Each panel's bias as float32, then its lines: of every column two neighbours of a tap as
        bfloat16, the first one in the lower half. Where the depth is odd the last one of each
        tap has a zero beside it.
    """
    columns, taps, depth = weights.shape
    panels, lines = -(-columns // width), -(-depth // 2)
    halves = np.zeros((panels * width, taps, lines * 2), np.uint16)
    halves[:columns, :, :depth] = as_bfloat16(weights)
    packed = np.zeros((panels * width, 1 + taps * lines), np.uint32)
    if bias is not None:
        packed[:columns, 0] = np.ascontiguousarray(bias, np.float32).view(np.uint32)
    pairs = halves.reshape(panels * width, taps * lines, 2).astype(np.uint32)
    packed[:, 1:] = pairs[..., 0] | pairs[..., 1] << np.uint32(16)
    return np.ascontiguousarray(packed.reshape(panels, width, -1).transpose(0, 2, 1))
