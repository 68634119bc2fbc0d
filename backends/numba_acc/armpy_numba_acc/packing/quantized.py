"""8-bit tensors as kernels see them: unsigned elements, zero points to match."""

from __future__ import annotations

import numpy as np

from armpy.core import numerics
from armpy.tensor import TensorInfo
from armpy.types import DataType

QUANTIZED_TYPES = (DataType.QASYMM_U8, DataType.QASYMM_S8)
"""Types of the tensors that are kept as unsigned bytes."""

WIDE_TYPES = (DataType.QSYMM_S16, DataType.QASYMM_U16)
"""Quantised types of 16 bits; they are kept as they are."""


def zero_point_of(info: TensorInfo) -> int:
    """Zero point of a tensor's elements in a region, where signed ones have their top bit flipped.

    Parameters
    ----------
    info
        Of a quantised type, or of a plain one that has the zero point 0.
    """
    return info.zero_point + (128 if info.data_type is DataType.QASYMM_S8 else 0)


def scale_of(info: TensorInfo) -> np.float32:
    """The per-tensor scale as file formats store it."""
    return np.float32(info.scale)


def product_factor(x: TensorInfo, y: TensorInfo, output: TensorInfo) -> float:
    """Return the factor of sums of products; TFLite multiplies the two scales in float32."""
    return float(scale_of(x) * scale_of(y)) / float(scale_of(output))


def parameters_of(info: TensorInfo) -> numerics.QuantizationParameters:
    """Per-tensor parameters of the elements in a region."""
    return numerics.QuantizationParameters(scale_of(info), zero_point_of(info), *range_of(info))


def range_of(info: TensorInfo) -> tuple[int, int]:
    """Lowest and highest element of a tensor in a region."""
    return (0, 255) if info.data_type in QUANTIZED_TYPES else info.data_type.integer_range


def stored_bounds(bounds: tuple[float | None, float | None], info: TensorInfo) -> tuple[int, int]:
    """Clamp of an activation function, as elements in a region.

    Parameters
    ----------
    bounds
        Lowest and highest real number; None where there is no bound.
    info
        Of the output.
    """
    return parameters_of(info).clamp_of(bounds)


def step_bounds(bounds: tuple[float | None, float | None], info: TensorInfo) -> tuple[float, float]:
    """`stored_bounds`, counted from the zero point."""
    low, high = stored_bounds(bounds, info)
    zero = zero_point_of(info)
    return float(low - zero), float(high - zero)
