"""Positions and weights of resizing, along one axis.

References
----------
TFLite reference kernels ``resize_bilinear.h`` (``ComputeInterpolationValues``,
``ComputeInterpolationValuesInteger``) and ``resize_nearest_neighbor.h``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from armpy.core.dataclass import dataclass
from armpy.core.numerics.rounding import Int64Array, round_half_away

FRACTION_BITS = 10
"""Fraction bits of integer weights."""


@dataclass(frozen=True, slots=True)
class Samples:
    """Neighbours in the input that elements along an axis are interpolated between.

    Positions and weights have shape (out,); integer weights have `FRACTION_BITS`.
    """

    lower: Int64Array
    upper: Int64Array
    lower_weights: npt.NDArray[Any]  # Any: float32 or int64
    upper_weights: npt.NDArray[Any]  # Any: as above


def real_samples(
    size: int, out_size: int, *, align_corners: bool, half_pixel_centers: bool
) -> Samples:
    """Neighbours of bilinear interpolation, with weights in float32.

    `size` and `out_size` count elements along the axis before and after. `align_corners` lays
    the first and the last elements of both upon each other; with `half_pixel_centers` elements
    lie in the middle of their pixels.

    Reference: TFLite ``ComputeInterpolationValues``.
    """
    positions = np.arange(out_size, dtype=np.float32)
    scale = scale_of(size, out_size, align_corners)
    if half_pixel_centers:
        positions = (positions + np.float32(0.5)) * scale - np.float32(0.5)
    else:
        positions = positions * scale
    lower = np.maximum(np.floor(positions), 0)
    upper = np.minimum(np.ceil(positions), size - 1).astype(np.int64)
    share = positions - lower
    return Samples(lower.astype(np.int64), upper, np.float32(1) - share, share)


def integer_samples(
    size: int, out_size: int, *, align_corners: bool, half_pixel_centers: bool
) -> Samples:
    """Neighbours of bilinear interpolation, with integer weights; otherwise as `real_samples`.

    Reference: TFLite ``ComputeInterpolationValuesInteger``.
    """
    unit = 1 << FRACTION_BITS
    if align_corners and out_size > 1:
        scale = (unit * (size - 1) + (out_size - 1) // 2) // (out_size - 1)
    else:
        scale = (unit * size + out_size // 2) // out_size
    positions = np.arange(out_size, dtype=np.int64) * scale
    if half_pixel_centers:
        positions += scale // 2 - unit // 2
    lower = np.maximum(positions >> FRACTION_BITS, 0)
    upper = np.minimum((positions + unit - 1) >> FRACTION_BITS, size - 1)
    share = positions - lower * unit
    return Samples(lower, upper, unit - share, share)


def nearest_positions(
    size: int, out_size: int, *, align_corners: bool, half_pixel_centers: bool
) -> Int64Array:
    """Positions of nearest neighbours, shape (out,); parameters as of `real_samples`.

    Reference: TFLite ``GetNearestNeighbor``.
    """
    offset = np.float32(0.5 if half_pixel_centers else 0)
    scale = scale_of(size, out_size, align_corners)
    positions = (np.arange(out_size, dtype=np.float32) + offset) * scale
    whole = round_half_away(positions) if align_corners else np.floor(positions)
    return np.asarray(np.clip(whole, 0, size - 1), np.int64)


def scale_of(size: int, out_size: int, align_corners: bool) -> np.float32:
    """Input elements per output element, in float32."""
    if align_corners and out_size > 1:
        return np.float32(size - 1) / np.float32(out_size - 1)
    return np.float32(size) / np.float32(out_size)
