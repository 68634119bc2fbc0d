"""Lowers conversions between data types and quantisations."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.graph import Layer
from armpy.ops import Cast, Dequantize, FusedActivation, Quantize
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_numba_acc.lowering.broadcasting import emit_elementwise
from armpy_numba_acc.lowering.elementwise import check_types, given, steps_bounds
from armpy_numba_acc.lowering.emitter import Emitter
from armpy_numba_acc.lowering.lookup import emit_lookup
from armpy_numba_acc.lowering.quantized import QUANTIZED_TYPES, scale_of, zero_point_of
from armpy_numba_acc.lowering.registry import Lowering
from armpy_numba_acc.packing import tables

_CASTS: dict[tuple[DataType, DataType], str] = {
    (DataType.SIGNED32, DataType.SIGNED64): "to_i64",
    (DataType.SIGNED64, DataType.SIGNED32): "to_i32",
    (DataType.SIGNED32, DataType.FLOAT32): "int_to_float",
    (DataType.SIGNED64, DataType.FLOAT32): "int_to_float",
    (DataType.BOOLEAN, DataType.FLOAT32): "bool_to_float",
    (DataType.BOOLEAN, DataType.SIGNED32): "to_i32",
    (DataType.BOOLEAN, DataType.SIGNED64): "to_i64",
    (DataType.FLOAT32, DataType.BOOLEAN): "is_not_zero",
    (DataType.SIGNED32, DataType.BOOLEAN): "is_not_zero",
    (DataType.SIGNED64, DataType.BOOLEAN): "is_not_zero",
    (DataType.FLOAT32, DataType.SIGNED32): "float_to_i32",
    (DataType.FLOAT32, DataType.SIGNED64): "float_to_i64",
    (DataType.QASYMM_U8, DataType.FLOAT32): "int_to_float",
    (DataType.QASYMM_U8, DataType.SIGNED32): "to_i32",
    (DataType.FLOAT32, DataType.QASYMM_U8): "float_to_u8",
}
"""Expressions by the types that they convert between."""


def check_quantize(
    operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
) -> str:
    """float32 or 8-bit quantised to 8-bit quantised."""
    reason = check_types(inputs, (DataType.FLOAT32, *QUANTIZED_TYPES))
    return reason or check_types(outputs, QUANTIZED_TYPES)


def lower_quantize(emit: Emitter, layer: Layer) -> None:
    """Floats are divided by the scale; 8-bit elements are looked up."""
    value, output = given(layer)[0], layer.outputs[0]
    if value.info.data_type is DataType.FLOAT32:
        parameters = (
            float(scale_of(output.info)),
            float(zero_point_of(output.info)),
            *steps_bounds(FusedActivation.NONE, output.info),
        )
        emit_elementwise(emit, "quantize", [value], output, layer.name, parameters)
    else:
        table = tables.of_requantization(value.info, output.info)
        if (table == range(256)).all():
            emit.alias(output, value)
        else:
            emit_lookup(emit, table, value, output, layer.name)


def check_dequantize(
    operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
) -> str:
    """8-bit quantised to float32, with one scale."""
    reason = check_types(inputs, (*QUANTIZED_TYPES, DataType.QSYMM_S8, DataType.SIGNED32))
    if reason:
        return reason
    for info in inputs:
        if info is not None and info.has_per_axis_quantization:
            return "scales that run along an axis are not supported"
        if info is not None and info.data_type is DataType.SIGNED32 and info.zero_point:
            return "a zero point of SIGNED32 is not supported"
    return check_types(outputs, (DataType.FLOAT32,))


def lower_dequantize(emit: Emitter, layer: Layer) -> None:
    """Differences from the zero point times the scale."""
    value, output = given(layer)[0], layer.outputs[0]
    scale = float(scale_of(value.info))
    if value.info.data_type is DataType.SIGNED32:
        emit_elementwise(emit, "dequantize_wide", [value], output, layer.name, (scale,))
        return
    zero = zero_point_of(value.info)
    emit_elementwise(emit, "dequantize", [value], output, layer.name, (scale, float(zero)))


def check_cast(operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
    """The pairs of types that have an expression, or one type."""
    source, target = inputs[0], outputs[0]
    assert source is not None
    pair = source.data_type, target.data_type
    if pair[0] is pair[1] or pair in _CASTS:
        return ""
    return f"{pair[0].name} to {pair[1].name} is not supported"


def lower_cast(emit: Emitter, layer: Layer) -> None:
    """One command; none where the type stays."""
    value, output = given(layer)[0], layer.outputs[0]
    pair = value.info.data_type, output.info.data_type
    if pair[0] is pair[1]:
        emit.alias(output, value)
    else:
        emit_elementwise(emit, _CASTS[pair], [value], output, layer.name)


LOWERINGS = {
    Quantize: Lowering(check_quantize, lower_quantize),
    Dequantize: Lowering(check_dequantize, lower_dequantize),
    Cast: Lowering(check_cast, lower_cast),
}
