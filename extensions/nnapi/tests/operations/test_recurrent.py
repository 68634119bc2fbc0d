"""What NNAPI says of recurrent operations beyond the table of types."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from armpy.errors import LayerValidationError
from armpy_nnapi.codes import OperandCode, OperationCode
from armpy_nnapi.description.model_description import Operand

from .nnapi_operation import (
    feature_level,
    integer,
    omitted,
    output,
    run,
    scalar,
    tensor,
)

C, O = OperandCode, OperationCode  # noqa: E741  # stands before every name
F32, F16 = C.TENSOR_FLOAT32, C.TENSOR_FLOAT16
TANH = integer(4)
LINEAR = integer(0)
NO = scalar(C.BOOL, 0)
YES = scalar(C.BOOL, 1)


def zeros(*shape: int, code: OperandCode = F32) -> Operand:
    """A tensor of zeros."""
    return tensor(code, np.zeros(shape))


def lstm_operands(code: OperandCode = F32) -> list[Operand]:
    """Inputs 1 to 17 of an LSTM of one cell whose gates are 1/2 and whose candidate is 0."""
    gates = [omitted(code), *[zeros(1, 1, code=code)] * 3]
    biases = [omitted(code), *[zeros(1, code=code)] * 3]
    return [*gates, *gates, *[omitted(code)] * 3, *biases, *[omitted(code)] * 2]


def lstm_inputs(rank: int, code: OperandCode = F32, cell_state: float = 2.0) -> list[Operand]:
    """Inputs 0 to 22 of LSTM, or of the sequence operation."""
    clip = scalar(C.FLOAT32 if code is F32 else C.FLOAT16, 0.0)
    states = [zeros(1, 1, code=code), tensor(code, [[cell_state]])]
    return [zeros(*[1] * rank, code=code), *lstm_operands(code), *states, TANH, clip, clip]


def outputs(count: int, code: OperandCode = F32) -> list[Operand]:
    """Outputs of unknown rank."""
    return [output(code)] * count


@pytest.mark.parametrize(
    ("code", "with_layer_norm", "level"),
    [(F32, False, 27), (F32, True, 29), (F16, False, 29), (F16, True, 29)],
)
def test_lstm_has_layer_normalization_since_level_29(
    code: OperandCode, with_layer_norm: bool, level: int
) -> None:
    inputs = [*lstm_inputs(2, code), *([omitted(code)] * 4 if with_layer_norm else [])]
    assert feature_level(O.LSTM, inputs, outputs(4, code)) == level


@pytest.mark.parametrize(
    ("position", "operand", "message"),
    [
        (20, integer(5), r"unknown activation.*6 \(SIGMOID\); got 5"),
        (21, scalar(C.FLOAT32, -1.0), "cell_clip is negative"),
        (12, zeros(1), "input_gate_bias is there without"),
        (10, zeros(1), "cell_to_output_weights is missing"),
        (0, zeros(1, 1, 1), "'input' has the wrong rank"),
        (6, omitted(F32), "recurrent_to_forget_weights has no value"),
    ],
)
def test_lstm_fails_when_it_runs(position: int, operand: Operand, message: str) -> None:
    inputs = lstm_inputs(2)
    inputs[position] = operand
    with pytest.raises(LayerValidationError, match=message):
        run(O.LSTM, inputs, outputs(4))


def sequence_inputs(rank: int = 3) -> list[Operand]:
    """Inputs of UNIDIRECTIONAL_SEQUENCE_LSTM with two time steps."""
    inputs = lstm_inputs(rank)
    inputs[0] = zeros(*[1] * (rank - 2), 2, 1)
    return [*inputs, NO, *[omitted(F32)] * 4]


@pytest.mark.parametrize(("count", "level"), [(1, 29), (3, 30)])
def test_sequence_lstm_outputs_states_since_level_30(count: int, level: int) -> None:
    inputs = sequence_inputs()
    assert feature_level(O.UNIDIRECTIONAL_SEQUENCE_LSTM, inputs, outputs(count)) == level


def test_sequence_lstm_checks_its_rank_when_it_is_built() -> None:
    with pytest.raises(LayerValidationError, match=r"'input' has the wrong rank.*rank 3"):
        feature_level(O.UNIDIRECTIONAL_SEQUENCE_LSTM, sequence_inputs(2), outputs(1))


def rnn_operands() -> list[Operand]:
    """Weights 2, recurrent weights 3, bias 1, state 1."""
    return [tensor(F32, [[2]]), tensor(F32, [[3]]), tensor(F32, [1]), tensor(F32, [[1]])]


def test_sequence_rnn_says_by_an_integer_whether_time_comes_first() -> None:
    data = tensor(F32, [[[1], [2]]])  # 2 + 3 + 1 and 4 + 18 + 1 if batch comes first
    code = O.UNIDIRECTIONAL_SEQUENCE_RNN
    batch_major = [data, *rnn_operands(), LINEAR, integer(0)]
    sequence, state = run(code, batch_major, outputs(2))
    assert sequence.tolist() == [[[6], [23]]]
    assert state.tolist() == [[23]]
    assert feature_level(code, batch_major, outputs(1)) == 29
    assert feature_level(code, batch_major, outputs(2)) == 30
    two_states = [*rnn_operands()[:3], tensor(F32, [[1], [1]])]
    (time_major,) = run(code, [data, *two_states, LINEAR, integer(1)], outputs(1))
    assert time_major.tolist() == [[[6], [8]]]


def bidirectional_rnn(merges: Operand, aux: Sequence[Operand] = ()) -> list[Operand]:
    """Inputs of BIDIRECTIONAL_SEQUENCE_RNN."""
    linked = aux or [omitted(F32)] * 3
    data = tensor(F32, [[[1], [2]]])
    return [data, *rnn_operands(), *rnn_operands(), *linked, LINEAR, NO, merges]


@pytest.mark.parametrize(
    ("merges", "count", "level"), [(NO, 2, 29), (YES, 1, 29), (NO, 4, 30), (YES, 3, 30)]
)
def test_bidirectional_rnn_outputs_states_since_level_30(
    merges: Operand, count: int, level: int
) -> None:
    inputs = bidirectional_rnn(merges)
    assert feature_level(O.BIDIRECTIONAL_SEQUENCE_RNN, inputs, outputs(count)) == level
    results = run(O.BIDIRECTIONAL_SEQUENCE_RNN, inputs, outputs(count))
    sequences = results[:1] if merges is YES else results[:2]
    # Backwards: 2 * 2 + 3 + 1 is 8 and 1 * 2 + 24 + 1 is 27.
    assert np.concatenate(sequences, axis=2).tolist() == [[[6, 27], [23, 8]]]
    if level == 30:
        assert [state.item() for state in results[-2:]] == [23, 27]


def test_output_of_its_own_for_the_backward_direction_cannot_be_merged() -> None:
    with pytest.raises(LayerValidationError, match=r"too many outputs"):
        run(O.BIDIRECTIONAL_SEQUENCE_RNN, bidirectional_rnn(YES), outputs(2))


@pytest.mark.parametrize(
    ("merges", "count", "level"), [(NO, 2, 29), (YES, 1, 29), (NO, 6, 30), (YES, 5, 30)]
)
def test_bidirectional_lstm_outputs_states_last(merges: Operand, count: int, level: int) -> None:
    clip = scalar(C.FLOAT32, 0.0)
    states = [zeros(1, 1), tensor(F32, [[2]])]
    inputs = [
        *(zeros(1, 2, 1), *lstm_operands(), *lstm_operands(), *states, *states),
        *[omitted(F32)] * 9,
        *(TANH, clip, clip, merges, NO),
        *[omitted(F32)] * 8,
    ]
    assert feature_level(O.BIDIRECTIONAL_SEQUENCE_LSTM, inputs, outputs(count)) == level
    results = run(O.BIDIRECTIONAL_SEQUENCE_LSTM, inputs, outputs(count))
    values = [math.tanh(1) / 2, math.tanh(0.5) / 2]
    both = np.stack([values, values[::-1]], axis=1)[np.newaxis]
    sequences = results[:1] if merges is YES else results[:2]
    np.testing.assert_allclose(np.concatenate(sequences, axis=2), both, rtol=1e-6)
    if level == 30:
        last = [values[1], 0.5, values[1], 0.5]
        np.testing.assert_allclose([s.item() for s in results[-4:]], last, rtol=1e-6)


def test_quantized_16bit_lstm_fails_with_another_quantization_of_the_input() -> None:
    data, wide = C.TENSOR_QUANT8_ASYMM, C.TENSOR_QUANT16_SYMM
    inputs = [
        *(tensor(data, [[5]], 1 / 64, 128), *[tensor(data, [[0]], 0.01, 100)] * 8),
        *[tensor(C.TENSOR_INT32, [0], 0.01 / 128)] * 4,
        *(tensor(wide, [[2000]], 2.0**-11), tensor(data, [[128]], 1 / 128, 128)),
    ]
    lstm_outputs = [output(wide, (1, 1), 2.0**-11), output(data, (1, 1), 1 / 128, 128)]
    assert feature_level(O.QUANTIZED_16BIT_LSTM, inputs, lstm_outputs) == 29
    with pytest.raises(LayerValidationError, match="quantisation of input is not"):
        run(O.QUANTIZED_16BIT_LSTM, inputs, lstm_outputs)
