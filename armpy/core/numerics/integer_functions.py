"""Functions of one stored integer in integer arithmetic: activation and unary functions.

Each takes the parameters of its operands and returns a function of arrays of stored integers.
Backends compute with it, or make a table of it: of all 256 integers, or of all 65,536.

References
----------
TFLite ``activations.cc``, ``elementwise.cc``, ``quantize.cc`` and the reference kernels
``requantize.h``, ``hard_swish.h``, ``integer_ops/logistic.h``, ``integer_ops/tanh.h``.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import numpy.typing as npt

from armpy.core.numerics.fixed_point import (
    Multiplier,
    multiply_high,
    quantize_multiplier,
    short_multiplier,
)
from armpy.core.numerics.gemmlowp import inverse_sqrt_multiplier
from armpy.core.numerics.lookup_table import Stored, StoredFunction
from armpy.core.numerics.quantization import QuantizationParameters
from armpy.core.numerics.rounding import (
    Int64Array,
    round_half_away,
    rounding_shift_right,
    saturating_shift_left,
)

__all__ = [
    "absolute",
    "clamped_rescaling",
    "concatenated",
    "converted",
    "hard_swish",
    "leaky_relu",
    "logistic16",
    "reciprocal_square_root",
    "requantized",
    "shifted_rescaling",
    "square_root",
    "tanh16",
]

_RSQRT_SHIFT = 20
"""Fraction bits of reciprocal roots before they are rescaled."""

_LARGEST_FACTOR = 2.0**40
"""Scales any 16-bit integer but 0 past the last sample of a sigmoid."""


def shifted_rescaling(factor: float, source: QuantizationParameters, left: int) -> StoredFunction:
    """Rescale differences from the zero point with more bits, as before sums and comparisons.

    Differences are shifted left by `left` bits, which 32 bits hold. Results are neither moved
    to a zero point nor saturated.
    """
    multiplier = Multiplier.from_real(factor)

    def compute(stored: Stored) -> Int64Array:
        values = source.centred(stored)
        values <<= left
        return multiplier.apply(values, out=values)

    return compute


def requantized(source: QuantizationParameters, target: QuantizationParameters) -> StoredFunction:
    """Requantise with the ratio of scales in float64, as QUANTIZE does.

    Reference: TFLite ``reference_ops::Requantize``.
    """
    ratio = float(source.scale) / float(target.scale)
    return _rescaling(source, target, ratio, (target.lowest, target.highest))


def clamped_rescaling(
    source: QuantizationParameters,
    target: QuantizationParameters,
    bounds: tuple[float | None, float | None],
) -> StoredFunction:
    """Requantise with the ratio of scales in float32 and clamp, as RELU and its kin do.

    `bounds` are the lowest and highest real number; None where there is no bound.

    Reference: TFLite ``activations.cc`` (``ReluXEvalQuantized``).
    """
    with np.errstate(all="ignore"):  # of odd scales
        ratio = float(source.scale / target.scale)
    low, high = np.clip(target.clamp_of(bounds), target.lowest, target.highest).tolist()
    return _rescaling(source, target, ratio, (low, high))


def _rescaling(
    source: QuantizationParameters,
    target: QuantizationParameters,
    ratio: float,
    bounds: tuple[int, int],
) -> StoredFunction:
    """Multiply differences from the zero point by a ratio."""
    rescale = shifted_rescaling(ratio, source, 0)
    return lambda stored: target.clamped(rescale(stored), *bounds)


def concatenated(source: QuantizationParameters, target: QuantizationParameters) -> StoredFunction:
    """Requantise 8 bits in float32, as CONCATENATION does.

    Rounds half away from zero and saturates. Signed numbers are shifted into the unsigned
    range, where products are rounded otherwise than around 0.

    Reference: TFLite ``ConcatenationWithScaling``; NNAPI CONCATENATION.
    """
    scale = source.scale * (np.float32(1) / target.scale)
    bias = np.float32(source.lowest - source.zero_point) * scale

    def compute(stored: Stored) -> Int64Array:
        unsigned = np.subtract(stored, source.lowest, dtype=np.float32)
        rounded = round_half_away(unsigned * scale + bias)
        moved = rounded + (target.zero_point - target.lowest)
        clamped: npt.NDArray[np.float32] = np.clip(moved, 0, 255)
        return clamped.astype(np.int64) + target.lowest

    return compute


def converted(
    source: tuple[float, int], target: tuple[float, int], bounds: tuple[int, int]
) -> StoredFunction:
    """Requantise in float64, as MINIMUM and MAXIMUM do before they choose.

    `source` and `target` are (scale, zero point), `bounds` the range of stored integers. Stored
    integers are rounded, half away from 0: those of a signed type are not those of an unsigned
    one moved. NNAPI's reference does so; TFLite's kernels that choose elements expect equal
    quantisations and copy.
    """

    def compute(stored: Stored) -> Int64Array:
        real = (stored.astype(np.float64) - source[1]) * source[0]
        steps: npt.NDArray[np.float64] = np.clip(real / target[0] + target[1], *bounds)
        rounded: npt.NDArray[np.float64] = round_half_away(steps)
        return rounded.astype(np.int64)

    return compute


def leaky_relu(
    source: QuantizationParameters, target: QuantizationParameters, alpha: float
) -> StoredFunction:
    """LEAKY_RELU: rescale negative and other integers with different factors.

    Reference: TFLite ``reference_ops::QuantizeLeakyRelu``.
    """
    with np.errstate(all="ignore"):  # of odd scales
        ratio = float(source.scale / target.scale)
        negative_ratio = float(source.scale * np.float32(alpha) / target.scale)
    identity = Multiplier.from_real(ratio)
    multiplier, shift = quantize_multiplier(abs(negative_ratio))
    signed = multiplier if alpha >= 0 else -multiplier
    negative = Multiplier.from_pairs([(signed, shift)], ())

    def compute(stored: Stored) -> Int64Array:
        values = source.centred(stored)
        parts = identity.apply(values), negative.apply(values)
        return target.saturated(np.where(values >= 0, *parts))

    return compute


def absolute(source: QuantizationParameters, target: QuantizationParameters) -> StoredFunction:
    """ABS: rescale magnitudes.

    Reference: TFLite ``elementwise.cc`` (``AbsEvalQuantized``).
    """
    with np.errstate(all="ignore"):  # of odd scales
        multiplier = Multiplier.from_real(float(source.scale / target.scale))

    def compute(stored: Stored) -> Int64Array:
        values = source.centred(stored)
        np.abs(values, out=values)
        return target.saturated(multiplier.apply(values, out=values))

    return compute


def reciprocal_square_root(
    source: QuantizationParameters, target: QuantizationParameters
) -> StoredFunction:
    """RSQRT of 8 bits; 0 and negative numbers become the highest integer.

    Reference: TFLite ``elementwise.cc`` (``RsqrtEvalQuantized``).
    """
    scale = float(np.sqrt(source.scale) * target.scale)
    multiplier, shift = quantize_multiplier(1.0 / scale if scale else math.inf)
    to_output = Multiplier.from_pairs([(multiplier, shift - _RSQRT_SHIFT)], ())

    def compute(stored: Stored) -> Int64Array:
        values = source.centred(stored)
        inverse, inverse_shift = inverse_sqrt_multiplier(np.maximum(values, 1))
        shift = inverse_shift + _RSQRT_SHIFT
        # The multiplier takes the place of the accumulator, which is 1.
        roots = multiply_high(np.left_shift(1, np.maximum(shift, 0)), inverse)
        roots = to_output.apply(rounding_shift_right(roots, np.maximum(-shift, 0)))
        return np.where(values <= 0, target.highest, target.saturated(roots))

    return compute


def square_root(source: QuantizationParameters, target: QuantizationParameters) -> StoredFunction:
    """SQRT, rounded down, 0 of negative numbers; as ``SqrtEvalQuantized`` of TFLite."""

    def compute(stored: Stored) -> Int64Array:
        values = np.maximum(source.centred(stored), 0).astype(np.float32)
        with np.errstate(all="ignore"):  # of odd scales
            steps = np.nan_to_num(np.sqrt(source.scale * values) / target.scale)
        return target.saturated(np.minimum(steps, 1 << 17).astype(np.int64))

    return compute


def hard_swish(source: QuantizationParameters, target: QuantizationParameters) -> StoredFunction:
    """HARD_SWISH of 8 bits, ``x * min(max(x + 3, 0), 6) / 6``.

    16-bit fixed point: ``x`` with 7 more bits times a clamped linear function of ``x`` that
    goes from 0 to 1, whose product is truncated and then rescaled.

    Reference: TFLite ``reference_ops::HardSwish``.
    """
    with np.errstate(all="ignore"):  # of odd scales
        fine_scale = source.scale * np.float32(1 / 128)
        to_output, output_shift = short_multiplier(float(fine_scale / target.scale))
        to_ramp, ramp_shift = short_multiplier(float(fine_scale / np.float32(3 / 32768)))

    def compute(stored: Stored) -> Int64Array:
        fine = source.centred(stored) << 7
        ramp = saturating_shift_left(fine, max(ramp_shift - 1, 0), 16)
        ramp = multiply_high(ramp, to_ramp, 16)
        if ramp_shift > 0:
            ramp = saturating_shift_left(ramp, 1, 16)
        ramp = rounding_shift_right(ramp, max(-ramp_shift, 0))
        product = ((ramp + (1 << 15)) >> 1) * multiply_high(fine, to_output, 16)
        # Towards zero, which a shift does for positive numbers only.
        result = np.sign(product) * (np.abs(product) >> 15)
        result = rounding_shift_right(result, max(-output_shift, 0))
        return target.saturated(result << max(output_shift, 0))

    return compute


def logistic16(source: QuantizationParameters) -> StoredFunction:
    """LOGISTIC of int16 with the zero point 0, with the output scale 2**-15.

    Interpolates samples of the function at multiples of 1/24, for absolute arguments.

    Reference: TFLite ``integer_ops/logistic.h``.
    """
    multiplier, shift = _argument_multiplier(source, exact_shifts=(0,))

    def compute(stored: Stored) -> Int64Array:
        arguments = (stored * np.int64(multiplier) + ((1 << shift) >> 1)) >> shift
        result = _interpolated_sigmoid(np.abs(arguments), 9)
        result = np.where(arguments >= 0, result, (1 << 25) - 1 - result) + (1 << 9)
        return result >> 10

    return compute


def tanh16(source: QuantizationParameters) -> StoredFunction:
    """TANH of int16 with the zero point 0, with the output scale 2**-15.

    ``2 sigmoid(2 x) - 1`` with the samples of `logistic16`.

    Reference: TFLite ``integer_ops/tanh.h``; ``activations.cc`` (``TanhPrepare``).
    """
    multiplier, shift = _argument_multiplier(source, exact_shifts=(0, 1))

    def compute(stored: Stored) -> Int64Array:
        arguments = (stored * np.int64(multiplier) + ((1 << shift) >> 1)) >> shift
        result = _interpolated_sigmoid(np.abs(arguments), 8) - (1 << 23)
        result = np.where(arguments >= 0, result, -result - 1) + (1 << 7)
        return result >> 8

    return compute


def _argument_multiplier(
    source: QuantizationParameters, exact_shifts: tuple[int, ...]
) -> tuple[int, int]:
    """Return the factor and right shift that bring stored integers to the scale 1 / (3 * 4096).

    A scale of ``2**(shift - 12)`` has an exact factor; TFLite uses it for some shifts only.
    """
    exponent = math.log2(source.scale)
    left_shift = round(exponent) + 12
    if abs(exponent - round(exponent)) < 1e-3 and left_shift in exact_shifts:
        return 3 << left_shift, 0
    factor = float(source.scale) * 4096.0 * 3.0
    right_shift = 0
    while factor <= 32767.0 / 2.0 and right_shift <= 30:
        right_shift += 1
        factor *= 2.0
    return int(min(factor, _LARGEST_FACTOR)), right_shift


def _interpolated_sigmoid(arguments: Int64Array, fraction_bits: int) -> Int64Array:
    """Sigmoid with 16 bits and `fraction_bits` more, saturated from the last sample on."""
    samples = _sigmoid_samples()
    index = arguments >> fraction_bits
    is_high = index >= len(samples) - 1
    index = np.minimum(index, len(samples) - 2)
    rest = arguments & ((1 << fraction_bits) - 1)
    result = (samples[index] << fraction_bits) + rest * (samples[index + 1] - samples[index])
    # The reference saturates to other integers for 9 bits (LOGISTIC) than for 8 (TANH).
    highest = 0x7FFF << 10 if fraction_bits == 9 else 0xFFFF << 8
    return np.where(is_high, highest, result)


@cache
def _sigmoid_samples() -> Int64Array:
    """``sigmoid(i / 24)`` with 16 fraction bits for i below 256.

    Each is moved by half the error of interpolation in the middle of a step, which is an
    eighth of the second difference; the last one is the highest.
    """
    exact: npt.NDArray[np.float64] = 65536 / (1 + np.exp(np.arange(1, -257, -1) / 24.0))
    samples = np.rint(exact[1:-1] - np.diff(exact, 2) / 16).astype(np.int64)
    samples[-1] = 65535
    return samples
