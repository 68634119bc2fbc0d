"""8-bit tensors as kernels see them: unsigned elements, zero points to match."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from armpy.tensor import TensorInfo
from armpy.types import DataType

Float32Array = npt.NDArray[np.float32]

QUANTIZED_TYPES = (DataType.QASYMM_U8, DataType.QASYMM_S8)
"""Types of the tensors that are kept as unsigned bytes."""


def zero_point_of(info: TensorInfo) -> int:
    """Zero point of a tensor's elements in a region, where signed ones have their top bit flipped.

    Parameters
    ----------
    info : TensorInfo
        Of one of `QUANTIZED_TYPES`.
    """
    return info.zero_point + (128 if info.data_type is DataType.QASYMM_S8 else 0)


def scale_of(info: TensorInfo) -> np.float32:
    """The per-tensor scale as file formats store it."""
    return np.float32(info.scale)


def stored_bounds(bounds: tuple[float | None, float | None], info: TensorInfo) -> tuple[int, int]:
    """Lowest and highest unsigned element that a clamp lets through.

    Parameters
    ----------
    bounds : (float or None, float or None)
        Lowest and highest real number; None where there is no bound.
    info : TensorInfo
        Of the output; of one of `QUANTIZED_TYPES`.

    References
    ----------
    TFLite ``CalculateActivationRangeQuantized``.
    """
    low, high = bounds
    lowest = 0 if low is None else max(0, _nearest(low, info))
    highest = 255 if high is None else min(255, _nearest(high, info))
    return lowest, highest


def _nearest(real: float, info: TensorInfo) -> int:
    """The element next to a real number, halves away from zero; it may be out of range."""
    steps = float(np.float32(real) / scale_of(info))
    return zero_point_of(info) + int(np.copysign(np.floor(abs(steps) + 0.5), steps))


def rounding_nudges(scales: Float32Array, rounds_twice: bool = True) -> Float32Array:
    """How far scaled sums are moved away from zero, to be rounded like TFLite's fixed-point ones.

    Parameters
    ----------
    scales : ndarray, float32, any shape
        What sums are multiplied by.
    rounds_twice : bool
        Whether the arithmetic to imitate rounds twice, as that of convolutions.

    Notes
    -----
    Rounding twice, first to ``2**-r`` steps and then, halves away from zero, to steps, rounds up
    from ``n + 1/2 - 2**-(r + 1)`` on: `r` is the exponent of the scale. Rounding once, halves
    away from zero, is imitated by the smallest nudge that is not lost in float32.

    References
    ----------
    gemmlowp ``SaturatingRoundingDoublingHighMul``, ``RoundingDivideByPOT``.
    """
    smallest = np.float32(2.0**-15)
    if not rounds_twice:
        return np.full(scales.shape, smallest)
    shifts = np.maximum(-np.frexp(scales)[1], 0)
    nudges = np.where(shifts > 0, np.exp2(-(shifts + 1.0)), 0.0)
    return np.maximum(nudges, smallest).astype(np.float32)
