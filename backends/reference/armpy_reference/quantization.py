"""Between stored integers and the real numbers that they stand for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from armpy.core.numerics.quantization import QuantizationParameters
from armpy.core.numerics.rounding import round_half_away
from armpy.ops.activations import FusedActivation
from armpy.tensor import Quantization, TensorInfo

Float32Array = npt.NDArray[np.float32]


def scale_of(info: TensorInfo) -> np.float32:
    """Per-tensor scale as file formats store it, which is what kernels compute with."""
    return np.float32(info.scale)


def parameters_of(info: TensorInfo) -> QuantizationParameters:
    """Quantisation parameters of a tensor, or of a plain one of integers."""
    return QuantizationParameters(scale_of(info), info.zero_point, *info.data_type.integer_range)


def activation_range(activation: FusedActivation, info: TensorInfo) -> tuple[int, int]:
    """Clamp of an activation function, as stored integers.

    Parameters
    ----------
    info
        Info of the output; quantised per tensor, or of a plain integer type.
    """
    return parameters_of(info).clamp_of(activation.bounds)


def dequantize(stored: npt.NDArray[Any], info: TensorInfo) -> Float32Array:
    """Dequantise stored integers; scales may run along an axis.

    One rounding: the product of a float32 scale and an integer difference, which a
    float64 holds exactly, is rounded to float32.

    Parameters
    ----------
    stored : ndarray, dtype and shape of `info`

    Returns
    -------
    ndarray, float32, shape of `stored`
        A new array.
    """
    scales, zero_points = _columns(info.quantization, stored.ndim)
    if stored.dtype.itemsize <= 2:
        # Differences below 2**24 are exact in float32, so that its product rounds once.
        real: Float32Array = np.subtract(stored, zero_points, dtype=np.float32)
        real *= scales
        return real
    wide: npt.NDArray[np.float64] = (stored.astype(np.float64) - zero_points) * scales
    return wide.astype(np.float32)


def quantize(
    real: npt.NDArray[np.floating[Any]],
    info: TensorInfo,
    out: npt.NDArray[Any],
    rounds_to_even: bool = False,
) -> None:
    """Quantise real numbers, saturated; scales may run along an axis.

    Divides by the float32 scale in float32 and rounds, then adds the zero point.

    Reference: TFLite ``reference_ops::AffineQuantize``, ``PerChannelQuantize``.

    Parameters
    ----------
    real : ndarray, float32, shape of `out`
        NaN becomes real 0.
    info
        Info of `out`; scales may run along an axis.
    out : ndarray, dtype and shape of `info`
    rounds_to_even
        Whether halves go to the even integer, not away from zero.
    """
    scales, zero_points = _columns(info.quantization, out.ndim)
    steps = np.divide(real, scales, dtype=np.float32)
    round_steps = np.rint if rounds_to_even else round_half_away
    rounded = np.asarray(round_steps(steps)).astype(np.float64)
    rounded[np.isnan(rounded)] = 0
    rounded += zero_points
    np.clip(rounded, *info.data_type.integer_range, out=rounded)
    out[...] = rounded


def saturate(values: npt.NDArray[np.int64], info: TensorInfo, out: npt.NDArray[Any]) -> None:
    """Saturate int64 values into an output, after adding its zero point in place."""
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
    shape: list[int] = []
    if quantization.axis is not None:
        shape = [1] * rank
        shape[quantization.axis % rank] = -1
    return scales.reshape(shape), zero_points.reshape(shape)


def is_output_of(info: TensorInfo, scale: float, zero_point: int) -> bool:
    """Return whether an output has the quantisation that a fixed-point kernel produces.

    The tolerance of one in a thousand is TFLite's.
    """
    return info.zero_point == zero_point and math.isclose(info.scale, scale, rel_tol=1e-3)
