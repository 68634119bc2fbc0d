"""float32 weights as kernels want them."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from armpy_numba_acc.packing.origins import Origin, PackedArray
from armpy_numba_acc.packing.panels import in_groups, in_panels, side_by_side

Array = npt.NDArray[Any]  # Any: float32


def pack_panels_f32(weights: Array, bias: Array | None, width: int) -> PackedArray:
    """Weights and bias, panel by panel.

    Parameters
    ----------
    weights : ndarray, float32, shape (columns, taps, depth)
    bias : ndarray, float32, shape (columns,), optional
        Zeros if left out.
    width
        Columns of a panel; the last one is filled up with zeros.

    Returns
    -------
    PackedArray
        float32, shape (panels, 1 + taps * depth, width): each panel's bias, then its lines.
    """
    lines = _panels(weights, width)
    packed = np.zeros((len(lines), 1 + lines.shape[1], width), np.float32)
    packed[:, 1:] = lines
    if bias is not None:
        packed[:, 0] = in_panels(bias, width)
    pitch, moved = packed[0].nbytes, partial(_panels, width=width)
    origin = Origin.of(weights, moved, 4, begin=4 * width, pitch=pitch)
    return PackedArray(packed, (origin, *bias_origins(bias, width, 0, pitch)))


def _panels(weights: Array, width: int) -> Array:
    """Lines (panels, taps * depth, width) of weights (columns, taps, depth)."""
    return in_panels(weights.reshape(len(weights), -1), width).swapaxes(1, 2)


def bias_origins(bias: Array | None, width: int, begin: int, pitch: int) -> tuple[Origin, ...]:
    """The origin of a bias of 4 bytes that lies in panels, if there is one."""
    if bias is None:
        return ()
    return (Origin.of(bias, partial(in_panels, width=width), 4, begin, pitch),)


def as_bfloat16(values: Array) -> npt.NDArray[np.uint16]:
    """The bits of the nearest bfloat16, ties to even."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    rounded = bits + (np.uint32(0x7FFF) + ((bits >> 16) & np.uint32(1)))
    quiet = bits | np.uint32(0x400000)  # rounding could make an infinity of a NaN
    return (np.where(np.isnan(values), quiet, rounded) >> 16).astype(np.uint16)


def pack_panels_bf16(weights: Array, bias: Array | None, width: int) -> PackedArray:
    """Weights and bias, panel by panel; parameters as for `pack_panels_f32`.

    Returns
    -------
    PackedArray
        float32, shape (panels, 1 + taps * lines, width): each panel's bias, then the bits of its
        lines: of every column two neighbours of a tap as bfloat16, the first one in the lower
        half. Where the depth is odd the last one of each tap has a zero beside it.
    """
    columns, taps, depth = weights.shape
    pairs = np.zeros((columns, taps, -(-depth // 2) * 2), np.uint16)
    pairs[..., :depth] = as_bfloat16(weights)
    numbers = pairs.reshape(columns, -1, 2).astype(np.uint32)
    words = numbers[..., 0] | numbers[..., 1] << np.uint32(16)
    packed = pack_panels_f32(words[:, None].view(np.float32), bias, width)
    return PackedArray(packed.array, packed.origins[1:])  # weights have lost bits


def pack_panels_bf16_paired(weights: Array, bias: Array | None, width: int) -> PackedArray:
    """Weights and bias, panel by panel; parameters as for `pack_panels_f32`.

    Returns
    -------
    PackedArray
        uint8, shape (panels, bytes): each panel's bias as float32, then its lines: of every column
        four neighbours of a tap as bfloat16, with zeros after the last one of each tap.
    """
    bits = as_bfloat16(weights).reshape(weights.shape)
    added = np.zeros(len(weights), np.float32) if bias is None else bias.astype(np.float32)
    panels = side_by_side(in_panels(added, width), in_groups(bits, width, 4))
    return PackedArray(panels, bias_origins(bias, width, 0, panels.shape[1]))
