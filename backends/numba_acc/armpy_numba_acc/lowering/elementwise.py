"""Lowers operations on one element of every input.

Notes
-----
Quantised elements are CpuRef's. One input is looked up in a table, and so are pairs of bytes of
which there is a quotient or a power; MAXIMUM and MINIMUM choose of what is looked up in the
output's quantisation. Sums, differences, products, squared differences and PRELU are computed in
fixed point, those of bytes only near ties; squared differences of 16 bits in float32, in CpuRef's
order.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.graph import Layer, Value
from armpy.ops import (
    BinaryOperation,
    Comparison,
    ComparisonOperation,
    ElementwiseBinary,
    ElementwiseUnary,
    FusedActivation,
    LogicalBinary,
    Prelu,
    Select,
    UnaryOperation,
)
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
from armpy_numba_acc.lowering.fixed_elementwise import (
    byte_prelu_numbers,
    lower_fixed,
    refusal_of_fixed,
)
from armpy_numba_acc.lowering.lookup import emit_byte_function, emit_lookup, emit_lookup_of_pairs
from armpy_numba_acc.lowering.operands import expect, given
from armpy_numba_acc.lowering.real_functions import emit_real
from armpy_numba_acc.machine.memory import Buffer
from armpy_numba_acc.packing import tables
from armpy_numba_acc.packing.quantized import (
    QUANTIZED_TYPES,
    scale_of,
    step_bounds,
    stored_bounds,
)
from armpy_numba_acc.program.emitter import Emitter
from armpy_numba_acc.program.registry import Check, LoweringRule

INTEGER_TYPES = (DataType.SIGNED32, DataType.SIGNED64)
REAL_TYPES = (DataType.FLOAT32, *QUANTIZED_TYPES)

_WIDE = DataType.QSYMM_S16
_WIDE_UNARY = (
    *(UnaryOperation.ABS, UnaryOperation.EXP, UnaryOperation.LOG),
    *(UnaryOperation.RSQRT, UnaryOperation.SQRT),
)

_EVERYWHERE = (
    *(BinaryOperation.ADD, BinaryOperation.SUB, BinaryOperation.MUL, BinaryOperation.DIV),
    *(BinaryOperation.MAXIMUM, BinaryOperation.MINIMUM, BinaryOperation.SQUARED_DIFFERENCE),
)
_RESTS = (BinaryOperation.FLOOR_DIV, BinaryOperation.FLOOR_MOD, BinaryOperation.TRUNC_MOD)
_INTEGER_OPERATIONS = (
    *(*_EVERYWHERE, *_RESTS, BinaryOperation.SHIFT_LEFT, BinaryOperation.SHIFT_RIGHT),
    *(BinaryOperation.BITWISE_AND, BinaryOperation.BITWISE_OR, BinaryOperation.BITWISE_XOR),
)
_QUANTIZED_OPERATIONS = (*_EVERYWHERE, BinaryOperation.POWER)
_FLOAT_OPERATIONS = (*_QUANTIZED_OPERATIONS, *_RESTS)
_INTEGER_FUNCTIONS = (
    *(UnaryOperation.ABS, UnaryOperation.NEG, UnaryOperation.SQUARE),
    *(UnaryOperation.SIGN, UnaryOperation.BITWISE_NOT),
)
_FLOAT_FUNCTIONS = (
    UnaryOperation.ABS,
    UnaryOperation.EXP,
    UnaryOperation.SQRT,
    UnaryOperation.RSQRT,
    UnaryOperation.NEG,
    UnaryOperation.LOGICAL_NOT,
    UnaryOperation.LOG,
    UnaryOperation.SIN,
    UnaryOperation.CEIL,
    UnaryOperation.COS,
    UnaryOperation.FLOOR,
    UnaryOperation.ROUND,
    UnaryOperation.SQUARE,
    UnaryOperation.ERF,
    UnaryOperation.RECIPROCAL,
    UnaryOperation.SIGN,
    UnaryOperation.ATAN,
)
_STORED_CHOICES = {
    BinaryOperation.MAXIMUM: "largest_byte",
    BinaryOperation.MINIMUM: "smallest_byte",
}
_OF_PAIRS = {
    BinaryOperation.DIV: tables.of_quotients,
    BinaryOperation.POWER: tables.of_powers,
}
"""What looks pairs of bytes up."""


def check_types(infos: Sequence[TensorInfo | None], allowed: Sequence[DataType]) -> str:
    """Why tensors cannot be handled by their types; empty if they can."""
    for info in infos:
        if info is None:
            continue
        if info.data_type not in allowed:
            return f"{info.data_type.name} is not supported"
        if info.data_type in QUANTIZED_TYPES and info.has_per_axis_quantization:
            return "scales that run along an axis are not supported"
    return ""


def of_types(*allowed: DataType) -> Check:
    """A check of nothing but types."""

    def check(operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
        return check_types((*inputs, *outputs), allowed)

    return check


# ElementwiseBinary


def check_binary(operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
    """float32, quantised, int32 and int64; not every operation of each."""
    operation = expect(operation, ElementwiseBinary)
    reason = check_types((*inputs, *outputs), (*REAL_TYPES, *INTEGER_TYPES, _WIDE))
    if reason:
        return reason
    is_integer = outputs[0].data_type in INTEGER_TYPES
    is_wide = outputs[0].data_type is _WIDE
    allowed: Sequence[BinaryOperation] = _FLOAT_OPERATIONS
    if is_integer:
        allowed = _INTEGER_OPERATIONS
    elif outputs[0].data_type.is_quantized:
        allowed = _QUANTIZED_OPERATIONS
    if is_wide and operation.operation in (BinaryOperation.DIV, BinaryOperation.POWER):
        return f"{operation.operation.name} of {outputs[0].data_type.name} is not supported"
    if operation.operation not in allowed:
        return f"{operation.operation.name} of {outputs[0].data_type.name} is not supported"
    if is_integer and operation.activation is not FusedActivation.NONE:
        return "an activation after integers is not supported"
    if outputs[0].data_type.is_quantized:
        operands = Operands(operation, inputs)
        return refusal_of_fixed(operation, (operands["lhs"], operands["rhs"], outputs[0]))
    return ""


def lower_binary(emit: Emitter, layer: Layer) -> None:
    """One command, with the activation."""
    operation = expect(layer.operation, ElementwiseBinary)
    if layer.output.info.data_type.is_quantized:
        _lower_quantized(emit, layer, operation)
    elif layer.output.info.data_type in INTEGER_TYPES:
        _emit(emit, layer, f"int_{operation.operation.name.lower()}")
    else:
        emit_real(emit, layer)


def _emit(emit: Emitter, layer: Layer, expression: str, kinds: Sequence[str] = ()) -> None:
    """Add the command that computes an expression of a layer's inputs."""
    emit_elementwise(emit, expression, given(layer), layer.output, layer.name, kinds=kinds)


