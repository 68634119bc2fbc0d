"""Arithmetic on two quantised tensors, exactly as TFLite's reference kernels do it.

References
----------
TFLite ``add.cc``, ``sub.cc``, ``mul.cc``, ``div.cc``, ``squared_difference.cc``,
``activations.cc`` (PRELU), ``comparisons.cc``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from armpy.core.numerics.fixed_point import Multiplier
from armpy.core.numerics.integer_functions import converted, shifted_rescaling
from armpy.core.numerics.lookup_table import StoredFunction
from armpy.core.numerics.pair_functions import PairFunction, quotients, through_reals
from armpy.core.numerics.rounding import Int64Array, rounding_shift_right
from armpy.tensor import TensorInfo
from armpy_reference.quantization import parameters_of, scale_of
from armpy_reference.quantized.lookup_table import Array, BinaryKernel

Bounds = tuple[int, int]
"""Lowest and highest stored integer of an output, its fused activation included."""


def addition(
    inputs: Sequence[TensorInfo], output: TensorInfo, bounds: Bounds, sign: int = 1
) -> BinaryKernel:
    """Addition (subtraction with the sign -1) of rescaled integers.

    Inputs are shifted left by 20 bits (15 for 16-bit types), multiplied by their share of
    twice the larger scale, added, and multiplied to the output's scale.
    """
    left_shift = 15 if output.data_type.size_bytes == 2 else 20
    common = _twice_larger_scale(inputs)
    first, second = (_rescaling(info, common, left_shift) for info in inputs)
    to_output = Multiplier.from_real(common / float(np.float32(1 << left_shift) * scale_of(output)))

    def compute(lhs: Array, rhs: Array, out: Array) -> None:
        total = first(lhs) + sign * second(rhs)
        to_output.apply(total, out=total)
        _finish(total, output, bounds, out)

    return compute


def shifting_addition(
    inputs: Sequence[TensorInfo], output: TensorInfo, bounds: Bounds, sign: int = 1
) -> BinaryKernel | None:
    """Addition of 16-bit integers, the finer of which are shifted right, with saturation.

    Returns
    -------
    BinaryKernel or None
        The addition; None unless all scales are powers of two, all zero points 0, and one input has
        the output's scale while the other's is not larger.
    """
    infos = (*inputs, output)
    if output.data_type.size_bytes != 2 or any(info.zero_point for info in infos):
        return None
    exponents = [math.log2(info.scale) for info in infos]
    if any(abs(exponent - round(exponent)) >= 1e-3 for exponent in exponents):
        return None
    shifts = [round(exponents[2]) - round(exponent) for exponent in exponents[:2]]
    if min(shifts) != 0:
        return None
    low, high = output.data_type.integer_range

    def compute(lhs: Array, rhs: Array, out: Array) -> None:
        left, right = lhs.astype(np.int64), rhs.astype(np.int64)
        rounding_shift_right(left, shifts[0], out=left)
        rounding_shift_right(right, shifts[1], out=right)
        total = np.clip(left + sign * right, low, high)
        out[...] = np.clip(total, *bounds)

    return compute


def multiplication(
    inputs: Sequence[TensorInfo], output: TensorInfo, bounds: Bounds
) -> BinaryKernel:
    """Multiplication of differences from the zero points, whose product is rescaled."""
    factor = scale_of(inputs[0]) * scale_of(inputs[1]) / scale_of(output)
    multiplier = Multiplier.from_real(float(factor))

    def compute(lhs: Array, rhs: Array, out: Array) -> None:
        product = _centred(lhs, inputs[0]) * _centred(rhs, inputs[1])
        multiplier.apply(product, out=product)
        _finish(product, output, bounds, out)

    return compute


def division(inputs: Sequence[TensorInfo], output: TensorInfo, bounds: Bounds) -> BinaryKernel:
    """Division, as a product with a fixed-point reciprocal."""
    lhs, rhs = map(parameters_of, inputs)
    return _written(quotients((lhs, rhs), parameters_of(output), bounds))


def squared_difference(
    inputs: Sequence[TensorInfo], output: TensorInfo, bounds: Bounds
) -> BinaryKernel:
    """Squared difference of 8-bit integers rescaled with 7 more bits."""
    left_shift = 7
    common = _twice_larger_scale(inputs)
    first, second = (_rescaling(info, common, left_shift) for info in inputs)
    to_output = Multiplier.from_real(
        common * common / float(np.float32(1 << (2 * left_shift)) * scale_of(output))
    )

    def compute(lhs: Array, rhs: Array, out: Array) -> None:
        difference = first(lhs) - second(rhs)
        difference *= difference
        to_output.apply(difference, out=difference)
        _finish(difference, output, bounds, out)

    return compute


def parametric_relu(inputs: Sequence[TensorInfo], output: TensorInfo) -> BinaryKernel:
    """Parametric rectifier: products with alpha for negative elements, others rescaled."""
    ratio = scale_of(inputs[0]) / scale_of(output)
    product_ratio = scale_of(inputs[0]) * scale_of(inputs[1]) / scale_of(output)
    identity = Multiplier.from_real(float(ratio))
    negative = Multiplier.from_real(float(product_ratio))

    def compute(lhs: Array, rhs: Array, out: Array) -> None:
        values = _centred(lhs, inputs[0])
        products = negative.apply(values * _centred(rhs, inputs[1]))
        result = np.where(values >= 0, identity.apply(values), products)
        _finish(result, output, output.data_type.integer_range, out)

    return compute


def comparison(
    inputs: Sequence[TensorInfo], compare: Callable[[Any, Any], npt.NDArray[np.bool_]]
) -> BinaryKernel:
    """Comparison of integers multiplied by their scales with 8 more bits."""
    first, second = (_rescaling(info, 1.0, 8) for info in inputs)

    def compute(lhs: Array, rhs: Array, out: Array) -> None:
        out[...] = compare(first(lhs), second(rhs))

    return compute


def choice(
    inputs: Sequence[TensorInfo], output: TensorInfo, bounds: Bounds, choose: Callable[..., Any]
) -> BinaryKernel:
    """Minimum or maximum of stored integers, brought to the output's quantisation."""

    def compute(lhs: Array, rhs: Array, out: Array) -> None:
        chosen = choose(requantized(lhs, inputs[0], output), requantized(rhs, inputs[1], output))
        out[...] = np.clip(chosen, *bounds)

    return compute


