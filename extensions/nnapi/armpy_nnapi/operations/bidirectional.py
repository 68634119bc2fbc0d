"""Recurrent operations that run over a sequence in both directions."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.graph import Value
from armpy.ops.bidirectional import BidirectionalSequenceLstm, BidirectionalSequenceRnn
from armpy.ops.operation import Operand
from armpy_nnapi.codes import OperandCode, OperationCode
from armpy_nnapi.operations.definition import OperationDefinition
from armpy_nnapi.operations.form import Argument, Form, forms, rows
from armpy_nnapi.operations.lowering_context import LoweringContext
from armpy_nnapi.operations.shared import (
    add_by_name,
    operand_arguments,
    recurrent_activation,
    recurrent_activation_argument,
)

_C = OperandCode
_NUM_LSTM_DATA = 48
"""Operands of the LSTM ahead of its scalars; layer normalisation weights follow these."""

_MERGE_OUTPUTS = Argument(
    "merge_outputs", _C.BOOL, "Whether one output holds the forward, then the backward elements"
)
_TIME_MAJOR = Argument("time_major", _C.BOOL, "Whether the first axis is time, not batch")


def _output_forms(inputs: tuple[Argument, ...], outputs: tuple[Operand, ...]) -> tuple[Form, ...]:
    """Forms with and without a backward output of its own, with and without states."""
    arguments = operand_arguments(outputs)
    states, forward, backward = arguments[:-2], arguments[-2], arguments[-1]
    return tuple(
        form
        # The final states became outputs with level 30.
        for level, further in ((29, ()), (30, states))
        for sequences in ((forward, backward), (forward,))
        for form in forms(inputs, outputs=(*sequences, *further), feature_level=level)
    )


def _lower_lstm(lower: LoweringContext) -> Sequence[Value]:
    operation = BidirectionalSequenceLstm(
        recurrent_activation(lower),
        cell_clip=float(lower.number("cell_clip")),
        projection_clip=float(lower.number("projection_clip")),
        merge_outputs=bool(lower.number("merge_outputs")),
        time_major=bool(lower.number("time_major")),
    )
    return add_by_name(lower, operation)


def _lower_rnn(lower: LoweringContext) -> Sequence[Value]:
    operation = BidirectionalSequenceRnn(
        recurrent_activation(lower),
        time_major=bool(lower.number("time_major")),
        merge_outputs=bool(lower.number("merge_outputs")),
    )
    return add_by_name(lower, operation)


_LSTM_INPUTS = (
    *operand_arguments(BidirectionalSequenceLstm.inputs[:_NUM_LSTM_DATA]),
    recurrent_activation_argument(),
    Argument("cell_clip", "S", "Limit of the cell states' absolute values, 0 for none"),
    Argument("projection_clip", "S", "Limit of the projections' absolute values, 0 for none"),
    _MERGE_OUTPUTS,
    _TIME_MAJOR,
    *operand_arguments(BidirectionalSequenceLstm.inputs[_NUM_LSTM_DATA:]),
)
_RNN_INPUTS = (
    *operand_arguments(BidirectionalSequenceRnn.inputs),
    recurrent_activation_argument(),
    # The two flags stand the other way round than those of the LSTM.
    _TIME_MAJOR,
    _MERGE_OUTPUTS,
)

DEFINITIONS: tuple[OperationDefinition, ...] = (
    OperationDefinition(
        OperationCode.BIDIRECTIONAL_SEQUENCE_LSTM,
        "Long short-term memories over a sequence, forwards and backwards.",
        _output_forms(_LSTM_INPUTS, BidirectionalSequenceLstm.outputs),
        rows("T S", (_C.TENSOR_FLOAT32, _C.FLOAT32, 29), (_C.TENSOR_FLOAT16, _C.FLOAT16, 29)),
        _lower_lstm,
    ),
    OperationDefinition(
        OperationCode.BIDIRECTIONAL_SEQUENCE_RNN,
        "Fully connected recurrent networks over a sequence, forwards and backwards.",
        _output_forms(_RNN_INPUTS, BidirectionalSequenceRnn.outputs),
        rows("T", (_C.TENSOR_FLOAT32, 29), (_C.TENSOR_FLOAT16, 29)),
        _lower_rnn,
    ),
)