def _lower_quantized(emit: Emitter, layer: Layer, operation: ElementwiseBinary) -> None:
    """Quantised elements, in fixed point or through float32."""
    if lower_fixed(emit, layer):
        return
    kind = operation.operation
    inputs, output = given(layer), layer.output
    infos = [value.info for value in (*inputs, output)]
    stored = stored_bounds(operation.activation.bounds, output.info)
    if kind in _STORED_CHOICES:
        _lower_choice(emit, layer, kind, stored)
        return
    if kind in _OF_PAIRS:
        lhs, rhs, target = infos
        table = _OF_PAIRS[kind](lhs, rhs, target, stored)
        emit_lookup_of_pairs(emit, table, inputs, output, layer.name)
        return
    bounds = step_bounds(operation.activation.bounds, output.info)
    a_scale, b_scale, scale = (float(scale_of(info)) for info in infos)

    def parameters(a_zero: float, b_zero: float, zero: float) -> tuple[float, ...]:
        return (a_zero, a_scale, b_zero, b_scale, scale, zero, *bounds)

    name = f"quantized_{kind.name.lower()}"
    emit_quantized(emit, name, inputs, output, layer.name, parameters)


def _lower_choice(
    emit: Emitter, layer: Layer, kind: BinaryOperation, bounds: tuple[int, int]
) -> None:
    """The larger or smaller of two, which are looked up in the output's quantisation first."""
    inputs, output = (layer["lhs"], layer["rhs"]), layer.output
    is_wide = output.info.data_type is _WIDE
    sources = [_in_quantization_of(emit, value, layer, bounds) for value in inputs]
    shapes = [value.info.known_shape for value in inputs]
    expression = f"int_{kind.name.lower()}" if is_wide else _STORED_CHOICES[kind]
    kinds = ("i16" if is_wide else "raw8",) * 3
    emit_on_buffers(emit, expression, sources, shapes, output, layer.name, kinds=kinds)


def _in_quantization_of(
    emit: Emitter, value: Value, layer: Layer, bounds: tuple[int, int]
) -> Buffer:
    """Elements looked up in the quantisation of a layer's output, unless none of them changes."""
    table = tables.of_choice(value.info, layer.output.info, bounds)
    if (table.view(f"u{table.itemsize}") == np.arange(len(table))).all():
        return emit.source(value)
    target = emit.scratch(value.info.size_bytes)
    emit_lookup(emit, table, value, target, layer.name)
    return target


# ElementwiseUnary


