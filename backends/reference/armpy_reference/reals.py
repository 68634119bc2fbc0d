"""Elements of any floating-point or quantised type as float32, and back."""

from __future__ import annotations

import numpy as np

from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy_reference.quantization import Float32Array, dequantize, quantize


def to_real(stored: Array, info: TensorInfo) -> Float32Array:
    """Real numbers of stored elements.

    Parameters
    ----------
    stored : ndarray, dtype of `info`, any shape
    info : TensorInfo

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

    Parameters
    ----------
    real : ndarray, float32, any shape
    info : TensorInfo

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
