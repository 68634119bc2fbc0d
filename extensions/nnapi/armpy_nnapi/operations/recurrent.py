"""Recurrent operations other than long short-term memories."""

from __future__ import annotations

from armpy.ops.recurrent import Rnn, Svdf, UnidirectionalSequenceRnn
from armpy_nnapi.codes import OperandCode, OperationCode
from armpy_nnapi.operations.definition import OperationDefinition
from armpy_nnapi.operations.form import Argument, forms, rows
from armpy_nnapi.operations.shared import (
    add_by_name,
    operand_arguments,
    recurrent_activation,
    recurrent_activation_argument,
)

_C = OperandCode

_FLOATS = rows("T", (_C.TENSOR_FLOAT32, 27), (_C.TENSOR_FLOAT16, 29))
_SEQUENCE_FLOATS = rows("T", (_C.TENSOR_FLOAT32, 29), (_C.TENSOR_FLOAT16, 29))
_SEQUENCE_INPUTS = (
    *operand_arguments(UnidirectionalSequenceRnn.inputs),
    recurrent_activation_argument(),
    # An integer, where the LSTMs and the RNN in both directions have a BOOL.
    Argument("time_major", _C.INT32, "1 if the first axis is time, 0 if it is batch"),
)
_OUTPUT = Argument("output", "T")
_HIDDEN_STATE = Argument("hidden_state_out", "T")

DEFINITIONS: tuple[OperationDefinition, ...] = (
    OperationDefinition(
        OperationCode.RNN,
        "One time step of a fully connected recurrent network.",
        forms(
            (*operand_arguments(Rnn.inputs), recurrent_activation_argument()),
            outputs=operand_arguments(Rnn.outputs),
        ),
        _FLOATS,
        lambda lower: add_by_name(lower, Rnn(recurrent_activation(lower))),
    ),
    OperationDefinition(
        OperationCode.SVDF,
        "One time step of filters over features and over time.",
        forms(
            (
                *operand_arguments(Svdf.inputs),
                Argument("rank", _C.INT32, "Number of filters per unit"),
                recurrent_activation_argument(),
            ),
            outputs=operand_arguments(Svdf.outputs),
        ),
        _FLOATS,
        lambda lower: add_by_name(
            lower,
            # NNAPI shifts the memory after the output, TFLite in front of it.
            Svdf(lower.integer("rank"), recurrent_activation(lower), shifts_state_first=False),
        ),
    ),
    OperationDefinition(
        OperationCode.UNIDIRECTIONAL_SEQUENCE_RNN,
        "A fully connected recurrent network over a sequence.",
        (
            *forms(_SEQUENCE_INPUTS, outputs=(_OUTPUT,), feature_level=29),
            *forms(_SEQUENCE_INPUTS, outputs=(_OUTPUT, _HIDDEN_STATE), feature_level=30),
        ),
        _SEQUENCE_FLOATS,
        lambda lower: add_by_name(
            lower,
            UnidirectionalSequenceRnn(
                recurrent_activation(lower), time_major=bool(lower.number("time_major"))
            ),
        ),
    ),
)
