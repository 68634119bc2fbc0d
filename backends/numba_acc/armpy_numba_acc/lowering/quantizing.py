"""Lowers conversions between data types and quantisations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.graph import Layer, Value
from armpy.ops import Cast, Dequantize, Quantize
from armpy.ops.operands import Operands
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_numba_acc.lowering.broadcasting import (
    KINDS,
    emit_elementwise,
    emit_on_buffers,
    emit_quantized,
)
from armpy_numba_acc.lowering.elementwise import check_types
from armpy_numba_acc.lowering.fixed_elementwise import rescaling_parameters
from armpy_numba_acc.lowering.lookup import emit_byte_function
from armpy_numba_acc.lowering.operands import expect
from armpy_numba_acc.lowering.quantize_u8 import emit_quick, is_quick
from armpy_numba_acc.lowering.real_functions import Function
from armpy_numba_acc.machine import calls
from armpy_numba_acc.machine.memory import Buffer
from armpy_numba_acc.packing.quantized import (
    QUANTIZED_TYPES,
    WIDE_TYPES,
    scale_of,
    step_bounds,
    zero_point_of,
)
from armpy_numba_acc.program.emitter import Emitter
from armpy_numba_acc.program.registry import LoweringRule

FLOAT_CASTS = {
    (DataType.FLOAT16, DataType.FLOAT32): "half_to_float",
    (DataType.FLOAT32, DataType.FLOAT16): "float_to_half",
}
"""Expressions that convert between floats."""

_BIT_CASTS = {
    (DataType.BFLOAT16, DataType.FLOAT32): ("bfloat16_to_float", ("u16", "i32")),
    (DataType.FLOAT32, DataType.BFLOAT16): ("float_to_bfloat16", ("i32", "u16")),
    # Processors may be set to treat tiny floats as 0.
    (DataType.FLOAT32, DataType.BOOLEAN): ("has_magnitude", ("i32", "bool")),
}
"""Expressions that convert floats by their bits, and how these are handed to them."""

_UNSIGNED_BYTES = {DataType.UNSIGNED8, DataType.QASYMM_U8}
"""The same elements in memory, whatever they stand for."""

_CAST_KINDS: dict[DataType, str] = {
    **{key: kind for key, kind in KINDS.items() if key is not DataType.FLOAT16},
    DataType.QASYMM_S8: "i8",
}
"""How the elements of a type are handed to expressions of casts."""


def check_quantize(
    operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
) -> str:
    """float32 or quantised to 8 or 16 bits, these also to int32."""
    types = (*QUANTIZED_TYPES, *WIDE_TYPES)
    if reason := check_types(inputs, (DataType.FLOAT32, *types)):
        return reason
    if outputs[0].has_per_axis_quantization:
        return "scales of the output that run along an axis are not supported"
    is_float = any(info and info.data_type is DataType.FLOAT32 for info in inputs)
    return check_types(outputs, types if is_float else (*types, DataType.SIGNED32))


def lower_quantize(emit: Emitter, layer: Layer) -> None:
    """Floats are divided by the scale; 8-bit elements of 8-bit ones are looked up."""
    value, output = layer["input"], layer.output
    if is_quick(emit.isa, value.info, output.info):
        emit_quick(emit, layer)
    elif value.info.data_type is DataType.FLOAT32:
        operation = expect(layer.operation, Quantize)
        name, (scale, _, *bounds) = quantizing(operation, output.info)
        emit_quantized(
            emit, name, [value], output, layer.name, lambda _, zero: (scale, zero, *bounds)
        )
    elif value.info.data_type in WIDE_TYPES or output.info.data_type not in QUANTIZED_TYPES:
        ratio = float(scale_of(value.info)) / float(scale_of(output.info))
        numbers = rescaling_parameters(value.info, output.info, [ratio])
        emit_elementwise(emit, "requantize", [value], output, layer.name, numbers)
    else:
        emit_byte_function(emit, [layer], value, layer.name)


def quantizing(operation: Quantize, output: TensorInfo) -> Function:
    """The expression of a layer that quantises floats to elements as regions keep them."""
    name = "quantize_even" if operation.rounds_to_even else "quantize"
    numbers = float(scale_of(output)), float(zero_point_of(output))
    return name, (*numbers, *step_bounds((None, None), output))


def check_dequantize(
    operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
) -> str:
    """Quantised or int32 to float32, with zero points that are all the same; float32 as it is."""
    types = (DataType.FLOAT32, *QUANTIZED_TYPES, *WIDE_TYPES, DataType.QSYMM_S8, DataType.SIGNED32)
    source = Operands(operation, inputs)["input"]
    if source.data_type not in types:
        return f"{source.data_type.name} is not supported"
    quantization = source.quantization
    if quantization is not None and len(set(quantization.zero_points)) > 1:
        return "zero points that run along an axis are not supported"
    is_wide = source.data_type is DataType.SIGNED32
    if is_wide and (source.zero_point or source.has_per_axis_quantization):
        return "a zero point, or several scales, of SIGNED32 are not supported"
    return check_types(outputs, (DataType.FLOAT32,))


def lower_dequantize(emit: Emitter, layer: Layer) -> None:
    """Differences from the zero point times the scale."""
    value, output = layer["input"], layer.output
    if value.info.data_type is DataType.FLOAT32:
        emit.alias(output, value)
        return
    quantization = value.info.quantization
    if quantization is not None and quantization.axis is not None:
        _lower_by_scales(emit, layer, quantization.scales, quantization.axis)
        return
    name, (scale, *_) = dequantizing(value.info)
    if name == "dequantize_wide":
        emit_elementwise(emit, name, [value], output, layer.name, (scale,))
        return
    emit_quantized(emit, name, [value], output, layer.name, lambda zero, _: (scale, zero))


def dequantizing(source: TensorInfo) -> Function:
    """The expression of a layer that gives the floats of elements with one scale; empty if not."""
    if source.data_type is DataType.FLOAT32 or source.has_per_axis_quantization:
        return "", ()
    scale = float(scale_of(source))
    if source.data_type is DataType.SIGNED32:
        return "dequantize_wide", (scale,)
    return "dequantize", (scale, float(zero_point_of(source)))


def _lower_by_scales(emit: Emitter, layer: Layer, scales: Sequence[float], axis: int) -> None:
    """The same with scales that run along an axis."""
    value = layer["input"]
    shape = value.info.known_shape
    along = [1] * len(shape)
    along[axis] = len(scales)
    emit_on_buffers(
        emit,
        "dequantize_each",
        (emit.source(value), emit.constant(np.array(scales, np.float32))),
        (shape, tuple(along)),
        layer.output,
        layer.name,
        parameters=(float(zero_point_of(value.info)),),
        kinds=(KINDS[value.info.data_type], "f32", "f32"),
    )


def check_cast(operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
    """Booleans, floats of up to 32 bits, integers of up to 64 with a sign and 16 without; one type.

    Floats of 16 bits are converted from and to float32 alone.
    """
    source, target = Operands(operation, inputs)["input"], outputs[0]
    pair = source.data_type, target.data_type
    is_of_floats = pair in FLOAT_CASTS or pair in _BIT_CASTS
    if pair[0] is pair[1] or is_of_floats or all(kind in _CAST_KINDS for kind in pair):
        return ""
    return f"{pair[0].name} to {pair[1].name} is not supported"


def _expression_of_cast(source: DataType, target: DataType) -> str:
    """Return the expression that converts elements of one type to another one."""
    kinds = _CAST_KINDS[source], _CAST_KINDS[target]
    if target is DataType.BOOLEAN:
        return "is_not_zero"
    if target is DataType.FLOAT32:
        return "bool_to_float" if source is DataType.BOOLEAN else "int_to_float"
    if source is DataType.FLOAT32:
        return f"float_to_{kinds[1]}"
    if target.is_quantized:
        return f"limited_to_{kinds[1]}"
    return "to_i64" if kinds[1] == "i64" else "to_i32"


def lower_cast(emit: Emitter, layer: Layer) -> None:
    """One command; none where the type stays."""
    value, output = layer["input"], layer.output
    pair = value.info.data_type, output.info.data_type
    if pair[0] is pair[1] or set(pair) == _UNSIGNED_BYTES:
        emit.alias(output, value)
    elif pair in FLOAT_CASTS:
        emit_elementwise(emit, FLOAT_CASTS[pair], [value], output, layer.name)
    elif pair in _BIT_CASTS:
        expression, kinds = _BIT_CASTS[pair]
        emit_elementwise(emit, expression, [value], output, layer.name, kinds=kinds)
    elif DataType.QASYMM_S8 in pair:
        _lower_signed(emit, layer)
    else:
        emit_elementwise(emit, _expression_of_cast(*pair), [value], output, layer.name)


def _lower_signed(emit: Emitter, layer: Layer) -> None:
    """Lower a cast from or to int8, whose elements are handed over with their sign."""
    value, output = layer["input"], layer.output
    pair = value.info.data_type, output.info.data_type
    source, target = _signed_source(emit, value, layer.name), emit.target(output)
    is_flipped = pair[1] is DataType.QASYMM_S8
    unsigned = emit.scratch(output.info.size_bytes) if is_flipped else target
    emit_on_buffers(
        emit,
        _expression_of_cast(*pair),
        [source],
        [value.info.known_shape],
        output,
        layer.name,
        kinds=[_CAST_KINDS[kind] for kind in pair],
        target=unsigned,
    )
    if is_flipped:
        emit(calls.Flip(unsigned, target, output.info.size_bytes), layer.name)


def _signed_source(emit: Emitter, value: Value, label: str) -> Buffer:
    """Elements as the graph has them."""
    if value.info.data_type is not DataType.QASYMM_S8:
        return emit.source(value)
    source, is_given = emit.flipped_source(value)
    if is_given:
        return source
    scratch = emit.scratch(value.info.size_bytes)
    emit(calls.Flip(source, scratch, value.info.size_bytes), label)
    return scratch


LOWERINGS = {
    Quantize: LoweringRule(check_quantize, lower_quantize),
    Dequantize: LoweringRule(check_dequantize, lower_dequantize),
    Cast: LoweringRule(check_cast, lower_cast),
}
