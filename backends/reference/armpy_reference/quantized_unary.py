"""Arithmetic on the elements of one quantised tensor, exactly as TFLite's reference kernels.

References
----------
TFLite ``activations.cc``, ``elementwise.cc``, ``exp.cc``, ``quantize.cc`` and the reference
kernels ``requantize.h``, ``hard_swish.h``, ``integer_ops/logistic.h``, ``integer_ops/tanh.h``.
"""

from __future__ import annotations

import math
from functools import lru_cache, partial

import numpy as np
import numpy.typing as npt

from armpy.tensor import TensorInfo
from armpy_reference.fixed_point import (
    Int64Array,
    Multiplier,
    quantize_multiplier,
    rounding_shift_right,
)
from armpy_reference.gemmlowp import inverse_sqrt_multiplier, multiply_high
from armpy_reference.lookup_table import (
    Array,
    RealFunction,
    UnaryKernel,
    interpolate,
    interpolation_table,
    look_up,
    table_of_function,
    table_of_kernel,
)
from armpy_reference.quantization import dequantize, quantize, scale_of

_RSQRT_SHIFT = 20

_LARGEST_FACTOR = 2.0**40
"""Takes any 16-bit integer but 0 behind the last sample of a sigmoid."""


def unary_kernel(
    source: TensorInfo,
    target: TensorInfo,
    function: RealFunction,
    kernel: UnaryKernel | None = None,
) -> UnaryKernel:
    """The quickest kernel for a function of stored integers.

    Parameters
    ----------
    source, target : TensorInfo
    function : callable
        Of real numbers, as for `table_of_function`.
    kernel : UnaryKernel, optional
        Integer arithmetic to use in place of the function.

    Returns
    -------
    UnaryKernel
        A table's for 8-bit inputs; else `kernel`, or computation in float32.
    """
    if source.data_type.size_bytes == 1:
        return table_kernel(source, target, function, kernel)
    return kernel or partial(_through_float, source, target, function)


def table_kernel(
    source: TensorInfo,
    target: TensorInfo,
    function: RealFunction,
    kernel: UnaryKernel | None = None,
) -> UnaryKernel:
    """A kernel that looks up what `kernel`, or else the function, makes of 8-bit integers."""
    if kernel is None:
        return partial(look_up, table_of_function(function, source, target))
    return partial(look_up, table_of_kernel(kernel, source, target))


def _through_float(
    source: TensorInfo, target: TensorInfo, function: RealFunction, stored: Array, out: Array
) -> None:
    """Compute with float32 numbers."""
    quantize(function(dequantize(stored, source)), target, out)


def interpolating_kernel(
    source: TensorInfo, target: TensorInfo, function: RealFunction
) -> UnaryKernel:
    """A kernel that interpolates between samples of a function of 16-bit integers."""
    table = interpolation_table(
        function, (source.scale, source.zero_point), (target.scale, target.zero_point)
    )

    def compute(stored: Array, out: Array) -> None:
        out[...] = interpolate(table, stored)

    return compute


def clamped_rescaling(
    source: TensorInfo, target: TensorInfo, low: int | None = None, high: int | None = None
) -> UnaryKernel:
    """A kernel that rescales with the ratio of scales in float32, as RELU does, and clamps.

    Parameters
    ----------
    source, target : TensorInfo
    low, high : int, optional
        Stored integers of the output; its type's range where left out.
    """
    lowest, highest = target.data_type.integer_range
    bounds = (lowest if low is None else max(low, lowest), highest if high is None else high)
    ratio = float(scale_of(source) / scale_of(target))
    return _rescaling(source, target, ratio, (bounds[0], min(bounds[1], highest)))


def requantization(source: TensorInfo, target: TensorInfo) -> UnaryKernel:
    """A kernel that rescales with the ratio of scales in float64, as QUANTIZE does."""
    ratio = float(scale_of(source)) / float(scale_of(target))
    return _rescaling(source, target, ratio, target.data_type.integer_range)


