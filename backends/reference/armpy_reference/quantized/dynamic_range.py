"""Integer arithmetic on float inputs with quantised weights.

References
----------
TFLite's hybrid kernels; ``tensor_utils::SymmetricQuantizeFloats`` and
``AsymmetricQuantizeFloats``.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from armpy.core.dataclass import dataclass
from armpy.core.numerics.rounding import round_half_away

Float32Array = npt.NDArray[np.float32]

_LOWEST, _HIGHEST = -128, 127


@dataclass(frozen=True, slots=True)
class DynamicRange:
    """Quantises float inputs to 8 bits by the range that they happen to have."""

    weight_scales: Float32Array  # shape (1,) or (channels,)
    is_asymmetric: bool  # whether inputs get a zero point

    def quantized(self, rows: Float32Array) -> tuple[Float32Array, Float32Array]:
        """Integers for rows of numbers, each row with a scale of its own.

        Parameters
        ----------
        rows : ndarray, float32, shape (n, length)

        Returns
        -------
        integers : ndarray, float32, shape (n, length)
            Between -255 and 255: the zero point is taken off.
        factors : ndarray, float32, shape (n, 1) or (n, channels)
            Value of one unit of a sum of products of them and of the weights' integers.
        """
        low = rows.min(axis=1, keepdims=True, initial=0)
        high = rows.max(axis=1, keepdims=True, initial=0)
        quantize = _quantize_asymmetrically if self.is_asymmetric else _quantize_symmetrically
        integers, scales = quantize(rows, low, high)
        return integers, scales * self.weight_scales


def _quantize_symmetrically(
    rows: Float32Array, low: Float32Array, high: Float32Array
) -> tuple[Float32Array, Float32Array]:
    """Integers from -127 to 127 and their scales."""
    reach = np.maximum(-low, high)
    # Numbers so small that the reciprocal of their scale is infinite count as 0. A range that is
    # NaN gives NaN.
    reach[np.isinf(_HIGHEST / reach)] = _HIGHEST
    integers = round_half_away(rows * (np.float32(_HIGHEST) / reach))
    scales: Float32Array = np.divide(reach, _HIGHEST, dtype=np.float32)
    return np.clip(integers, -_HIGHEST, _HIGHEST), scales


def _quantize_asymmetrically(
    rows: Float32Array, low: Float32Array, high: Float32Array
) -> tuple[Float32Array, Float32Array]:
    """Integers less their zero points, and their scales."""
    span = high.astype(np.float64) - low
    scale = span / (_HIGHEST - _LOWEST)
    # Numbers so small that the reciprocal of their scale is infinite count as 0.
    scale[~np.isfinite(np.float32(1) / scale.astype(np.float32))] = 1.0
    from_low, from_high = low / scale, high / scale
    nearer_low = -from_low - _LOWEST < from_high + _HIGHEST
    exact = np.where(nearer_low, _LOWEST - from_low, _HIGHEST - from_high)
    zero_point = round_half_away(np.clip(exact, _LOWEST, _HIGHEST)).astype(np.float32)
    scales = scale.astype(np.float32)
    integers = round_half_away(zero_point + rows * (np.float32(1) / scales))
    centred: Float32Array = np.clip(integers, _LOWEST, _HIGHEST) - zero_point
    return centred, scales