def through_float(
    inputs: Sequence[TensorInfo],
    output: TensorInfo,
    bounds: Bounds,
    function: Callable[[Any, Any], Any],
) -> BinaryKernel:
    """Any function, by float32 numbers in between."""
    lhs, rhs = map(parameters_of, inputs)
    return _written(through_reals((lhs, rhs), parameters_of(output), bounds, function))


def _written(function: PairFunction) -> BinaryKernel:
    def compute(lhs: Array, rhs: Array, out: Array) -> None:
        out[...] = function(lhs, rhs)

    return compute


def requantized(stored: Array, source: TensorInfo, target: TensorInfo) -> Array:
    """Requantise to another quantisation of the same type, in float64."""
    if source.quantization == target.quantization:
        return stored
    first, second = ((info.scale, info.zero_point) for info in (source, target))
    function = converted(first, second, target.data_type.integer_range)
    return function(stored).astype(target.data_type.dtype)


def _twice_larger_scale(inputs: Sequence[TensorInfo]) -> float:
    """Common scale that both inputs are brought to before they are added."""
    return 2 * float(max(scale_of(info) for info in inputs))


def _rescaling(info: TensorInfo, common: float, left_shift: int) -> StoredFunction:
    """Rescaling of integers by ``2**left_shift * scale / common``."""
    return shifted_rescaling(float(scale_of(info)) / common, parameters_of(info), left_shift)


def _centred(stored: Array, info: TensorInfo) -> Int64Array:
    """Differences from the zero point, as a new array."""
    return np.subtract(stored, info.zero_point, dtype=np.int64)


def _finish(values: Int64Array, output: TensorInfo, bounds: Bounds, out: Array) -> None:
    """Add the zero point, clamp and write."""
    values += output.zero_point
    out[...] = np.clip(values, *bounds)
