"""What becomes of each 8-bit element, as TFLite's reference kernels compute it.

Notes
-----
Tables are indexed by elements as kernels see them, which are unsigned, and hold such.

References
----------
TFLite ``activations.cc``, ``elementwise.cc``, ``quantize.cc``, ``kernels/internal/common.h``
(``LUTPopulate``), and the reference kernels ``requantize.h`` and ``hard_swish.h``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from armpy.ops import Activation, ActivationFunction, UnaryOperation
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy_numba_acc.packing.fixed_point import (
    Int64Array,
    high_product,
    inverse_root,
    multiplied,
    multiplier_of,
    shifted_right,
)
from armpy_numba_acc.packing.quantized import scale_of, zero_point_of

Floats = npt.NDArray[Any]  # Any: float32; a ufunc's type is not narrower
RealFunction = Callable[[Floats], Floats]

_ROOT_OF_HALF = np.float32(0.7071067811865476)
_ROOT_OF_TWO_OVER_PI = np.float32(0.7978845608028654)


def of_requantization(source: TensorInfo, target: TensorInfo) -> Array:
    """Elements in another quantisation."""
    ratio = float(scale_of(source)) / float(scale_of(target))
    return _stored(multiplied(_centred(source), ratio), target)


def for_comparison(*sources: TensorInfo) -> list[Array]:
    """int32 that elements of several quantisations can be compared as.

    Notes
    -----
    Reals with 8 more bits, which may need 64; so each is replaced by how many are below it.
    """
    reals = [multiplied(_centred(source) << 8, float(scale_of(source))) for source in sources]
    order = np.unique(np.concatenate(reals))
    return [np.searchsorted(order, each).astype(np.int32) for each in reals]


def of_unary(operation: UnaryOperation, source: TensorInfo, target: TensorInfo) -> Array:
    """Elements of an `ElementwiseUnary`."""
    values = _centred(source)
    if operation is UnaryOperation.ABS:
        ratio = float(scale_of(source) / scale_of(target))
        return _stored(multiplied(np.abs(values), ratio), target)
    if operation is UnaryOperation.RSQRT:
        return _of_reciprocal_root(values, source, target)
    table = _of_function(_UNARY[operation], source, target)
    if operation is UnaryOperation.LOG:
        table[values <= 0] = 0
    return table


def of_activation(operation: Activation, source: TensorInfo, target: TensorInfo) -> Array:
    """Elements of an `Activation`."""
    function, values = operation.function, _centred(source)
    with np.errstate(over="ignore"):
        ratio = scale_of(source) / scale_of(target)
    if function is ActivationFunction.RELU:
        return np.maximum(_stored(multiplied(values, float(ratio)), target), _bound(0.0, target))
    if function is ActivationFunction.BOUNDED_RELU:
        low, high = _bound(operation.b, target), _bound(operation.a, target)
        stored = _stored(multiplied(values, float(ratio)), target)
        clamped: Array = np.clip(stored, low, high)
        return clamped
    if function is ActivationFunction.LEAKY_RELU:
        negative = float(scale_of(source) * np.float32(operation.a) / scale_of(target))
        parts = multiplied(values, float(ratio)), multiplied(values, negative)
        return _stored(np.where(values >= 0, *parts), target)
    if function is ActivationFunction.HARD_SWISH:
        return _of_hard_swish(source, target)
    return _of_function(_real_activation(operation), source, target)


# Integers


def _centred(info: TensorInfo) -> Int64Array:
    """Every element's difference from the zero point."""
    return np.arange(256, dtype=np.int64) - zero_point_of(info)


def _stored(steps: Int64Array, target: TensorInfo) -> Array:
    """Elements that differ from the zero point by so many steps."""
    return np.clip(steps + zero_point_of(target), 0, 255).astype(np.uint8)


def _bound(real: float, info: TensorInfo) -> np.uint8:
    """The element next to a real number."""
    steps = np.array([np.float32(real) / scale_of(info)])
    return np.uint8(np.clip(_rounded(steps)[0] + zero_point_of(info), 0, 255))


def _of_hard_swish(source: TensorInfo, target: TensorInfo) -> Array:
    """16-bit fixed point: ``x`` times a ramp from 0 to 1, truncated, and then rescaled."""
    fine = _centred(source) << 7
    fine_scale = scale_of(source) * np.float32(1 / 128)
    to_output, output_shift = _short_multiplier(float(fine_scale / scale_of(target)))
    to_ramp, ramp_shift = _short_multiplier(float(fine_scale / np.float32(3 / 32768)))
    ramp = high_product(_saturated16(fine << max(ramp_shift - 1, 0)), to_ramp, 16)
    if ramp_shift > 0:
        ramp = _saturated16(ramp << 1)
    ramp = shifted_right(ramp, max(-ramp_shift, 0))
    product = ((ramp + (1 << 15)) >> 1) * high_product(fine, to_output, 16)
    # Towards zero, which a shift does for positive numbers only.
    result = np.sign(product) * (np.abs(product) >> 15)
    return _stored(shifted_right(result, max(-output_shift, 0)) << max(output_shift, 0), target)