def check_unary(operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
    """float32, 8-bit quantised, int32, int64 and booleans; of 16 bits what TFLite has."""
    operation = expect(operation, ElementwiseUnary)
    if outputs[0].data_type is _WIDE:
        if operation.operation in _WIDE_UNARY:
            return ""
        return f"{operation.operation.name} of {_WIDE.name} is not supported"
    is_integer = outputs[0].data_type in INTEGER_TYPES
    if operation.operation not in (_INTEGER_FUNCTIONS if is_integer else _FLOAT_FUNCTIONS):
        return f"{operation.operation.name} of {outputs[0].data_type.name} is not supported"
    allowed = (*REAL_TYPES, *INTEGER_TYPES, DataType.BOOLEAN)
    return check_types((*inputs, *outputs), allowed)


def lower_unary(emit: Emitter, layer: Layer) -> None:
    """One command; quantised elements are looked up."""
    function = expect(layer.operation, ElementwiseUnary).operation
    value, output = layer["input"], layer.output
    name, data_type = function.name.lower(), output.info.data_type
    if data_type is _WIDE:
        table = tables.of_unary16(function, value.info, output.info)
        emit_lookup(emit, table, value, output, layer.name)
    elif data_type in QUANTIZED_TYPES:
        emit_byte_function(emit, [layer], value, layer.name)
    elif data_type is DataType.FLOAT32:
        emit_real(emit, layer)
    else:
        is_logical = function is UnaryOperation.LOGICAL_NOT
        _emit(emit, layer, name if is_logical else f"int_{name}")


# Comparison, LogicalBinary, Prelu, Select


def check_comparison(
    operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
) -> str:
    """float32, 8-bit quantised, int32, int64 and booleans that are equal or not."""
    reason = check_types((*inputs, *outputs), (*REAL_TYPES, *INTEGER_TYPES, DataType.BOOLEAN))
    operation = expect(operation, Comparison)
    is_boolean = any(info and info.data_type is DataType.BOOLEAN for info in inputs)
    is_order = operation.operation not in (ComparisonOperation.EQUAL, ComparisonOperation.NOT_EQUAL)
    return reason or ("an order of booleans is not supported" if is_boolean and is_order else "")


def lower_comparison(emit: Emitter, layer: Layer) -> None:
    """One command; quantised elements are first looked up in the scale that they share."""
    name = expect(layer.operation, Comparison).operation.name.lower()
    inputs = layer["lhs"], layer["rhs"]
    if inputs[0].info.data_type not in QUANTIZED_TYPES:
        _emit(emit, layer, name)
        return
    sources = []
    comparable = tables.for_comparison(*(value.info for value in inputs))
    for value, table in zip(inputs, comparable, strict=True):
        wide = emit.scratch(4 * value.info.num_elements)
        emit_lookup(emit, table, value, wide, layer.name)
        sources.append(wide)
    shapes = [value.info.known_shape for value in inputs]
    kinds = ("i32", "i32", "bool")
    emit_on_buffers(emit, name, sources, shapes, layer.output, layer.name, kinds=kinds)


def lower_logical(emit: Emitter, layer: Layer) -> None:
    """Logical function of two tensors that broadcast."""
    _emit(emit, layer, expect(layer.operation, LogicalBinary).operation.name.lower())


def lower_prelu(emit: Emitter, layer: Layer) -> None:
    """Multiply negative elements by their slopes, which broadcast."""
    inputs, output = (layer["input"], layer["alpha"]), layer.output
    if output.info.data_type is DataType.FLOAT32:
        emit_real(emit, layer)
        return
    numbers = byte_prelu_numbers(inputs[0].info, inputs[1].info, output.info)
    emit_elementwise(emit, "byte_prelu", inputs, output, layer.name, numbers)


def check_select(operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
    """Elements of one quantisation, or of several of 8 or 16 bits."""
    infos = [info for info in (*inputs[1:], *outputs) if info is not None]
    if len({info.quantization for info in infos}) == 1 or not outputs[0].data_type.is_quantized:
        return check_types(outputs, tuple(KINDS))
    if any(info.has_per_axis_quantization for info in infos):
        return "different scales that run along an axis are not supported"
    return check_types(outputs, (*QUANTIZED_TYPES, _WIDE))


def lower_select(emit: Emitter, layer: Layer) -> None:
    """Take each element from one of two tensors, looked up where quantisations differ."""
    info = layer.output.info
    kind = {1: "raw8", 2: "raw16", 4: "i32", 8: "i64"}[info.data_type.size_bytes]
    kinds = ("bool", kind, kind, kind)
    inputs = given(layer)
    is_same = all(value.info.quantization == info.quantization for value in inputs[1:])
    if is_same or not info.data_type.is_quantized:
        _emit(emit, layer, "select", kinds)
        return
    bounds = stored_bounds((None, None), info)
    chosen = [_in_quantization_of(emit, value, layer, bounds) for value in inputs[1:]]
    shapes = [value.info.known_shape for value in inputs]
    sources = [emit.source(inputs[0]), *chosen]
    emit_on_buffers(emit, "select", sources, shapes, layer.output, layer.name, kinds=kinds)


LOWERINGS = {
    ElementwiseBinary: LoweringRule(check_binary, lower_binary),
    ElementwiseUnary: LoweringRule(check_unary, lower_unary),
    Comparison: LoweringRule(check_comparison, lower_comparison),
    LogicalBinary: LoweringRule(of_types(DataType.BOOLEAN), lower_logical),
    Prelu: LoweringRule(of_types(*REAL_TYPES), lower_prelu),
    Select: LoweringRule(check_select, lower_select),
}
