"""Resampling of an axis to another length, as ONNX's ``Resize`` says.

References
----------
ONNX ``Resize``; Keys, "Cubic convolution interpolation for digital image processing", 1981.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from armpy.core.dataclass import dataclass
from armpy.core.numerics.rounding import Int64Array
from armpy.ops.operation import require

Float32Array = npt.NDArray[np.float32]
Float64Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class AxisScaling:
    """Lengths of an axis before and after."""

    size: int
    out_size: int
    scale: float
    """Elements of the output per element of the input; the output's size is rounded down."""
    # Of the region that is shown, as shares of the axis; only ``tf_crop_and_resize`` looks.
    start: float = 0.0
    end: float = 1.0

    @property
    def length(self) -> float:
        """The output's size before it was rounded."""
        return self.size * self.scale


@dataclass(frozen=True, slots=True)
class Filter:
    """Interpolation filter for elements between those of the input."""

    mode: str
    sharpness: float = -0.75  # of cubic interpolation; negative
    antialias: bool = False  # whether the filter is stretched where the output is shorter
    exclude_outside: bool = False
    """Whether what lies beyond the ends has no weight. Otherwise it is as the ends."""


@dataclass(frozen=True, slots=True)
class Taps:
    """Elements of the input that each element of the output is the weighted sum of."""

    indices: Int64Array  # ndarray, int64, shape (out, taps)
    weights: Float64Array  # ndarray, float64, shape (out, taps)

    @property
    def centres(self) -> Float64Array:
        """Mean positions, shape (out,); they define linear interpolation completely."""
        return np.asarray((self.indices * self.weights).sum(axis=1))


def _aligned_corners(x: Float32Array, axis: AxisScaling) -> Float32Array:
    return x * (axis.size - 1) / float(axis.out_size - 1) if axis.out_size != 1 else x * 0


def _asymmetric(x: Float32Array, axis: AxisScaling) -> Float32Array:
    return x / axis.scale


def _half_pixels(x: Float32Array, axis: AxisScaling) -> Float32Array:
    return (x + 0.5) / axis.scale - 0.5


def _pytorch_half_pixels(x: Float32Array, axis: AxisScaling) -> Float32Array:
    return _half_pixels(x, axis) if axis.out_size > 1 else x * 0


def _symmetric_half_pixels(x: Float32Array, axis: AxisScaling) -> Float32Array:
    return _half_pixels(x, axis) + axis.size / 2 * (1 - axis.out_size / axis.length)


def _cropped(x: Float32Array, axis: AxisScaling) -> Float32Array:
    last = axis.size - 1
    if axis.out_size == 1:
        return x + (axis.start + axis.end) * last / 2
    return axis.start * last + x * (axis.end - axis.start) * last / float(axis.out_size - 1)


Transformation: TypeAlias = Callable[[Float32Array, AxisScaling], Float32Array]
TRANSFORMATIONS: Mapping[str, Transformation] = {
    "align_corners": _aligned_corners,
    "asymmetric": _asymmetric,
    "half_pixel": _half_pixels,
    "half_pixel_symmetric": _symmetric_half_pixels,
    "pytorch_half_pixel": _pytorch_half_pixels,
    "tf_crop_and_resize": _cropped,
}
"""Positions in the input of positions in the output, by ``coordinate_transformation_mode``."""

Rounding: TypeAlias = Callable[[Float64Array], Float64Array]
ROUNDINGS: Mapping[str, Rounding] = {
    "ceil": np.ceil,
    "floor": np.floor,
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
}
"""The element that stands for a position, by ``nearest_mode``."""


def positions(axis: AxisScaling, transformation: Transformation) -> Float64Array:
    """Return where in the input each element of the output lies, shape (out,).

    Notes
    -----
    In float32, as scales are: 6.5 / 1.3 is to be 5.
    """
    places = transformation(np.arange(axis.out_size, dtype=np.float32), axis)
    require(np.isfinite(places).all(), "the scale or region overflows", expected="finite positions")
    return places.astype(np.float64)


def nearest(axis: AxisScaling, where: Float64Array, rounding: Rounding) -> Int64Array:
    """The element that is nearest to each position, shape (out,)."""
    return np.clip(rounding(where), 0, axis.size - 1).astype(np.int64)


def num_taps(axis: AxisScaling, kernel: Filter) -> int:
    """Return how many elements each element of the output is made of."""
    return 2 - 2 * _first_tap(axis, kernel)


def _stretch(axis: AxisScaling, kernel: Filter) -> float:
    """Return how many elements of the output a step of the input is, for a filter."""
    return min(axis.scale, 1.0) if kernel.antialias else 1.0


def _first_tap(axis: AxisScaling, kernel: Filter) -> int:
    """The place of the first tap beside the position."""
    support = 1 if kernel.mode == "linear" else 2
    return int(np.floor(-support / _stretch(axis, kernel))) + 1


def taps(axis: AxisScaling, where: Float64Array, kernel: Filter) -> Taps:
    """The elements around each position, and their weights."""
    stretch, first = _stretch(axis, kernel), _first_tap(axis, kernel)
    reach = 1 - first  # beyond which all is as the ends
    where = np.clip(where, -1 - reach, axis.size + reach)
    left = np.ceil(where) - 1  # so that a position on an element has it at its right
    offsets = np.arange(first, 2 - first)
    indices = left.astype(np.int64)[:, None] + offsets
    distances = np.abs(offsets - (where - left)[:, None]) * stretch
    if kernel.mode == "linear":
        weights = np.clip(1 - distances, 0, 1)
    else:
        weights = _cubic(distances, kernel.sharpness)
    if kernel.exclude_outside:
        weights *= (indices >= 0) & (indices < axis.size)
    total = weights.sum(axis=1, keepdims=True)
    weights = np.divide(weights, total, out=np.zeros_like(weights), where=total != 0)
    return Taps(np.clip(indices, 0, axis.size - 1), weights)


def _cubic(distances: Float64Array, a: float) -> Float64Array:
    """Weights of cubic convolution."""
    d = distances
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0.0))
