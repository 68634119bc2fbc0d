"""Lowers functions of two quantised elements that are computed in fixed point, as by TFLite."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from armpy import numerics
from armpy.graph import Layer, Value
from armpy.ops import BinaryOperation, ElementwiseBinary
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_numba_acc.lowering.broadcasting import emit_elementwise, emit_quantized
from armpy_numba_acc.packing.quantized import (
    QUANTIZED_TYPES,
    range_of,
    scale_of,
    stored_bounds,
    zero_point_of,
)
from armpy_numba_acc.program.emitter import Emitter

_WIDE = DataType.QSYMM_S16
_MOST_LEFT = 1
"""So far products of two int32 can be shifted in int64."""

_BYTE_SHIFT, _WIDE_SHIFT = 20, 15
"""Bits that elements are shifted left by before they are added."""

_MARGIN = 2.0**-12
"""How near a half float32 may be on its other side: results of less than 512, which others are
clamped beyond, are off by less than 2**-13."""

_LARGEST_REACH = 2.0**20
"""Of results that can be rounded by adding a float32 whose steps are 1."""

_SUMS = (BinaryOperation.ADD, BinaryOperation.SUB)


_ODD_SCALES = np.errstate(all="ignore")
"""Quotients that float32 cannot hold are infinite, or zero."""


@_ODD_SCALES
def lower_fixed(emit: Emitter, layer: Layer) -> bool:
    """Add the command if a layer is one of these; whether it is."""
    operation = layer.operation
    assert isinstance(operation, ElementwiseBinary)
    output = layer.outputs[0]
    inputs = [value for value in layer.inputs if value is not None]
    infos = [value.info for value in (*inputs, output)]
    if output.info.data_type is _WIDE:
        return _lower_wide(emit, layer, operation, inputs, infos)
    if any(info.data_type not in QUANTIZED_TYPES for info in infos):
        return False
    if operation.operation in _SUMS:
        return _lower_byte_sum(emit, layer, operation, inputs, infos)
    if operation.operation is BinaryOperation.MUL:
        _lower_byte_product(emit, layer, operation, inputs)
        return True
    if operation.operation is BinaryOperation.SQUARED_DIFFERENCE:
        return _lower_squared_difference(emit, layer, operation, inputs)
    return False


@_ODD_SCALES
def refusal_of_fixed(operation: ElementwiseBinary, infos: Sequence[TensorInfo]) -> str:
    """Why a layer that is computed in fixed point cannot be; empty if it can, or is not."""
    kind, is_wide = operation.operation, infos[2].data_type is _WIDE
    if is_wide and kind in (*_SUMS, BinaryOperation.MUL):
        if any(info.zero_point for info in infos):
            return f"zero points of {_WIDE.name} are not supported"
        factors = _wide_factors(operation, infos)
    elif not is_wide and kind in _SUMS:
        factors = _sum_factors(infos, _BYTE_SHIFT)
    elif not is_wide and kind is BinaryOperation.SQUARED_DIFFERENCE:
        factors = _difference_factors(infos)
    else:
        return ""
    if any(numerics.quantize_multiplier(factor)[1] > _MOST_LEFT for factor in factors):
        return "scales that make results several times as large are not supported"
    return ""


def _wide_factors(operation: ElementwiseBinary, infos: Sequence[TensorInfo]) -> list[float]:
    """What 16-bit inputs, if they are added, and results are multiplied by."""
    if operation.operation is BinaryOperation.MUL:
        a, b, output = (scale_of(info) for info in infos)
        return [float(a * b / output)]
    return _sum_factors(infos, _WIDE_SHIFT)


def _difference_factors(infos: Sequence[TensorInfo]) -> list[float]:
    """What inputs are multiplied by before their difference is squared, and the square."""
    a, b, output = (scale_of(info) for info in infos)
    common = 2 * float(max(a, b))
    to_output = common * common / float(np.float32(1 << 14) * output)
    return [float(a) / common, float(b) / common, to_output]


def _sum_factors(infos: Sequence[TensorInfo], left_shift: int) -> list[float]:
    """What inputs that are shifted to the left are multiplied by, and their sum."""
    a, b, output = (scale_of(info) for info in infos)
    common = 2 * float(max(a, b))
    to_output = common / float(np.float32(1 << left_shift) * output)
    return [float(a) / common, float(b) / common, to_output]


def _lower_wide(
    emit: Emitter,
    layer: Layer,
    operation: ElementwiseBinary,
    inputs: Sequence[Value],
    infos: Sequence[TensorInfo],
) -> bool:
    """Sums, differences and products of 16-bit elements without zero points."""
    kind = operation.operation
    if kind not in (*_SUMS, BinaryOperation.MUL):
        return False
    bounds = map(float, stored_bounds(operation.activation.bounds, infos[2]))
    shifts = _shifts(operation, infos)
    name = f"wide_{kind.name.lower()}"
    if shifts is not None:
        name = f"wide_shifting_{kind.name.lower()}"
        parameters = (*shifts, *bounds)
    else:
        factors = _wide_factors(operation, infos)
        parameters = (*(n for factor in factors for n in _multiplier_words(factor)), *bounds)
    emit_elementwise(emit, name, inputs, layer.outputs[0], layer.name, parameters)
    return True


def _shifts(
    operation: ElementwiseBinary, infos: Sequence[TensorInfo]
) -> tuple[float, float] | None:
    """How far inputs are shifted right if all scales are powers of two; None if not.

    References
    ----------
    TFLite ``add.cc`` and ``sub.cc``, ``pot_scale_int16``.
    """
    if operation.operation not in _SUMS or not operation.power_of_two_scales:
        return None
    exponents = [math.log2(info.scale) for info in infos]
    if any(abs(exponent - round(exponent)) >= 1e-3 for exponent in exponents):
        return None
    a, b, output = map(round, exponents)
    shifts = float(output - a), float(output - b)
    return shifts if min(shifts) == 0 else None


def _lower_byte_product(
    emit: Emitter, layer: Layer, operation: ElementwiseBinary, inputs: Sequence[Value]
) -> None:
    """Products of bytes; in float64, if at all, they are exact as the multiplier has 31 bits."""
    output = layer.outputs[0].info
    a, b = (scale_of(value.info) for value in inputs)
    multiplier, shift = numerics.quantize_multiplier(float(a * b / scale_of(output)))
    left, right = max(shift, 0), max(-shift, 0)
    factor = math.ldexp(multiplier, left - 31)
    rounded, divisor = float(np.float32(factor)), 2.0**right
    scale = float(np.float32(factor / divisor))
    nudge = 0.5 / divisor if right else 0.0
    margin = _MARGIN if scale * (1 << 16) < _LARGEST_REACH else 1.0
    low, high = _steps(operation, output)

    def parameters(a_zero: float, b_zero: float, zero: float) -> tuple[float, ...]:
        numbers = (scale, nudge, zero, zero + low, zero + high, margin)
        return (a_zero, b_zero, *numbers, rounded, factor - rounded, divisor)

    emit_quantized(emit, "byte_mul", inputs, layer.outputs[0], layer.name, parameters)


def _lower_byte_sum(
    emit: Emitter,
    layer: Layer,
    operation: ElementwiseBinary,
    inputs: Sequence[Value],
    infos: Sequence[TensorInfo],
) -> bool:
    """Sums and differences of bytes."""
    sign = -1 if operation.operation is BinaryOperation.SUB else 1
    output = infos[2]
    a, b = (scale_of(info) / scale_of(output) for info in infos[:2])
    factors = _sum_factors(infos, _BYTE_SHIFT)
    # Terms may be larger than their sum, and so is what float32 rounds off then.
    margin = min(_MARGIN * max(1.0, 256.0 * float(a + b) / 1024), 1.0)
    numbers = [number for factor in factors for number in _multiplier_words(factor)]
    low, high = _steps(operation, output)

    def parameters(a_zero: float, b_zero: float, zero: float) -> tuple[float, ...]:
        scaling = (a_zero, float(a), b_zero, sign * float(b), zero, zero + low, zero + high)
        return (*scaling, margin, *numbers)

    name = f"byte_{operation.operation.name.lower()}"
    emit_quantized(emit, name, inputs, layer.outputs[0], layer.name, parameters)
    return True


def _steps(operation: ElementwiseBinary, output: TensorInfo) -> tuple[float, float]:
    """Bounds of an output, counted from its zero point."""
    low, high = stored_bounds(operation.activation.bounds, output)
    return float(low - zero_point_of(output)), float(high - zero_point_of(output))


def _lower_squared_difference(
    emit: Emitter, layer: Layer, operation: ElementwiseBinary, inputs: Sequence[Value]
) -> bool:
    """Squared differences of bytes."""
    output = layer.outputs[0].info
    factors = _difference_factors([*(value.info for value in inputs), output])
    numbers = [number for factor in factors for number in _multiplier_words(factor)]
    low, high = _steps(operation, output)

    def parameters(a_zero: float, b_zero: float, zero: float) -> tuple[float, ...]:
        return (a_zero, b_zero, *numbers, zero, zero + low, zero + high)

    name = "byte_squared_difference"
    emit_quantized(emit, name, inputs, layer.outputs[0], layer.name, parameters)
    return True


def rescaling_parameters(
    source: TensorInfo,
    target: TensorInfo,
    ratios: Sequence[float],
    bounds: tuple[int, int] | None = None,
) -> tuple[float, ...]:
    """The parameters of `requantize`, or with two ratios of ``requantize_leaky``.

    Parameters
    ----------
    ratios : sequence of float
        What differences from the zero point are multiplied by.
    bounds : (int, int), optional
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
