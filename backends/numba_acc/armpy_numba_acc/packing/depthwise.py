"""Weights of depthwise convolutions as the kernels want them."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from armpy_numba_acc.machine.byte_order import lane_order
from armpy_numba_acc.packing.factors import Factors
from armpy_numba_acc.packing.origins import Origin, PackedArray
from armpy_numba_acc.packing.panels import side_by_side

Array = npt.NDArray[Any]  # Any: float32 or integers
Float32Array = npt.NDArray[np.float32]
Int32Array = npt.NDArray[np.int32]


def block_starts(channels: int, width: int) -> list[int]:
    """First channel of each block; the last block ends with the channels."""
    return [min(start, channels - width) for start in range(0, channels, width)]


def pack_f32(weights: Float32Array, bias: Float32Array, width: int) -> PackedArray:
    """Bias and taps, block by block.

    Parameters
    ----------
    weights : ndarray, float32, shape (taps, channels)
    bias : ndarray, float32, shape (channels,)
    width
        Channels of a block.

    Returns
    -------
    PackedArray
        float32, shape (blocks, 1 + taps, width).
    """
    blocks = _blocks(np.concatenate([bias[None], weights]), width)
    moved, pitch = partial(_blocks, width=width), blocks[0].nbytes
    origins = (
        Origin.of(weights, moved, 4, begin=4 * width, pitch=pitch),
        Origin.of(bias, moved, 4, pitch=pitch),
    )
    return PackedArray(blocks, origins)


def _blocks(lines: Array, width: int) -> Array:
    """Lines (..., channels) block by block, shape (blocks, ..., width)."""
    starts = block_starts(lines.shape[-1], width)
    return np.stack([lines[..., start : start + width] for start in starts])


def pack_u8(
    weights: Int32Array, bias: Int32Array, factors: Factors, width: int, has_words: bool
) -> PackedArray:
    """Bias, scales and groups of four taps, block by block.

    Parameters
    ----------
    weights : ndarray, int32, shape (lines, 4, channels)
        Less their zero point; each line's four weights are multiplied and added at once.
    bias : ndarray, int32, shape (channels,)
    factors
        What sums are multiplied by for the output.
    width
        Channels of a block.
    has_words
        Whether weights become 16-bit integers.

    Returns
    -------
    PackedArray
        uint8, shape (blocks, bytes). Of each block the bias as int32, scales and nudges as
        float32, exact factors of 8 bytes, then lines; each of these in the order of
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
        )
        blocks.append(np.concatenate([part.reshape(-1).view(np.uint8) for part in parts]))
    words = weights.astype(np.int16 if has_words else np.int8)
    lines = _lines(words, width, has_words)
    heads = np.stack(blocks)
    packed = side_by_side(heads, lines)
    begin, pitch = heads.shape[1], packed.shape[1]
    origins = (
        Origin.of(
            weights,
            partial(_lines, width=width, has_words=has_words),
            words.itemsize,
            begin,
            pitch,
        ),
        Origin.of(bias, partial(_ordered, width=width), 4, pitch=pitch),
    )
    return PackedArray(packed, origins)


def _ordered(channels: Array, width: int) -> Array:
    """Order values by channel (..., channels) block by block, as lanes lie."""
    size = max(width, 16)
    return _filled(_blocks(channels, width), size)[..., lane_order(size)]


def _filled(values: Array, size: int, mode: Literal["constant", "edge"] = "constant") -> Array:
    """Channels, with zeros or the last one after them up to a number."""
    missing = size - values.shape[-1]
    return np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, missing)], mode)


def _lines(weights: Array, width: int, has_words: bool) -> Array:
    """Weights (lines, 4, channels) block by block, in the order in which they are multiplied."""
    ordered = _ordered(weights, width)
    if not has_words:
        return ordered.swapaxes(2, 3)
    blocks, lines, _, size = ordered.shape
    vectors = ordered.reshape(blocks, lines, 2, 2, 4, size // 4)
    # axes: block, line, upper pair of taps, odd tap, vector, lane
    return vectors.transpose(0, 1, 4, 3, 5, 2)
