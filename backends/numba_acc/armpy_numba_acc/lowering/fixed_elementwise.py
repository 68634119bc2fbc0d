"""Lowers fixed-point functions of two quantised elements, bit for bit TFLite's."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from armpy.core import numerics
from armpy.graph import Layer
from armpy.ops import BinaryOperation, ElementwiseBinary
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_numba_acc.lowering.broadcasting import emit_elementwise, emit_quantized
from armpy_numba_acc.lowering.byte_lines import constant_operand, lower_as_lines
from armpy_numba_acc.lowering.operands import expect
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.packing.quantized import (
    QUANTIZED_TYPES,
    range_of,
    scale_of,
    step_bounds,
    stored_bounds,
    zero_point_of,
)
from armpy_numba_acc.program.emitter import Emitter

_WIDE = DataType.QSYMM_S16
_MOST_LEFT = 1
"""So far products of two int32 can be shifted in int64."""

_BYTE_SHIFT, _WIDE_SHIFT = 20, 15
"""Bits that elements are shifted left by before they are added."""

_SQUARE_SHIFT = 14
"""Of squares whose factors were shifted left by half as many bits."""

_MARGIN = 2.0**-12
"""How near a tie float32 may be on its other side: results of less than 512, which others are
clamped beyond, are off by less than 2**-13."""

_ALL = 0.5
"""The margin within which all numbers are."""

_LARGEST_REACH = 2.0**20
"""Of results of which float32 holds a fraction of some bits."""

_MOST_PACKED, _WEIGHT_BITS, _LOW_WEIGHT_BITS = 2.0, 29, 15
"""Of `packed_sums`: the least ratio of scales that it cannot take, and bits of weights."""

_SUMS = (BinaryOperation.ADD, BinaryOperation.SUB)
_WIDE_OPERATIONS = (*_SUMS, BinaryOperation.MUL)

Parameters = Callable[[float, float, float], Sequence[float]]
"""An expression's parameters, from the zero points of the inputs and of the output."""


_ODD_SCALES = np.errstate(all="ignore")
"""Quotients that float32 cannot hold are infinite, or zero."""


@_ODD_SCALES
def lower_fixed(emit: Emitter, layer: Layer) -> bool:
    """Add the command if a layer is one of these; whether it is."""
    operation = expect(layer.operation, ElementwiseBinary)
    inputs, output = (layer["lhs"], layer["rhs"]), layer.output
    infos = [value.info for value in (*inputs, output)]
    kind, name = operation.operation, operation.operation.name.lower()
    if output.info.data_type is _WIDE and kind in _WIDE_OPERATIONS:
        form, numbers = _wide(operation, infos)
        emit_elementwise(emit, f"{form}_{name}", inputs, output, layer.name, numbers)
        return True
    if constant_operand(layer) is not None and lower_as_lines(emit, [layer]):
        return True
    if kind in _OF_BYTES and all(info.data_type in QUANTIZED_TYPES for info in infos):
        if kind in _SUMS and _can_be_packed(emit.isa, infos):
            packed = _packed_sum(operation, infos)
            emit_quantized(emit, f"packed_{name}", inputs, output, layer.name, packed)
            return True
        parameters = _OF_BYTES[kind](operation, infos)
        emit_quantized(emit, _expression(kind, infos), inputs, output, layer.name, parameters)
        return True
    return False


@_ODD_SCALES
def refusal_of_fixed(operation: ElementwiseBinary, infos: Sequence[TensorInfo]) -> str:
    """Why a layer that is computed in fixed point cannot be; empty if it can, or is not."""
    kind, is_wide = operation.operation, infos[2].data_type is _WIDE
    if is_wide and kind in _WIDE_OPERATIONS:
        if any(info.zero_point for info in infos):
            return f"zero points of {_WIDE.name} are not supported"
        factors = _wide_factors(operation, infos)
    elif not is_wide and kind in _SUMS:
        factors = _common_factors(infos, _BYTE_SHIFT)
    elif not is_wide and kind is BinaryOperation.SQUARED_DIFFERENCE:
        factors = _common_factors(infos, _SQUARE_SHIFT, is_squared=True)
    else:
        return ""
    if any(numerics.quantize_multiplier(factor)[1] > _MOST_LEFT for factor in factors):
        return "scales that make results several times as large are not supported"
    return ""


def _wide_factors(operation: ElementwiseBinary, infos: Sequence[TensorInfo]) -> list[float]:
    """Return the factors of 16-bit inputs, if they are added, and of results."""
    if operation.operation is BinaryOperation.MUL:
        a, b, output = (scale_of(info) for info in infos)
        return [float(a * b / output)]
    return _common_factors(infos, _WIDE_SHIFT)


