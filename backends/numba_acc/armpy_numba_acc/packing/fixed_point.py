"""Fixed-point arithmetic of TFLite's reference kernels, for tables.

References
----------
TFLite ``kernels/internal/common.h`` (``MultiplyByQuantizedMultiplier``) and
``quantization_util.cc`` (``QuantizeMultiplier``).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Int64Array = npt.NDArray[np.int64]

_TOO_LARGE = 2.0**32

_HALF_ROOT_OF_TWO = 1518500250
"""With 31 fraction bits."""


def multiplier_of(real: float) -> tuple[int, int]:
    """Write a real number of at least 0 as ``multiplier * 2**(shift - 31)``.

    Notes
    -----
    Numbers too small to matter become (0, 0), and those that are too large, infinity too, the
    largest pair.
    """
    if real >= _TOO_LARGE:
        return (1 << 31) - 1, 30
    fraction, shift = math.frexp(real)
    multiplier = math.floor(fraction * (1 << 31) + 0.5)
    if multiplier == 1 << 31:
        multiplier, shift = multiplier // 2, shift + 1
    if shift < -31:
        return 0, 0
    return (multiplier, shift) if shift <= 30 else ((1 << 31) - 1, 30)


def parameters_of(real: float) -> tuple[float, float, float]:
    """A multiplier as expressions in fixed point take it: upper and lower bits, and shift."""
    multiplier, shift = multiplier_of(real)
    return float(multiplier >> 16), float(multiplier & 0xFFFF), float(shift)


def multiplied(values: Int64Array, real: float) -> Int64Array:
    """Integers times a real number, rounded as ``MultiplyByQuantizedMultiplier`` does.

    Parameters
    ----------
    values : ndarray, int64, shape (...)
        Their magnitude is below 2**32.
    real : float
        May be negative.

    Notes
    -----
    Double rounding: the doubled high product rounds half up, the right shift half away from
    zero. Left shifts are part of the former: ``(v 2**l m + 2**30) >> 31`` is
    ``(v m + 2**(30 - l)) >> (31 - l)`` for integers, and does not leave 63 bits.
    """
    multiplier, shift = multiplier_of(abs(real))
    sign = -1 if real < 0 else 1
    left = max(shift, 0)
    high = (values * np.int64(sign * multiplier) + (1 << (30 - left))) >> (31 - left)
    return shifted_right(high, max(-shift, 0))


def high_product(values: Int64Array, factor: Int64Array | int, bits: int = 32) -> Int64Array:
    """High half of the doubled product, rounded half up and saturated."""
    product = (values * np.int64(factor) + (1 << (bits - 2))) >> (bits - 1)
    result: Int64Array = np.minimum(product, (1 << (bits - 1)) - 1)
    return result


def shifted_right(values: Int64Array, exponent: int) -> Int64Array:
    """Divide by a power of two, rounding half away from zero."""
    if exponent == 0:
        return values
    result: Int64Array = (values + (values >> 63) + (1 << (exponent - 1))) >> exponent
    return result


def inverse_root(values: Int64Array) -> tuple[Int64Array, Int64Array]:
    """``1 / sqrt(x)`` as ``multiplier * 2**(-31 - shift)``.

    Parameters
    ----------
    values : ndarray, int64, shape (...)
        From 1 to 2**29 - 1.

    Returns
    -------
    multiplier, shift : ndarray, int64, shape of `values`

    References
    ----------
    TFLite ``kernels/internal/common.h`` (``GetInvSqrtQuantizedMultiplierExp``): five Newton steps
    from 1 on the argument, brought to three integer bits by an even shift.
    """
    up = (29 - np.frexp(values.astype(np.float64))[1].astype(np.int64)) // 2
    half = shifted_right((values << (2 * up)) >> 1, 1)
    x: Int64Array = np.full_like(values, 1 << 28)
    for _ in range(5):
        cube = _saturated(high_product(high_product(x, x), x) << 6)
        x = _saturated((high_product(x, 3 << 27) - high_product(half, cube)) << 3)
    multiplier = high_product(x, _HALF_ROOT_OF_TWO)
    shift = 11 - up
    multiplier <<= np.maximum(-shift, 0)
    is_one = values == 1
    return np.where(is_one, (1 << 31) - 1, multiplier), np.where(is_one, 0, np.maximum(shift, 0))


def _saturated(values: Int64Array) -> Int64Array:
    """Clamp to 32 bits."""
    result: Int64Array = np.clip(values, -(1 << 31), (1 << 31) - 1)
    return result