_ROOT_BITS = 20
"""Fraction bits of reciprocal roots before they are rescaled."""


def _of_reciprocal_root(values: Int64Array, source: TensorInfo, target: TensorInfo) -> Array:
    """``1 / sqrt(x)`` in fixed point; 0 and what is negative become the highest element.

    References
    ----------
    TFLite ``elementwise.cc`` (``RsqrtEvalQuantized``).
    """
    real = 1.0 / float(np.sqrt(scale_of(source)) * scale_of(target))
    inverse, right = inverse_root(np.maximum(values, 1))
    left = _ROOT_BITS - right
    roots = high_product(np.left_shift(1, np.maximum(left, 0)), inverse)
    roots = np.array(
        [shifted_right(root, max(-int(n), 0)) for root, n in zip(roots, left, strict=True)]
    )
    multiplier, shift = multiplier_of(real)
    shift -= _ROOT_BITS
    steps = shifted_right(high_product(roots << max(shift, 0), multiplier), max(-shift, 0))
    table = _stored(steps, target)
    table[values <= 0] = 255
    return table


def _short_multiplier(real: float) -> tuple[int, int]:
    """A fixed-point multiplier of 16 bits and its shift."""
    multiplier, shift = multiplier_of(real)
    return min((multiplier + (1 << 15)) >> 16, (1 << 15) - 1), shift


def _saturated16(values: Int64Array) -> Int64Array:
    """Clamp to 16 bits."""
    return np.clip(values, -(1 << 15), (1 << 15) - 1)


# Real numbers


def _rounded(values: Floats) -> Floats:
    """Integers next to floats, halves away from zero."""
    below_half = np.nextafter(values.dtype.type(0.5), values.dtype.type(0))
    result: Floats = np.trunc(values + np.copysign(below_half, values))
    return result


def _of_function(function: RealFunction, source: TensorInfo, target: TensorInfo) -> Array:
    """Elements of a function of real numbers; NaN is 0."""
    with np.errstate(all="ignore"):
        real = scale_of(source) * _centred(source).astype(np.float32)
        steps = function(real) * (np.float32(1) / scale_of(target))
        rounded = np.nan_to_num(_rounded(steps)) + np.float32(zero_point_of(target))
    return np.clip(rounded, 0, 255).astype(np.uint8)


def _once(function: RealFunction) -> RealFunction:
    """The function computed in float64 and rounded once."""
    return lambda values: function(values.astype(np.float64)).astype(np.float32)


rounded_exp, _expm1, rounded_log, _tanh = (_once(f) for f in (np.exp, np.expm1, np.log, np.tanh))


def _erfc(values: Floats) -> Floats:
    """The complementary error function, which NumPy lacks."""
    return np.array([math.erfc(value) for value in values.tolist()], np.float32)


_UNARY: Mapping[UnaryOperation, RealFunction] = {
    UnaryOperation.EXP: rounded_exp,
    UnaryOperation.SQRT: np.sqrt,
    UnaryOperation.NEG: np.negative,
    UnaryOperation.LOG: rounded_log,
    UnaryOperation.SIN: np.sin,
    UnaryOperation.COS: np.cos,
    UnaryOperation.CEIL: np.ceil,
    UnaryOperation.FLOOR: np.floor,
    UnaryOperation.ROUND: np.rint,
    UnaryOperation.SQUARE: np.square,
}


def _real_activation(operation: Activation) -> RealFunction:
    """The function of float32 numbers of those that have no fixed-point arithmetic."""
    a, b = np.float32(operation.a), np.float32(operation.b)
    one, half = np.float32(1), np.float32(0.5)

    def elu(x: Floats) -> Floats:
        result: Floats = np.where(x >= 0, x, a * _expm1(np.minimum(x, np.float32(0))))
        return result

    def gelu(x: Floats) -> Floats:
        if not operation.approximate:
            return half * x * _erfc(x * -_ROOT_OF_HALF)
        cubic = x + np.float32(0.044715) * x * x * x
        return half * x * (one + _tanh(_ROOT_OF_TWO_OVER_PI * cubic))

    functions: dict[ActivationFunction, RealFunction] = {
        ActivationFunction.SIGMOID: lambda x: one / (rounded_exp(-x) + one),
        ActivationFunction.TANH: lambda x: a * _tanh(b * x),
        ActivationFunction.LINEAR: lambda x: a * x + b,
        ActivationFunction.SOFT_RELU: lambda x: (
            np.maximum(x, np.float32(0)) + np.log1p(rounded_exp(-np.abs(x)))
        ),
        ActivationFunction.ABS: np.abs,
        ActivationFunction.SQRT: np.sqrt,
        ActivationFunction.SQUARE: np.square,
        ActivationFunction.ELU: elu,
        ActivationFunction.GELU: gelu,
    }
    return functions[operation.function]
