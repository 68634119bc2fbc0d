"""What becomes of each 16-bit element, as TFLite's reference kernels compute it.

Notes
-----
Tables are indexed by the elements' bits.

References
----------
TFLite ``integer_ops/logistic.h``, ``integer_ops/tanh.h``, ``activations.cc`` (``TanhPrepare``).
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import numpy.typing as npt

from armpy.ops import UnaryOperation
from armpy.tensor import TensorInfo
from armpy_numba_acc.packing.fixed_point import Int64Array, multiplied
from armpy_numba_acc.packing.interpolation import interpolation_table
from armpy_numba_acc.packing.quantized import scale_of
from armpy_numba_acc.packing.tables import Floats, RealFunction, rounded_exp, rounded_log

Int16Array = npt.NDArray[np.int16]


def of_sigmoid(source: TensorInfo) -> Int16Array:
    """Sigmoid with the output scale ``2**-15``; interpolates at multiples of 1/24."""
    arguments = _arguments(source, exact_shifts=(0,))
    result = _interpolated(np.abs(arguments), 9)
    result = np.where(arguments >= 0, result, (1 << 25) - 1 - result) + (1 << 9)
    return (result >> 10).astype(np.int16)


def of_tanh(source: TensorInfo) -> Int16Array:
    """The same for tanh, which is ``2 sigmoid(2 x) - 1``."""
    arguments = _arguments(source, exact_shifts=(0, 1))
    result = _interpolated(np.abs(arguments), 8) - (1 << 23)
    result = np.where(arguments >= 0, result, -result - 1) + (1 << 7)
    return (result >> 8).astype(np.int16)


def of_unary(operation: UnaryOperation, source: TensorInfo, target: TensorInfo) -> Int16Array:
    """ABS in fixed point; EXP, LOG and RSQRT between samples. Others have no arithmetic."""
    words = _every_word()
    if operation is UnaryOperation.ABS:
        ratio = float(scale_of(source) / scale_of(target))
        steps = multiplied(np.abs(words - source.zero_point), ratio) + target.zero_point
        clamped: Int64Array = np.clip(steps, *target.data_type.integer_range)
        return clamped.astype(np.int16)
    samples = interpolation_table(
        _function(operation, target),
        (source.scale, source.zero_point),
        (target.scale, target.zero_point),
    )
    index = (words >> 7) + 256
    slopes = np.diff(samples).astype(np.int64)  # wraps in 16 bits, as the reference's does
    between = (slopes[index] * (words & 127) + 64) >> 7
    values: Int64Array = samples.astype(np.int64)[index] + between
    return values.astype(np.int16)


def _function(operation: UnaryOperation, target: TensorInfo) -> RealFunction:
    """A function of real numbers; where it has none, the lowest or highest of the output."""
    lowest, highest = (
        np.float32(target.scale) * np.float32(bound - target.zero_point)
        for bound in target.data_type.integer_range
    )
    functions: dict[UnaryOperation, RealFunction] = {
        UnaryOperation.EXP: rounded_exp,
        UnaryOperation.LOG: lambda x: np.where(x > 0, rounded_log(x), lowest),
        UnaryOperation.RSQRT: lambda x: np.where(x > 0, 1 / np.sqrt(x), highest),
    }

    def quietly(values: Floats) -> Floats:
        with np.errstate(all="ignore"):
            return functions[operation](values)

    return quietly


def _every_word() -> Int64Array:
    """All elements in the order of their bits."""
    return np.arange(1 << 16, dtype=np.uint16).view(np.int16).astype(np.int64)


def _arguments(source: TensorInfo, exact_shifts: tuple[int, ...]) -> Int64Array:
    """Every element in steps of 1 / (3 * 4096).

    Notes
    -----
    A scale of ``2**(shift - 12)`` has an exact factor; TFLite uses it for some shifts only.
    """
    stored = _every_word()
    exponent = math.log2(source.scale)
    left = round(exponent) + 12
    if abs(exponent - round(exponent)) < 1e-3 and left in exact_shifts:
        return stored * (3 << left)
    factor = float(scale_of(source)) * 4096.0 * 3.0
    right = 0
    while factor <= 32767.0 / 2.0 and right <= 30:
        right += 1
        factor *= 2.0
    return (stored * int(factor) + ((1 << right) >> 1)) >> right


def _interpolated(arguments: Int64Array, fraction_bits: int) -> Int64Array:
    """Sigmoid with 16 bits and `fraction_bits` more, saturated from the last sample on."""
    samples = _samples()
    index = arguments >> fraction_bits
    is_high = index >= len(samples) - 1
    index = np.minimum(index, len(samples) - 2)
    rest = arguments & ((1 << fraction_bits) - 1)
    result = (samples[index] << fraction_bits) + rest * (samples[index + 1] - samples[index])
    # The reference saturates to other integers for 9 bits (sigmoid) than for 8 (tanh).
    highest = 0x7FFF << 10 if fraction_bits == 9 else 0xFFFF << 8
    return np.where(is_high, highest, result)


@cache
def _samples() -> Int64Array:
    """``sigmoid(i / 24)`` with 16 fraction bits for i below 256.

    Each is moved by half the error of interpolation in the middle of a step, which is an eighth
    of the second difference; the last one is the highest.
    """
    exact: npt.NDArray[np.float64] = 65536 / (1 + np.exp(np.arange(1, -257, -1) / 24.0))
    samples = np.rint(exact[1:-1] - np.diff(exact, 2) / 16).astype(np.int64)
    samples[-1] = 65535
    return samples
