"""Scales and zero points of ranges, and integers of weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from armpy.core.dataclass import dataclass
from armpy.tensor import Quantization
from armpy.types import DataType

Floats = npt.NDArray[np.float32]

_LEAST_SCALE = 1e-9
"""Of channels whose weights are all 0, or nearly so."""

_LARGEST_BIAS = float(1 << 30)
"""Stored biases stay below it, so that there is room for the sums."""


@dataclass(frozen=True, slots=True)
class Range:
    """The real numbers that a tensor takes: from `low` to `high`."""

    low: float
    high: float

    def joined(self, other: Range) -> Range:
        """The range that holds both."""
        return Range(min(self.low, other.low), max(self.high, other.high))


def activation_scale(found: Range, data_type: DataType) -> Quantization:
    """Scale and zero point with which the integers cover a range, 0 among it exactly.

    Parameters
    ----------
    data_type : DataType
        QASYMM_S8, or QSYMM_S16, whose zero point is 0.
    """
    low, high = min(found.low, 0.0), max(found.high, 0.0)
    lowest, highest = data_type.integer_range
    if data_type.is_symmetric:
        scale = np.float32(max(-low, high) / highest)
        return Quantization.per_tensor(float(scale) if scale > 0 else 1.0)
    scale = np.float32((high - low) / (highest - lowest))
    if not scale > 0:
        return Quantization.per_tensor(1.0)
    point = round(lowest - low / float(scale))
    return Quantization.per_tensor(float(scale), min(max(point, lowest), highest))


def weight_scales(
    weights: Floats, axis: int | None, bias: Floats | None, input_scale: float
) -> Quantization:
    """Symmetric scales of weights, one per output channel or one for all.

    Parameters
    ----------
    weights : ndarray, float32, shape (...)
    axis : int or None
        Of the output channels; None for one scale.
    bias : ndarray, float32, shape (channels), optional
    input_scale : float
        Of the factors of the weights.

    Notes
    -----
    A channel of small weights and a large bias gets a larger scale than its weights need, so that
    the bias fits into 32 bits.
    """
    if axis is None:
        greatest = np.array([np.abs(weights).max(initial=0)], np.float64)
    else:
        others = tuple(i for i in range(weights.ndim) if i != axis)
        greatest = np.abs(weights).max(axis=others, initial=0).astype(np.float64)
    scales = np.maximum(greatest / 127, _LEAST_SCALE)
    if bias is not None and bias.size:
        needed = np.abs(bias.astype(np.float64)) / (input_scale * _LARGEST_BIAS)
        scales = np.maximum(scales, needed if axis is not None else needed.max())
    stored = [float(np.float32(scale)) for scale in scales]
    return (
        Quantization.per_tensor(stored[0]) if axis is None else Quantization.per_axis(stored, axis)
    )


def along(scales: Quantization, ndim: int) -> npt.NDArray[np.float64]:
    """The scales as an array that broadcasts against the tensor of `ndim` axes."""
    array = np.array(scales.scales, np.float64)
    if scales.axis is None:
        return array.reshape(())
    return array.reshape([-1 if i == scales.axis else 1 for i in range(ndim)])


def stored(
    real: npt.NDArray[np.floating[Any]], scales: Quantization, data_type: DataType
) -> npt.NDArray[np.generic]:
    """Real numbers as integers, halves to even; weights do without the lowest integer."""
    lowest, highest = data_type.integer_range
    if data_type is DataType.QSYMM_S8:
        lowest = -highest
    steps = np.rint(real.astype(np.float64) / along(scales, real.ndim))
    points = scales.zero_point if scales.axis is None else 0
    integers: npt.NDArray[np.generic] = np.clip(steps + points, lowest, highest).astype(
        data_type.dtype
    )
    return integers