def _common_factors(
    infos: Sequence[TensorInfo], left_shift: int, *, is_squared: bool = False
) -> list[float]:
    """Return the factors of inputs that are shifted to the left, and of their sum or its square."""
    a, b, output = (scale_of(info) for info in infos)
    common = 2 * float(max(a, b))
    reached = common * common if is_squared else common
    to_output = reached / float(np.float32(1 << left_shift) * output)
    return [float(a) / common, float(b) / common, to_output]


def _words_of(factors: Sequence[float]) -> list[float]:
    """Multipliers as expressions in fixed point take them."""
    return [number for factor in factors for number in _multiplier_words(factor)]


def _wide(
    operation: ElementwiseBinary, infos: Sequence[TensorInfo]
) -> tuple[str, tuple[float, ...]]:
    """Form and parameters of 16-bit sums, differences and products without zero points."""
    bounds = map(float, stored_bounds(operation.activation.bounds, infos[2]))
    shifts = _shifts(operation, infos)
    if shifts is not None:
        return "wide_shifting", (*shifts, *bounds)
    return "wide", (*_words_of(_wide_factors(operation, infos)), *bounds)


def _shifts(
    operation: ElementwiseBinary, infos: Sequence[TensorInfo]
) -> tuple[float, float] | None:
    """Return how far inputs are shifted right if all scales are powers of two; None if not.

    Reference: TFLite ``add.cc`` and ``sub.cc``, ``pot_scale_int16``.
    """
    if operation.operation not in _SUMS or not operation.power_of_two_scales:
        return None
    exponents = [math.log2(info.scale) for info in infos]
    if any(abs(exponent - round(exponent)) >= 1e-3 for exponent in exponents):
        return None
    a, b, output = map(round, exponents)
    shifts = float(output - a), float(output - b)
    return shifts if min(shifts) == 0 else None


def _byte_product(operation: ElementwiseBinary, infos: Sequence[TensorInfo]) -> Parameters:
    """Products of bytes; in float64, if at all, they are exact as the multiplier has 31 bits."""
    a, b, output = (scale_of(info) for info in infos)
    scale, nudge, margin, *multiplier = _scaling_numbers(float(a * b / output), 1 << 16)
    low, high = step_bounds(operation.activation.bounds, infos[2])

    def parameters(a_zero: float, b_zero: float, zero: float) -> tuple[float, ...]:
        bounds = (zero, zero + low, zero + high)
        return (a_zero, b_zero, scale, nudge, *bounds, margin, *multiplier)

    return parameters


def _scaling_numbers(ratio: float, reach: int) -> tuple[float, ...]:
    """Return how integers below `reach` are multiplied by a ratio and rounded as fixed point does.

    Returns
    -------
    tuple of float
        For float32: scale, nudge away from zero, and the margin around ties within which it may
        be wrong. For `requantize`: the multiplier with its left shift in two parts, and a
        divisor.
    """
    multiplier, shift = numerics.quantize_multiplier(ratio)
    left, right = max(shift, 0), max(-shift, 0)
    factor = math.ldexp(multiplier, left - 31)
    rounded, divisor = float(np.float32(factor)), 2.0**right
    scale = float(np.float32(factor / divisor))
    nudge = 0.5 / divisor if right else 0.0
    margin = _MARGIN if scale * reach < _LARGEST_REACH else _ALL
    return scale, nudge, margin, rounded, factor - rounded, divisor


@_ODD_SCALES
def byte_prelu_numbers(
    source: TensorInfo, alpha: TensorInfo, output: TensorInfo
) -> tuple[float, ...]:
    """Parameters of ``byte_prelu``: negative elements become products, others are rescaled."""
    ratio = scale_of(source) / scale_of(output)
    product_ratio = scale_of(source) * scale_of(alpha) / scale_of(output)
    identity = _scaling_numbers(float(ratio), 1 << 8)
    product = _scaling_numbers(float(product_ratio), 1 << 16)
    zeros = (float(zero_point_of(info)) for info in (source, alpha, output))
    return (*zeros, *map(float, range_of(output)), *identity, *product)


def _byte_sum(operation: ElementwiseBinary, infos: Sequence[TensorInfo]) -> Parameters:
    """Sums and differences of bytes."""
    sign = -1 if operation.operation is BinaryOperation.SUB else 1
    a, b, margin, *numbers = byte_sum_numbers(infos)
    numbers = [_power_of_two_above(margin), *numbers]
    low, high = step_bounds(operation.activation.bounds, infos[2])

    def parameters(a_zero: float, b_zero: float, zero: float) -> tuple[float, ...]:
        return (a_zero, a, b_zero, sign * b, zero, zero + low, zero + high, *numbers)

    return parameters