def _rescaling(
    source: TensorInfo, target: TensorInfo, ratio: float, bounds: tuple[int, int]
) -> UnaryKernel:
    """A kernel that multiplies differences from the zero point by a ratio."""
    multiplier = Multiplier.from_real(ratio)

    def compute(stored: Array, out: Array) -> None:
        values = _centred(stored, source)
        multiplier.apply_in_place(values)
        _finish(values, target, out, bounds)

    return compute


def leaky_relu(source: TensorInfo, target: TensorInfo, alpha: float) -> UnaryKernel:
    """A kernel that rescales negative and other integers with different factors."""
    ratio = float(scale_of(source) / scale_of(target))
    negative_ratio = float(scale_of(source) * np.float32(alpha) / scale_of(target))
    identity = Multiplier.from_real(ratio)
    multiplier, shift = quantize_multiplier(abs(negative_ratio))
    signed = multiplier if alpha >= 0 else -multiplier
    negative = Multiplier.from_pairs([(signed, shift)], ())

    def compute(stored: Array, out: Array) -> None:
        values = _centred(stored, source)
        result = np.where(values >= 0, identity.apply(values), negative.apply(values))
        _finish(result, target, out)

    return compute


def absolute(source: TensorInfo, target: TensorInfo) -> UnaryKernel:
    """A kernel for ABS."""
    ratio = float(scale_of(source) / scale_of(target))
    multiplier = Multiplier.from_real(ratio)

    def compute(stored: Array, out: Array) -> None:
        values = np.abs(_centred(stored, source))
        if ratio != 1:
            multiplier.apply_in_place(values)
        _finish(values, target, out)

    return compute


def reciprocal_square_root(source: TensorInfo, target: TensorInfo) -> UnaryKernel:
    """A kernel for 8-bit RSQRT; 0 and what is negative become the highest integer."""
    scale = float(np.sqrt(scale_of(source)) * scale_of(target))
    multiplier, shift = quantize_multiplier(1.0 / scale if scale else math.inf)
    to_output = Multiplier.from_pairs([(multiplier, shift - _RSQRT_SHIFT)], ())

    def compute(stored: Array, out: Array) -> None:
        values = _centred(stored, source)
        inverse, inverse_shift = inverse_sqrt_multiplier(np.maximum(values, 1))
        shift = inverse_shift + _RSQRT_SHIFT
        # The multiplier takes the place of the accumulator, which is 1.
        roots = multiply_high(np.left_shift(1, np.maximum(shift, 0)), inverse)
        rounding_shift_right(roots, np.maximum(-shift, 0))
        to_output.apply_in_place(roots)
        roots[values <= 0] = target.data_type.integer_range[1] << 16
        _finish(roots, target, out)

    return compute


def hard_swish(source: TensorInfo, target: TensorInfo) -> UnaryKernel:
    """A kernel for 8-bit HARD_SWISH.

    Notes
    -----
    16-bit fixed point: ``x`` with 7 more bits times a clamped linear function of ``x`` that
    goes from 0 to 1, whose product is truncated and then rescaled.
    """
    fine_scale = scale_of(source) * np.float32(1 / 128)
    to_output, output_shift = _short_multiplier(float(fine_scale / scale_of(target)))
    to_ramp, ramp_shift = _short_multiplier(float(fine_scale / np.float32(3 / 32768)))

    def compute(stored: Array, out: Array) -> None:
        fine = _centred(stored, source) << 7
        scaled = multiply_high(fine, to_output, 16)
        ramp = _saturated16(fine << max(ramp_shift - 1, 0))
        ramp = multiply_high(ramp, to_ramp, 16)
        if ramp_shift > 0:
            ramp = _saturated16(ramp << 1)
        rounding_shift_right(ramp, max(-ramp_shift, 0))
        product = ((ramp + (1 << 15)) >> 1) * scaled
        # Towards zero, which a shift does for positive numbers only.
        result = np.sign(product) * (np.abs(product) >> 15)
        rounding_shift_right(result, max(-output_shift, 0))
        _finish(result << max(output_shift, 0), target, out)

    return compute


