"""Elements of any floating-point or quantised type as float32, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy_reference.quantization import Float32Array, dequantize, quantize


def to_real(stored: Array, info: TensorInfo) -> Float32Array:
    """Real numbers of stored elements.

    Parameters
    ----------
    stored : ndarray, dtype of `info`, any shape

    Returns
    -------
    ndarray, float32, shape of `stored`
        May be `stored` itself.
    """
    if info.data_type.is_quantized:
        return dequantize(stored, info)
    return stored.astype(np.float32, copy=False)


def from_real(real: Float32Array, info: TensorInfo) -> Array:
    """Stored elements of real numbers.

    Returns
    -------
    ndarray, dtype of `info`, shape of `real`
        Rounded once; quantised types saturate. May be `real` itself.
    """
    if not info.data_type.is_quantized:
        return real.astype(info.data_type.dtype, copy=False)
    stored = np.empty(real.shape, info.data_type.dtype)
    quantize(real, info, stored)
    return stored


def mean_in_range(numbers: Array, axes: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Mean along axes whose sum overflows as in the type that ONNX adds up in.

    Parameters
    ----------
    dtype : dtype
        Type of the tensor; sums overflow as in float32 at least.

    Returns
    -------
    ndarray, float64, shape of `numbers` with 1 along `axes`
        Sums beyond the range are infinite; otherwise all digits of float64 stay.
    """
    sums: Array = numbers.sum(axis=axes, keepdims=True)
    count = numbers.size // sums.size if sums.size else 1
    most = float(np.finfo(np.promote_types(dtype, np.float32)).max)
    return np.where(np.abs(sums) > most, np.copysign(np.inf, sums), sums) / np.float64(count)
