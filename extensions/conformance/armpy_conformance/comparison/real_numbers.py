"""The real numbers that stored elements stand for."""

from __future__ import annotations

import numpy as np

from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy_conformance.comparison import small_floats


def real_numbers(elements: Array, info: TensorInfo) -> Array:
    """The real numbers that stored elements stand for, in float64; others as they are."""
    if info.data_type.is_bit_pattern:
        return small_floats.real_numbers(elements, info.data_type)
    if info.quantization is None:
        return elements.astype(np.float64) if info.data_type.is_float else elements
    scales = np.array(info.quantization.scales)
    zero_points = np.array(info.quantization.zero_points)
    axis = info.quantization.axis
    if axis is not None:
        along = [-1 if i == axis else 1 for i in range(elements.ndim)]
        scales, zero_points = scales.reshape(along), zero_points.reshape(along)
    return np.asarray((elements.astype(np.float64) - zero_points) * scales)
