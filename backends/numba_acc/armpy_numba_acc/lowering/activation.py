"""Lowers activation functions and normalisations of rows.

Notes
-----
Activation functions of 8-bit tensors are looked up in tables that equal CpuRef's, as are those of
16 bits that are not rescaled in fixed point. Rows of 8-bit elements are computed in float32 where
CpuRef has fixed point: they may be off by one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from armpy import numerics
from armpy.graph import Layer
from armpy.ops import Activation, ActivationFunction, L2Normalization, LogSoftmax, Softmax
from armpy.ops.operands import Operands
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_numba_acc.lowering.broadcasting import emit_elementwise
from armpy_numba_acc.lowering.elementwise import REAL_TYPES, check_types
from armpy_numba_acc.lowering.fixed_elementwise import rescaling_parameters
from armpy_numba_acc.lowering.lookup import emit_lookup, emit_lookup_or_alias
from armpy_numba_acc.lowering.operands import expect
from armpy_numba_acc.lowering.real_functions import emit_real
from armpy_numba_acc.machine import calls
from armpy_numba_acc.packing import tables
from armpy_numba_acc.packing.quantized import (
    QUANTIZED_TYPES,
    scale_of,
    stored_bounds,
    zero_point_of,
)
from armpy_numba_acc.program.emitter import Emitter
from armpy_numba_acc.program.registry import Lowering

_WIDE = DataType.QSYMM_S16

_CLAMPS = (ActivationFunction.RELU, ActivationFunction.BOUNDED_RELU)


def check_activation(
    operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
) -> str:
    """float32 and 8-bit quantised; of 16 bits what TFLite has."""
    operation = expect(operation, Activation)
    source, output = inputs[0], outputs[0]
    if source is None or output.data_type is not _WIDE or source.data_type is not _WIDE:
        return check_types((*inputs, *outputs), REAL_TYPES)
    function = operation.function
    if function in (*_CLAMPS, ActivationFunction.LEAKY_RELU):
        return ""
    if function is ActivationFunction.TANH and not operation.a == operation.b == 1:
        return "a scaled TANH of 16 bits is not supported"
    if function not in (ActivationFunction.SIGMOID, ActivationFunction.TANH):
        return f"{function.name} of {_WIDE.name} is not supported"
    if (
        source.zero_point
        or output.zero_point
        or not math.isclose(output.scale, 2.0**-15, rel_tol=1e-3)
    ):
        return f"{function.name} of 16 bits with another output scale than 2**-15 is not supported"
    return ""


def lower_activation(emit: Emitter, layer: Layer) -> None:
    """One command; 8-bit elements are looked up."""
    operation = expect(layer.operation, Activation)
    value, output = layer["input"], layer.output
    if output.info.data_type is _WIDE:
        _lower_wide(emit, layer, operation)
    elif output.info.data_type in QUANTIZED_TYPES:
        table = tables.of_activation(operation, value.info, output.info)
        emit_lookup_or_alias(emit, table, value, output, layer.name)
    else:
        emit_real(emit, layer)


def _lower_wide(emit: Emitter, layer: Layer, operation: Activation) -> None:
    """The command for 16-bit elements: rescaled in fixed point, or looked up."""
    value, output = layer["input"], layer.output
    source, target = value.info, output.info
    ratio = float(scale_of(source) / scale_of(target))
    if operation.function in _CLAMPS:
        is_relu = operation.function is ActivationFunction.RELU
        limits = (0.0, None) if is_relu else (operation.b, operation.a)
        parameters = rescaling_parameters(source, target, [ratio], stored_bounds(limits, target))
        emit_elementwise(emit, "requantize", [value], output, layer.name, parameters)
    elif operation.function is ActivationFunction.LEAKY_RELU:
        negative = float(scale_of(source) * np.float32(operation.a) / scale_of(target))
        parameters = rescaling_parameters(source, target, [ratio, negative])
        emit_elementwise(emit, "requantize_leaky", [value], output, layer.name, parameters)
    else:
        is_tanh = operation.function is ActivationFunction.TANH
        table = (tables.of_tanh16 if is_tanh else tables.of_sigmoid16)(source)
        emit_lookup(emit, table, value, output, layer.name)


def check_rows(
    operation: Operation,
    inputs: OperandInfos,
    outputs: Sequence[TensorInfo],
    types: Sequence[DataType] = REAL_TYPES,
) -> str:
    """float32 and 8-bit quantised, along the last axis that is longer than 1."""
    reason = check_types((*inputs, *outputs), types)
    shape = outputs[0].known_shape
    axis: int = operation.axis % len(shape) if shape else 0  # type: ignore[attr-defined]
    if math.prod(shape[axis + 1 :]) > 1:
        return reason or "an axis that is not the last one is not supported"
    return reason


def _rows_of(operation: Operation, info: TensorInfo) -> tuple[int, int]:
    """Number of rows, and their length."""
    shape = info.known_shape
    axis: int = operation.axis  # type: ignore[attr-defined]
    length = shape[axis] if shape else 1
    return math.prod(shape) // length, length


def check_log_softmax(
    operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
) -> str:
    """As `check_rows`, without scales at which TFLite's arithmetic ends too early."""
    if reason := check_rows(operation, inputs, outputs):
        return reason
    source, output = Operands(operation, inputs)["input"], outputs[0]
    if output.data_type not in QUANTIZED_TYPES:
        return ""
    steps = _steps_of_log_softmax(expect(operation, LogSoftmax), source, output)
    return f"differences of more than {steps} steps saturate" if steps < 255 else ""


