"""Weights of depthwise convolutions as the kernels want them."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from armpy_numba_acc.machine.byte_order import lane_order
from armpy_numba_acc.packing.factors import Factors

Array = npt.NDArray[Any]  # Any: float32 or integers
Float32Array = npt.NDArray[np.float32]
Int32Array = npt.NDArray[np.int32]


def block_starts(channels: int, width: int) -> list[int]:
    """First channel of each block; the last block ends with the channels."""
    return [min(start, channels - width) for start in range(0, channels, width)]


def pack_f32(weights: Float32Array, bias: Float32Array, width: int) -> Float32Array:
    """Bias and taps, block by block.

    Parameters
    ----------
    weights : ndarray, float32, shape (taps, channels)
    bias : ndarray, float32, shape (channels,)
    width : int
        Channels of a block.

    Returns
    -------
    ndarray, float32, shape (blocks, 1 + taps, width)
    """
    lines = np.concatenate([bias[None], weights])
    starts = block_starts(weights.shape[1], width)
    return np.stack([lines[:, start : start + width] for start in starts])


def pack_u8(
    weights: Int32Array, bias: Int32Array, factors: Factors, width: int, has_words: bool
) -> npt.NDArray[np.uint8]:
    """Bias, scales and groups of four taps, block by block.

    Parameters
    ----------
    weights : ndarray, int32, shape (lines, 4, channels)
        Less their zero point; each line's four weights are multiplied and added at once.
    bias : ndarray, int32, shape (channels,)
    factors : Factors
        What sums are multiplied by for the output.
    width : int
        Channels of a block.
    has_words : bool
        Whether weights become 16-bit integers.

    Returns
    -------
    ndarray, uint8, shape (blocks, bytes)
        Of each block the bias as int32, scales and nudges as float32, exact factors of 8 bytes,
        then lines; each of these in the order of
        `armpy_numba_acc.machine.byte_order.lane_order`.
    """
    size = max(width, 16)
    order = lane_order(size)
    blocks = []
    for start in block_starts(bias.size, width):
        columns = slice(start, start + width)
        parts = (
            _filled(bias[columns], size)[order],
            _filled(factors.scales[columns], size)[order],
            # A nudge of 0 would look like a result to be checked.
            _filled(factors.nudges[columns], size, "edge")[order],
            _filled(factors.exact[columns], size)[order],
            _lines(_filled(weights[..., columns], size)[..., order], has_words),
        )
        blocks.append(np.concatenate([part.reshape(-1).view(np.uint8) for part in parts]))
    return np.stack(blocks)


def _filled(values: Array, size: int, mode: Literal["constant", "edge"] = "constant") -> Array:
    """Channels, with zeros or the last one behind them up to a number."""
    missing = size - values.shape[-1]
    return np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, missing)], mode)


def _lines(weights: Array, has_words: bool) -> Array:
    """Weights of all lines, shape (lines, 4, size), as they are multiplied."""
    if not has_words:
        return np.ascontiguousarray(weights.astype(np.int8).transpose(0, 2, 1))
    lines, _, size = weights.shape
    vectors = weights.astype(np.int16).reshape(lines, 2, 2, 4, size // 4)
    # axes: line, upper pair of taps, odd tap, vector, lane
    return np.ascontiguousarray(vectors.transpose(0, 3, 2, 4, 1))