@_ODD_SCALES
def byte_sum_numbers(infos: Sequence[TensorInfo]) -> tuple[float, ...]:
    """Two numbers that bytes are multiplied by for their sum, its margin, and three multipliers.

    Parameters
    ----------
    infos
        Of both summands and the sum.
    """
    a, b = (scale_of(info) / scale_of(infos[2]) for info in infos[:2])
    # Terms may be larger than their sum, and so is what float32 rounds off then: four times 2**-24
    # of all terms, which are below 256 times a and b, 2**-15 for a sum below 512, and 2**-14 where
    # that is moved to have 13 bits of a fraction.
    margin = min(_MARGIN * max(1.0, float(a + b) / 2.25), 1.0)
    return float(a), float(b), margin, *_words_of(_common_factors(infos, _BYTE_SHIFT))


def _can_be_packed(isa: Isa, infos: Sequence[TensorInfo]) -> bool:
    """Return whether sums have `packed_sums`: x86, and results of less than 2**11 steps."""
    largest = max(float(scale_of(info)) for info in infos[:2])
    return "avx" in isa.name and largest < _MOST_PACKED * float(scale_of(infos[2]))


def _packed_sum(operation: ElementwiseBinary, infos: Sequence[TensorInfo]) -> Parameters:
    """Sums and differences of bytes as `packed_sums` takes them."""
    a, b = (float(scale_of(info)) / float(scale_of(infos[2])) for info in infos[:2])
    signed = (a, -b if operation.operation is BinaryOperation.SUB else b)
    weights = [round(math.ldexp(ratio, _WEIGHT_BITS)) for ratio in signed]
    halves = [half for weight in weights for half in divmod(weight, 1 << _LOW_WEIGHT_BITS)]
    numbers = (*map(float, halves), *_words_of(_common_factors(infos, _BYTE_SHIFT)))
    low, high = step_bounds(operation.activation.bounds, infos[2])
    return lambda a_zero, b_zero, zero: (a_zero, b_zero, zero, zero + low, zero + high, *numbers)


def _power_of_two_above(margin: float) -> float:
    """A margin as expressions take it."""
    return 2.0 ** math.ceil(math.log2(margin)) if margin < _ALL else _ALL


def _byte_squared_difference(
    operation: ElementwiseBinary, infos: Sequence[TensorInfo]
) -> Parameters:
    factors = _common_factors(infos, _SQUARE_SHIFT, is_squared=True)
    low, high = step_bounds(operation.activation.bounds, infos[2])
    scale, nudge, margin, *_ = _scaling_numbers(factors[2], 1 << 30)
    numbers = (scale, nudge, margin, *_words_of(factors))
    return lambda a_zero, b_zero, zero: (a_zero, b_zero, *numbers, zero, zero + low, zero + high)


def _expression(kind: BinaryOperation, infos: Sequence[TensorInfo]) -> str:
    """Name of the expression of an operation on bytes."""
    name = f"byte_{kind.name.lower()}"
    if kind is not BinaryOperation.SQUARED_DIFFERENCE:
        return name
    a, b = (scale_of(info) for info in infos[:2])
    if a == b:
        return f"{name}_both"
    return f"{name}_left" if a > b else f"{name}_right"


_OF_BYTES: Mapping[
    BinaryOperation, Callable[[ElementwiseBinary, Sequence[TensorInfo]], Parameters]
] = {
    BinaryOperation.ADD: _byte_sum,
    BinaryOperation.SUB: _byte_sum,
    BinaryOperation.MUL: _byte_product,
    BinaryOperation.SQUARED_DIFFERENCE: _byte_squared_difference,
}


def rescaling_parameters(
    source: TensorInfo,
    target: TensorInfo,
    ratios: Sequence[float],
    bounds: tuple[int, int] | None = None,
) -> tuple[float, ...]:
    """The parameters of `requantize`, or with two ratios of ``requantize_leaky``.

    Parameters
    ----------
    ratios
        What differences from the zero point are multiplied by.
    bounds
        Lowest and highest element; the type's if left out.
    """
    numbers: list[float] = []
    for ratio in ratios:
        multiplier, shift = numerics.quantize_multiplier(abs(ratio))
        factor = math.copysign(math.ldexp(multiplier, max(shift, 0) - 31), ratio)
        rounded = float(np.float32(factor))
        numbers += [rounded, factor - rounded, 2.0 ** max(-shift, 0)]
    low, high = bounds or range_of(target)
    zeros = float(zero_point_of(source)), float(zero_point_of(target))
    return (zeros[0], *numbers, zeros[1], float(low), float(high + 1))


def _multiplier_words(real: float) -> tuple[float, float, float]:
    """A multiplier as expressions in fixed point take it: upper and lower bits, and shift."""
    multiplier, shift = numerics.quantize_multiplier(real)
    return float(multiplier >> 16), float(multiplier & 0xFFFF), float(shift)