def _steps_of_log_softmax(operation: LogSoftmax, source: TensorInfo, output: TensorInfo) -> int:
    """Largest difference to a row's largest element that is computed like any other.

    Notes
    -----
    With the output that TFLite has, CpuRef sets elements to the lowest one whose differences
    do not fit into 5 integer bits. Mostly they are the lowest anyhow.
    """
    if scale_of(output) != 1 / 16 or zero_point_of(output) != 255:
        return 255
    step = float(np.float32(operation.beta)) * float(scale_of(source))
    radius = numerics.softmax.input_radius(
        numerics.softmax.argument_multiplier(source.scale, operation.beta)[1]
    )
    return 255 if (radius + 1) * step >= 254.5 / 16 else radius


_LONGEST_WIDE_ROW = 64
"""Whose fixed-point sum, of 19 fraction bits, can differ from the exact one by a 16-bit step."""


def check_softmax(operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
    """As `check_rows`; 16-bit rows, and short 8-bit ones with 16-bit output, of TFLite's scale."""
    source, output = Operands(operation, inputs)["input"], outputs[0]
    if output.data_type is not _WIDE:
        return check_rows(operation, inputs, outputs)
    is_wide = source.data_type is _WIDE
    if reason := check_rows(operation, inputs, outputs, (*QUANTIZED_TYPES, _WIDE)):
        return reason
    expected = 2.0**-15 if is_wide else 2.0**-16
    if not math.isclose(output.scale, expected, rel_tol=1e-3):
        return f"an output of 16 bits with a scale other than {expected} is not supported"
    if not is_wide and output.zero_point != -(1 << 15):
        return f"the zero point {output.zero_point} is not supported"
    if not is_wide and _rows_of(operation, output)[1] > _LONGEST_WIDE_ROW:
        return f"rows of more than {_LONGEST_WIDE_ROW} elements are not supported"
    return ""


def _lower_softmax16(emit: Emitter, layer: Layer, operation: Softmax) -> None:
    """The command for rows of 16 bits."""
    value, output = layer["input"], layer.output
    exponentials, reciprocals = numerics.softmax.softmax16_tables()
    factor = float(scale_of(value.info) * np.float32(operation.beta))
    rows, length = _rows_of(operation, output.info)
    multiplier, shift = numerics.quantize_multiplier(factor / numerics.softmax.ARGUMENT_STEP)
    call = calls.SoftmaxI16(
        source=emit.source(value),
        target=emit.target(output),
        rows=rows,
        length=length,
        exponentials=emit.constant(exponentials),
        reciprocals=emit.constant(reciprocals),
        multiplier=multiplier,
        shift=shift,
    )
    emit(call, layer.name)


def lower_softmax(emit: Emitter, layer: Layer) -> None:
    """Softmax of rows; of 16 bits, by TFLite's tables."""
    operation = expect(layer.operation, Softmax)
    if layer["input"].info.data_type is _WIDE:
        _lower_softmax16(emit, layer, operation)
    else:
        _lower_exponentials(emit, layer, operation, "softmax")


def lower_log_softmax(emit: Emitter, layer: Layer) -> None:
    """Logarithm of the softmax of rows."""
    _lower_exponentials(emit, layer, expect(layer.operation, LogSoftmax), "log_softmax")


def _lower_exponentials(
    emit: Emitter, layer: Layer, operation: Softmax | LogSoftmax, function: str
) -> None:
    """The command for rows of float32 or bytes."""
    value, output = layer["input"], layer.output
    kind, factor, per_scale, zero = "f32", np.float32(operation.beta), 1.0, 0.0
    if value.info.data_type in QUANTIZED_TYPES:
        kind, zero = "u8", float(zero_point_of(output.info))
        factor *= scale_of(value.info)
        per_scale = float(1 / scale_of(output.info))
    rows, length = _rows_of(operation, output.info)
    call = calls.Softmax(
        kind=kind,
        function=function,
        written="i16" if output.info.data_type is _WIDE else kind,
        source=emit.source(value),
        target=emit.target(output),
        rows=rows,
        length=length,
        factor=float(factor),
        per_scale=per_scale,
        zero_point=zero,
    )
    emit(call, layer.name)


def lower_l2_normalization(emit: Emitter, layer: Layer) -> None:
    """Divide rows by their Euclidean norms."""
    operation, value, output = (
        expect(layer.operation, L2Normalization),
        layer["input"],
        layer.output,
    )
    kind, least, zero, per_scale, output_zero = "f32", operation.epsilon, 0.0, 1.0, 0.0
    if output.info.data_type in QUANTIZED_TYPES:
        kind, zero = "u8", float(zero_point_of(value.info))
        # A row of zero points has the sum 0 and stays 0, whatever it is divided by.
        least = max(least / float(scale_of(value.info)) ** 2, 2.0**-100)
        per_scale, output_zero = float(1 / scale_of(output.info)), float(zero_point_of(output.info))
    rows, length = _rows_of(operation, output.info)
    call = calls.L2Normalization(
        kind=kind,
        source=emit.source(value),
        target=emit.target(output),
        rows=rows,
        length=length,
        least=float(least),
        zero_point=zero,
        per_scale=per_scale,
        output_zero_point=output_zero,
    )
    emit(call, layer.name)


LOWERINGS = {
    Activation: Lowering(check_activation, lower_activation),
    Softmax: Lowering(check_softmax, lower_softmax),
    LogSoftmax: Lowering(check_log_softmax, lower_log_softmax),
    L2Normalization: Lowering(check_rows, lower_l2_normalization),
}
