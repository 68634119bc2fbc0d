"""Between stored integers and the real numbers that they stand for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from armpy.ops.activations import FusedActivation
from armpy.tensor import Quantization, TensorInfo

Float32Array = npt.NDArray[np.float32]

_FAR = 1 << 31
"""Steps that no stored integer is away from another."""


def scale_of(info: TensorInfo) -> np.float32:
    """The per-tensor scale as the file format stores it, which is what kernels compute with."""
    return np.float32(info.scale)


def real_bound(bound: float, info: TensorInfo) -> int:
    """The stored integer next to a real number; it may lie outside of the type's range."""
    with np.errstate(over="ignore"):
        steps = round_half_away(np.float32(bound) / scale_of(info))
    return info.zero_point + int(np.clip(steps, -_FAR, _FAR))


def activation_range(activation: FusedActivation, info: TensorInfo) -> tuple[int, int]:
    """Lowest and highest stored integer that an activation lets through.

    Parameters
    ----------
    activation : FusedActivation
    info : TensorInfo
        Of the output; quantised per tensor, or of a plain integer type.

    References
    ----------
    TFLite ``CalculateActivationRangeQuantized``.
    """
    lowest, highest = info.data_type.integer_range
    low, high = activation.bounds
    if low is not None:
        lowest = max(lowest, real_bound(low, info))
    if high is not None:
        highest = min(highest, real_bound(high, info))
    return lowest, highest


def round_half_away(values: Any) -> Any:  # Any: a scalar or an array of either float type
    """Round to an integer, halves away from zero, as C's ``round`` does."""
    return np.trunc(values + np.copysign(_below_half(values), values))


def _below_half(values: Any) -> Any:  # Any: as above
    """The largest number below one half: added to 0.49999997 it does not round up to 1."""
    half = np.asarray(values).dtype.type(0.5)
    return np.nextafter(half, half.dtype.type(0))


def dequantize(stored: npt.NDArray[Any], info: TensorInfo) -> Float32Array:
    """Real numbers of stored integers; scales may run along an axis.

    Parameters
    ----------
    stored : ndarray, dtype and shape of `info`
    info : TensorInfo

    Returns
    -------
    ndarray, float32, shape of `stored`
        A new array.

    Notes
    -----
    One rounding: the product of a float32 scale and an integer difference, which a
    float64 holds exactly, is rounded to float32.
    """
    scales, zero_points = _columns(info.quantization, stored.ndim)
    if stored.dtype.itemsize <= 2:
        # Differences below 2**24 are exact in float32, so that its product rounds once.
        real: Float32Array = np.subtract(stored, zero_points, dtype=np.float32)
        real *= scales
        return real
    wide: npt.NDArray[np.float64] = (stored.astype(np.float64) - zero_points) * scales
    return wide.astype(np.float32)


def quantize(real: npt.NDArray[np.floating[Any]], info: TensorInfo, out: npt.NDArray[Any]) -> None:
    """Stored integers of real numbers, saturated.

    Parameters
    ----------
    real : ndarray, float32, shape of `out`
        NaN becomes real 0.
    info : TensorInfo
        Of `out`; scales may run along an axis.
    out : ndarray, dtype and shape of `info`

    Notes
    -----
    Divides by the float32 scale in float32 and rounds half away from zero, then adds the
    zero point.

    References
    ----------
    TFLite ``reference_ops::AffineQuantize``, ``PerChannelQuantize``.
    """
    scales, zero_points = _columns(info.quantization, out.ndim)
    steps = np.divide(real, scales, dtype=np.float32)
    rounded = np.asarray(round_half_away(steps)).astype(np.float64)
    rounded[np.isnan(rounded)] = 0
    rounded += zero_points
    np.clip(rounded, *info.data_type.integer_range, out=rounded)
    out[...] = rounded


def saturate(values: npt.NDArray[np.int64], info: TensorInfo, out: npt.NDArray[Any]) -> None:
    """Add the output's zero point to int64 values in place and write them, saturated."""
    values += info.zero_point
    np.clip(values, *info.data_type.integer_range, out=values)
    out[...] = values


def _columns(
    quantization: Quantization | None, rank: int
) -> tuple[Float32Array, npt.NDArray[np.int32]]:
    """Scales and zero points, shaped to broadcast along their axis."""
    if quantization is None:
        return np.ones((), np.float32), np.zeros((), np.int32)
    scales = np.array(quantization.scales, np.float32)
    zero_points = np.array(quantization.zero_points, np.int32)
    axis = quantization.axis
    shape = () if axis is None else tuple(-1 if i == axis % rank else 1 for i in range(rank))
    return scales.reshape(shape), zero_points.reshape(shape)


def is_output_of(info: TensorInfo, scale: float, zero_point: int) -> bool:
    """Whether an output has the quantisation that a fixed-point kernel produces.

    Notes
    -----
    The tolerance of one in a thousand is TFLite's.
    """
    return info.zero_point == zero_point and math.isclose(info.scale, scale, rel_tol=1e-3)
