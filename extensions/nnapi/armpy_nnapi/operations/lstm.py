"""Long short-term memories in one direction."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.graph import Value
from armpy.ops.lstm import Lstm, UnidirectionalSequenceLstm
from armpy.ops.operation import Operand, TypeRule
from armpy.ops.quantized_lstm import QLstm, QuantizedLstm
from armpy_nnapi.codes import OperandCode, OperationCode
from armpy_nnapi.operations.definition import OperationDefinition
from armpy_nnapi.operations.form import Argument, forms, rows
from armpy_nnapi.operations.lowering_context import LoweringContext
from armpy_nnapi.operations.shared import (
    add_by_name,
    operand_arguments,
    recurrent_activation,
    recurrent_activation_argument,
)

_C = OperandCode
_NUM_DATA = 20
"""Operands of an LSTM ahead of its scalars; layer normalisation weights follow these."""

_LAYER_NORM = operand_arguments(Lstm.inputs[_NUM_DATA:])
_CLIPS = (
    Argument("cell_clip", "S", "Limit of the cell state's absolute values, 0 for none"),
    Argument("projection_clip", "S", "Limit of the projection's absolute values, 0 for none"),
)
_SCALARS = (recurrent_activation_argument(), *_CLIPS)
_OUTPUT_STATE, _CELL_STATE, _OUTPUT = operand_arguments(UnidirectionalSequenceLstm.outputs)

_SEQUENCE_INPUTS = (
    # In place of the LSTM's own input, as it has time for a third axis.
    Argument("input", "T", ranks=(3,)),
    *operand_arguments(UnidirectionalSequenceLstm.inputs[1:_NUM_DATA]),
    *_SCALARS,
    Argument("time_major", _C.BOOL, "Whether the first axis is time, not batch"),
    *_LAYER_NORM,
)

# The core's type rules name types of elements, forms name NNAPI's operands.
_CODES = {
    code.traits.data_type: code
    for code in (
        _C.TENSOR_QUANT8_ASYMM,
        _C.TENSOR_QUANT8_ASYMM_SIGNED,
        _C.TENSOR_QUANT8_SYMM,
        _C.TENSOR_QUANT16_SYMM,
        _C.TENSOR_INT32,
    )
}


def _typed_arguments(
    type_rule: TypeRule, inputs: tuple[Operand, ...], outputs: tuple[Operand, ...]
) -> tuple[tuple[Argument, ...], tuple[Argument, ...]]:
    sides = []
    for operands, columns in ((inputs, type_rule.inputs), (outputs, type_rule.outputs)):
        last = len(columns) - 1
        # The last column of a rule stands for all operands that follow.
        types = [_CODES[next(iter(columns[min(i, last)]))] for i in range(len(operands))]
        sides.append(
            tuple(
                Argument(operand.name, code, optional=operand.optional)
                for operand, code in zip(operands, types, strict=True)
            )
        )
    return sides[0], sides[1]


def _lower_lstm(lower: LoweringContext) -> Sequence[Value]:
    operation = Lstm(
        recurrent_activation(lower),
        cell_clip=float(lower.number("cell_clip")),
        projection_clip=float(lower.number("projection_clip")),
    )
    return add_by_name(lower, operation)


def _lower_sequence(lower: LoweringContext) -> Sequence[Value]:
    """UNIDIRECTIONAL_SEQUENCE_LSTM."""
    operation = UnidirectionalSequenceLstm(
        recurrent_activation(lower),
        cell_clip=float(lower.number("cell_clip")),
        projection_clip=float(lower.number("projection_clip")),
        time_major=bool(lower.number("time_major")),
    )
    return add_by_name(lower, operation)


_SCALES = (
    "input_intermediate_scale",
    "forget_intermediate_scale",
    "cell_intermediate_scale",
    "output_intermediate_scale",
)


def _lower_quantized(lower: LoweringContext) -> Sequence[Value]:
    names = ("cell_clip", "projection_clip", *_SCALES, "hidden_state_scale")
    reals = {name: float(lower.number(name)) for name in names}
    operation = QLstm(hidden_state_zero_point=lower.integer("hidden_state_zero_point"))
    return add_by_name(lower, operation.with_attributes(**reals))


_QLSTM_INPUTS, _QLSTM_OUTPUTS = _typed_arguments(QLstm.type_rules[0], QLstm.inputs, QLstm.outputs)
_QUANTIZED_INPUTS, _QUANTIZED_OUTPUTS = _typed_arguments(
    QuantizedLstm.type_rules[0], QuantizedLstm.inputs, QuantizedLstm.outputs
)

DEFINITIONS: tuple[OperationDefinition, ...] = (
    OperationDefinition(
        OperationCode.LSTM,
        "One time step of a long short-term memory.",
        forms(
            (*operand_arguments(Lstm.inputs[:_NUM_DATA]), *_SCALARS),
            (29, _LAYER_NORM),
            outputs=operand_arguments(Lstm.outputs),
        ),
        rows("T S", (_C.TENSOR_FLOAT32, _C.FLOAT32, 27), (_C.TENSOR_FLOAT16, _C.FLOAT16, 29)),
        _lower_lstm,
    ),
    OperationDefinition(
        OperationCode.UNIDIRECTIONAL_SEQUENCE_LSTM,
        "A long short-term memory over a sequence.",
        (
            *forms(_SEQUENCE_INPUTS, outputs=(_OUTPUT,), feature_level=29),
            # The final states became outputs with level 30.
            *forms(
                _SEQUENCE_INPUTS, outputs=(_OUTPUT, _OUTPUT_STATE, _CELL_STATE), feature_level=30
            ),
        ),
        rows("T S", (_C.TENSOR_FLOAT32, _C.FLOAT32, 29), (_C.TENSOR_FLOAT16, _C.FLOAT16, 29)),
        _lower_sequence,
    ),
    OperationDefinition(
        OperationCode.QUANTIZED_LSTM,
        "One time step of a long short-term memory with 8-bit data and 16-bit gates.",
        forms(
            (
                *_QLSTM_INPUTS,
                Argument("cell_clip", _C.FLOAT32, _CLIPS[0].text),
                Argument("projection_clip", _C.FLOAT32, _CLIPS[1].text),
                *(Argument(name, _C.FLOAT32, "Of the gate's sums") for name in _SCALES),
                Argument("hidden_state_zero_point", _C.INT32, "Of the projection's input"),
                Argument("hidden_state_scale", _C.FLOAT32, "Of the projection's input"),
            ),
            outputs=_QLSTM_OUTPUTS,
            feature_level=30,
        ),
        # No rows: each operand has one type, given with it above.
        (),
        _lower_quantized,
    ),
    OperationDefinition(
        OperationCode.QUANTIZED_16BIT_LSTM,
        "One time step of a plain long short-term memory with given quantisation.",
        forms(_QUANTIZED_INPUTS, outputs=_QUANTIZED_OUTPUTS, feature_level=29),
        (),
        lambda lower: add_by_name(lower, QuantizedLstm()),
    ),
)