def _short_multiplier(real: float) -> tuple[int, int]:
    """A fixed-point multiplier of 16 bits and its shift."""
    multiplier, shift = quantize_multiplier(real)
    return min((multiplier + (1 << 15)) >> 16, (1 << 15) - 1), shift


def _saturated16(values: Int64Array) -> Int64Array:
    """Clamp to 16 bits."""
    return np.clip(values, -(1 << 15), (1 << 15) - 1)


def logistic16(source: TensorInfo) -> UnaryKernel:
    """A kernel for 16-bit SIGMOID with the output scale 2**-15.

    Notes
    -----
    Interpolates samples of the function at multiples of 1/24, for absolute arguments.
    """
    multiplier, shift = _argument_multiplier(source, exact_shifts=(0,))

    def compute(stored: Array, out: Array) -> None:
        arguments = (stored * np.int64(multiplier) + ((1 << shift) >> 1)) >> shift
        result = _interpolated_sigmoid(np.abs(arguments), 9)
        result = np.where(arguments >= 0, result, (1 << 25) - 1 - result) + (1 << 9)
        out[...] = result >> 10

    return compute


def tanh16(source: TensorInfo) -> UnaryKernel:
    """A kernel for 16-bit TANH with the output scale 2**-15.

    Notes
    -----
    ``2 sigmoid(2 x) - 1`` with the samples of `logistic16`.
    """
    multiplier, shift = _argument_multiplier(source, exact_shifts=(0, 1))

    def compute(stored: Array, out: Array) -> None:
        arguments = (stored * np.int64(multiplier) + ((1 << shift) >> 1)) >> shift
        result = _interpolated_sigmoid(np.abs(arguments), 8) - (1 << 23)
        result = np.where(arguments >= 0, result, -result - 1) + (1 << 7)
        out[...] = result >> 8

    return compute


def _argument_multiplier(source: TensorInfo, exact_shifts: tuple[int, ...]) -> tuple[int, int]:
    """What brings stored integers to the scale 1 / (3 * 4096): a factor, and a right shift.

    Notes
    -----
    A scale of ``2**(shift - 12)`` has an exact factor; TFLite uses it for some shifts only.
    """
    exponent = math.log2(source.scale)
    left_shift = round(exponent) + 12
    if abs(exponent - round(exponent)) < 1e-3 and left_shift in exact_shifts:
        return 3 << left_shift, 0
    factor = float(scale_of(source)) * 4096.0 * 3.0
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
    # The reference saturates to other integers for 9 bits (SIGMOID) than for 8 (TANH).
    highest = 0x7FFF << 10 if fraction_bits == 9 else 0xFFFF << 8
    return np.where(is_high, highest, result)


@lru_cache(maxsize=1)
def _sigmoid_samples() -> Int64Array:
    """``sigmoid(i / 24)`` with 16 fraction bits for i below 256.

    Each is moved by half the error of interpolation in the middle of a step, which is an
    eighth of the second difference; the last one is the highest.
    """
    exact: npt.NDArray[np.float64] = 65536 / (1 + np.exp(np.arange(1, -257, -1) / 24.0))
    samples = np.rint(exact[1:-1] - np.diff(exact, 2) / 16).astype(np.int64)
    samples[-1] = 65535
    return samples


def _centred(stored: Array, info: TensorInfo) -> Int64Array:
    """Differences from the zero point, as a new array."""
    return np.subtract(stored, info.zero_point, dtype=np.int64)


def _finish(
    values: Int64Array, target: TensorInfo, out: Array, bounds: tuple[int, int] | None = None
) -> None:
    """Add the zero point, clamp and write."""
    values += target.zero_point
    out[...] = np.clip(values, *(bounds or target.data_type.integer_range))
