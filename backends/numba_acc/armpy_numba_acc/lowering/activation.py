"""Lowers activation functions and normalisations of rows.

Notes
-----
Activation functions of 8-bit tensors are looked up in tables that equal CpuRef's, as are those of
16 bits that are not rescaled in fixed point. Rows of quantised elements are in fixed point, too;
what CpuRef computes by way of float32, as TFLite does not have it, is CpuRef's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from armpy.core import numerics
from armpy.graph import Layer
from armpy.ops import Activation, ActivationFunction, L2Normalization, LogSoftmax, Softmax
from armpy.ops.operands import Operands
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_numba_acc.lowering.broadcasting import emit_elementwise
from armpy_numba_acc.lowering.elementwise import REAL_TYPES, check_types
from armpy_numba_acc.lowering.fixed_elementwise import rescaling_parameters
from armpy_numba_acc.lowering.lookup import emit_byte_function, emit_lookup
from armpy_numba_acc.lowering.operands import expect
from armpy_numba_acc.lowering.real_functions import emit_real
from armpy_numba_acc.machine import calls
from armpy_numba_acc.machine.call import Call
from armpy_numba_acc.machine.calls.rows import SOFTMAX_SCRATCH_BYTES
from armpy_numba_acc.packing import tables
from armpy_numba_acc.packing.quantized import (
    QUANTIZED_TYPES,
    scale_of,
    stored_bounds,
    zero_point_of,
)
from armpy_numba_acc.program.emitter import Emitter
from armpy_numba_acc.program.registry import LoweringRule

_WIDE = DataType.QSYMM_S16

_LEAST_PAIRS = 1 << 12
"""Rows of two that are worth a table of all, 128 KB."""

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
    if function in (*_CLAMPS, ActivationFunction.LEAKY_RELU, ActivationFunction.GELU):
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
        emit_byte_function(emit, [layer], value, layer.name)
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
    elif operation.function is ActivationFunction.GELU:
        table = tables.of_gelu16(operation, source, target)
        emit_lookup(emit, table, value, output, layer.name)
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


def _has_quantization(info: TensorInfo, scale: float, zero_point: int) -> bool:
    """Return whether an output has the quantisation that TFLite's arithmetic prescribes."""
    return zero_point_of(info) == zero_point and math.isclose(info.scale, scale, rel_tol=1e-3)


def _check_quantized_rows(
    operation: Operation,
    inputs: OperandInfos,
    outputs: Sequence[TensorInfo],
    scale: float,
    zero_point: int,
) -> str:
    """As `check_rows`; of bytes with a quantisation for which TFLite has arithmetic."""
    reason, output = check_rows(operation, inputs, outputs), outputs[0]
    if reason or output.data_type not in QUANTIZED_TYPES:
        return reason
    if _has_quantization(output, scale, zero_point):
        return ""
    return f"8 bits with another scale than {scale}, or its zero point, are not supported"


def check_log_softmax(
    operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
) -> str:
    """As `check_rows`, of bytes to steps of 1/16."""
    return _check_quantized_rows(operation, inputs, outputs, 1 / 16, 255)


def check_l2_normalization(
    operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
) -> str:
    """As `check_rows`, of bytes to steps of 1/128, in rows whose squares add up to 31 bits."""
    reason = _check_quantized_rows(operation, inputs, outputs, 1 / 128, 128)
    if not reason and outputs[0].data_type in QUANTIZED_TYPES:
        _, length = _rows_of(operation, outputs[0])
        if length > _LONGEST_SQUARES:
            return f"rows of more than {_LONGEST_SQUARES} elements are not supported"
    return reason


_LONGEST_SQUARES = (1 << 31) // (255 * 255)


def check_softmax(operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
    """As `check_rows`; quantised ones with an output as TFLite has it."""
    source, output = Operands(operation, inputs)["input"], outputs[0]
    if output.data_type is not _WIDE:
        return _check_quantized_rows(operation, inputs, outputs, 1 / 256, 0)
    is_wide = source.data_type is _WIDE
    if reason := check_rows(operation, inputs, outputs, (*QUANTIZED_TYPES, _WIDE)):
        return reason
    expected = 2.0**-15 if is_wide else 2.0**-16
    if not math.isclose(output.scale, expected, rel_tol=1e-3):
        return f"an output of 16 bits with a scale other than {expected} is not supported"
    if not is_wide and output.zero_point != -(1 << 15):
        return f"the zero point {output.zero_point} is not supported"
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
    source, target = emit.source(value), emit.target(output)
    rows, length = _rows_of(operation, output.info)
    if value.info.data_type not in QUANTIZED_TYPES:
        factor = float(np.float32(operation.beta))
        emit(calls.Softmax(function, source, target, rows, length, factor), layer.name)
        return
    exponentials = numerics.softmax.Exponentials(value.info.scale, operation.beta)
    is_log = function == "log_softmax"
    if length == 2 and rows >= _LEAST_PAIRS and not is_log and output.info.data_type is not _WIDE:
        table = emit.constant(tables.of_softmax_of_pairs(exponentials))
        emit(calls.Lookup(2, 2, source, target, table, rows), layer.name)
        return
    values = exponentials.arguments if is_log else exponentials.values
    multiplier, shift = numerics.quantize_multiplier(exponentials.per_argument)
    call = calls.SoftmaxBytes(
        function=function,
        written="i16" if output.info.data_type is _WIDE else "u8",
        source=source,
        target=target,
        rows=rows,
        length=length,
        values=emit.constant(values.astype(np.int32)),
        summands=emit.constant(exponentials.summands.astype(np.int32)),
        scratch=emit.scratch(SOFTMAX_SCRATCH_BYTES * emit.num_threads),
        radius=exponentials.radius,
        multiplier=multiplier,
        shift=shift,
    )
    emit(call, layer.name)


def lower_l2_normalization(emit: Emitter, layer: Layer) -> None:
    """Divide rows by their Euclidean norms."""
    operation = expect(layer.operation, L2Normalization)
    value, output = layer["input"], layer.output
    source, target = emit.source(value), emit.target(output)
    rows, length = _rows_of(operation, output.info)
    call: Call
    if output.info.data_type in QUANTIZED_TYPES:
        is_signed = int(output.info.data_type is DataType.QASYMM_S8)
        zero = zero_point_of(value.info)
        call = calls.L2NormalizationBytes(is_signed, source, target, rows, length, zero)
    else:
        least = float(operation.epsilon)
        call = calls.L2Normalization(source, target, rows, length, least)
    emit(call, layer.name)


LOWERINGS = {
    Activation: LoweringRule(check_activation, lower_activation),
    Softmax: LoweringRule(check_softmax, lower_softmax),
    LogSoftmax: LoweringRule(check_log_softmax, lower_log_softmax),
    L2Normalization: LoweringRule(check_l2_normalization, lower_l2_normalization),
}
