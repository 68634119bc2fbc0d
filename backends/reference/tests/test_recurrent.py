"""Svdf, UnidirectionalSequenceLstm and their fixed-point functions on hand-worked values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from armpy.ops import RecurrentActivation, Svdf, UnidirectionalSequenceLstm
from armpy.ops.operation import Operation
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType
from armpy_testing.run_operation import run_operation, tensor

Operand = tuple[TensorInfo, npt.NDArray[Any]]  # Any: every element type occurs

LSTM_NAMES = [operand.name for operand in UnidirectionalSequenceLstm.inputs]


def run_svdf(operation: Svdf, data_type: DataType = DataType.FLOAT32) -> list[list[float]]:
    """Two filters that copy one input each, with a memory of two, summed into one unit."""
    arrays = (
        [[1, 2]],
        [[1, 0], [0, 1]],
        [[1, 2], [3, 4]],
        [0.5],
        [[10, 20, 30, 40]],
    )
    outputs = run_operation(operation, [tensor(values, data_type) for values in arrays])
    return [output[0].tolist() for output in outputs]


@pytest.mark.parametrize("data_type", [DataType.FLOAT32, DataType.FLOAT16])
def test_svdf_forgets_the_oldest_entry_first(data_type: DataType) -> None:
    # Filters remember (20, 1) and (40, 2): 20 + 2 + 120 + 8 + 0.5.
    state, output = run_svdf(Svdf(rank=2), data_type)
    assert state == [20, 1, 40, 2]
    assert output == [150.5]


def test_svdf_that_shifts_last_leaves_room_for_the_next_entry() -> None:
    # Filters remember (10, 1) and (30, 2): 10 + 2 + 90 + 8 + 0.5.
    state, output = run_svdf(Svdf(rank=2, shifts_state_first=False))
    assert state == [1, 0, 2, 0]
    assert output == [110.5]


def test_svdf_without_bias_sums_each_unit_alone() -> None:
    arrays = ([[1, 2]], [[1, 0], [0, 1]], [[1, 2], [3, 4]])
    operands = [*(tensor(values) for values in arrays), None, tensor([[0, 0, 0, 0]])]
    assert run_operation(Svdf(rank=1), operands)[1].tolist() == [[2, 8]]


@pytest.mark.parametrize(
    ("activation", "expected"),
    [
        (RecurrentActivation.NONE, 150.5),
        (RecurrentActivation.RELU, 150.5),
        (RecurrentActivation.RELU1, 1.0),
        (RecurrentActivation.RELU6, 6.0),
        (RecurrentActivation.TANH, 1.0),
        (RecurrentActivation.SIGMOID, 1.0),
    ],
)
def test_svdf_activates_its_output(activation: RecurrentActivation, expected: float) -> None:
    assert run_svdf(Svdf(2, activation))[1] == [expected]


def integer_svdf(state_type: DataType, state: list[int], zero_point: int = 0) -> list[list[int]]:
    """One filter: (3 - 1) * 5 / 2 is the newest entry, time weights 2 and 3, bias 3, / 4 - 10."""
    time_type = DataType.QSYMM_S16 if state_type is DataType.QSYMM_S16 else DataType.QASYMM_S8
    state_operand = tensor([state], state_type, 1.0, zero_point)
    operands = [
        tensor([[3]], DataType.QASYMM_S8, 1.0, 1),
        tensor([[5]], DataType.QASYMM_S8, 0.5),
        tensor([[2, 3]], time_type, 0.25),
        tensor([3], DataType.SIGNED32),
        state_operand,
    ]
    output = TensorInfo(None, DataType.QASYMM_S8, Quantization.per_tensor(1.0, -10))
    results = run_operation(Svdf(1, RecurrentActivation.RELU), operands, [state_operand[0], output])
    return [result[0].tolist() for result in results]


def test_integer_svdf_rescales_twice() -> None:
    # (2 * 7 + 3 * 5 + 3) / 4 - 10
    assert integer_svdf(DataType.QSYMM_S16, [100, 7]) == [[7, 5], [-2]]


def test_integer_svdf_takes_off_the_zero_point_of_an_8_bit_state() -> None:
    # (2 * (4 - 3) + 3 * 5 + 3) / 4 - 10
    assert integer_svdf(DataType.QASYMM_S8, [9, 4], zero_point=3) == [[4, 8], [-5]]


def test_integer_svdf_saturates_the_output() -> None:
    # 2 * 30000 / 4 is far above 127.
    assert integer_svdf(DataType.QSYMM_S16, [0, 30000])[1] == [127]


def test_integer_svdf_without_bias_saturates_the_newest_entry() -> None:
    operands = [
        tensor([[100, 100]], DataType.QASYMM_S8, 1.0, 0),
        tensor([[100, 100]], DataType.QASYMM_S8, 1.0),
        tensor([[1]], DataType.QASYMM_S8, 1.0),
        None,
        tensor([[0]], DataType.QASYMM_S8, 1.0, 0),
    ]
    infos = [TensorInfo(None, DataType.QASYMM_S8, Quantization.per_tensor(1.0))] * 2
    state, output = run_operation(Svdf(), operands, infos)
    assert state.tolist() == [[127]]
    assert output.tolist() == [[127]]


def run_lstm(
    operation: Operation, operands: Mapping[str, Operand], constants: bool = True
) -> list[npt.NDArray[Any]]:
    """Run an LSTM on operands given by name; outputs have the states' and the input's type."""
    operand_list = [operands.get(name) for name in LSTM_NAMES]
    infos = [operands[name][0] for name in ("output_state_in", "cell_state_in")]
    # With integers the output has the quantisation of the output state.
    output = infos[0].with_shape(None)
    weights = (
        [i for i, name in enumerate(LSTM_NAMES) if not name.endswith("put")] if constants else []
    )
    return run_operation(operation, operand_list, [*infos, output], constants=weights)


def one_cell(cell_state: float = 0.0, **biases: float) -> dict[str, Operand]:
    """One cell of one input, with weights 0 for the gates that have a bias here."""
    names = {"input": "input_gate_bias", "forget": "forget_gate_bias", "cell": "cell_bias"}
    operands: dict[str, Operand] = {
        "input": tensor([[[1.0]]]),
        "output_state_in": tensor([[1.0]]),
        "cell_state_in": tensor([[cell_state]]),
    }
    for gate, bias in biases.items():
        operands[f"input_to_{gate}_weights"] = tensor([[0.0]])
        operands[f"recurrent_to_{gate}_weights"] = tensor([[0.0]])
        operands[names.get(gate, f"{gate}_gate_bias")] = tensor([bias])
    return operands


LINEAR = RecurrentActivation.NONE


def test_lstm_takes_the_candidate_through_an_open_input_gate() -> None:
    # Gates 1, 0 and 1/2; candidate 0.5.
    operands = one_cell(cell_state=7.0, input=100.0, forget=-100.0, cell=0.5, output=0.0)
    output_state, cell_state, output = run_lstm(UnidirectionalSequenceLstm(LINEAR), operands)
    assert cell_state.tolist() == [[0.5]]
    assert output_state.tolist() == [[0.25]]
    assert output.tolist() == [[[0.25]]]


def test_lstm_without_input_gate_takes_what_it_forgets() -> None:
    # 1/2 of 3 is kept, 1/2 of 1 is taken.
    operands = one_cell(cell_state=3.0, forget=0.0, cell=1.0, output=0.0)
    assert run_lstm(UnidirectionalSequenceLstm(LINEAR), operands)[1].tolist() == [[2.0]]


def test_lstm_clips_cell_and_projection() -> None:
    # The cell state 2 is clipped to 1.5, halved, and 2 * 0.75 + 0.25 is clipped to 1.
    operands = one_cell(cell_state=3.0, forget=0.0, cell=1.0, output=0.0)
    operands |= {"projection_weights": tensor([[2.0]]), "projection_bias": tensor([0.25])}
    operation = UnidirectionalSequenceLstm(LINEAR, cell_clip=1.5)
    assert run_lstm(operation, operands)[2].tolist() == [[[1.75]]]
    operation = UnidirectionalSequenceLstm(LINEAR, cell_clip=1.5, projection_clip=1.0)
    assert run_lstm(operation, operands)[2].tolist() == [[[1.0]]]
    del operands["projection_bias"]
    operation = UnidirectionalSequenceLstm(LINEAR, cell_clip=1.5)
    assert run_lstm(operation, operands)[2].tolist() == [[[1.5]]]


def test_lstm_peephole_of_the_output_gate_sees_the_new_cell_state() -> None:
    # The cell state goes from 0 to ln 3, of which the sigmoid is 3/4.
    operands = one_cell(input=100.0, forget=-100.0, cell=math.log(3), output=0.0)
    for gate, weight in (("input", 0.0), ("forget", 0.0), ("output", 1.0)):
        operands[f"cell_to_{gate}_weights"] = tensor([weight])
    output = run_lstm(UnidirectionalSequenceLstm(LINEAR), operands)[2]
    assert output.item() == pytest.approx(0.75 * math.log(3), rel=1e-6)


def test_lstm_normalizes_ahead_of_the_bias() -> None:
    # Candidates 1 and 3 have mean 2 and variance 1; 2 * (-1, 1) + (0.5, 1) come out.
    zeros = tensor([[0.0, 0.0], [0.0, 0.0]])
    operands: dict[str, Operand] = {"input": tensor([[[1.0]]])}
    for gate, weights in (("forget", [[0.0], [0.0]]), ("output", [[0.0], [0.0]])):
        operands[f"input_to_{gate}_weights"] = tensor(weights)
        operands[f"{gate}_gate_bias"] = tensor([0.0, 0.0])
    operands["input_to_cell_weights"] = tensor([[1.0], [3.0]])
    operands["cell_bias"] = tensor([0.5, 1.0])
    for gate in ("forget", "cell", "output"):
        operands[f"recurrent_to_{gate}_weights"] = zeros
        operands[f"{gate}_layer_norm_weights"] = tensor([2.0, 2.0])
    operands |= {"output_state_in": tensor([[0.0, 0.0]]), "cell_state_in": tensor([[0.0, 0.0]])}
    cell_state = run_lstm(UnidirectionalSequenceLstm(LINEAR), operands)[1]
    np.testing.assert_allclose(cell_state, [[-0.75, 1.5]], rtol=1e-6)


def random_lstm(seed: int, batch: int, time: int) -> dict[str, Operand]:
    """An LSTM of three cells with random weights, without input gate."""
    rng = np.random.default_rng(seed)
    operands = {"input": tensor(rng.normal(size=(batch, time, 2)))}
    for gate in ("forget", "cell", "output"):
        operands[f"input_to_{gate}_weights"] = tensor(rng.normal(size=(3, 2)))
        operands[f"recurrent_to_{gate}_weights"] = tensor(rng.normal(size=(3, 3)))
        operands["cell_bias" if gate == "cell" else f"{gate}_gate_bias"] = tensor([0.1, 0.2, 0.3])
    operands["output_state_in"] = tensor(rng.normal(size=(batch, 3)))
    operands["cell_state_in"] = tensor(rng.normal(size=(batch, 3)))
    return operands


def test_time_major_lstm_gives_the_transposed_output() -> None:
    operands = random_lstm(1, batch=2, time=3)
    batch_major = run_lstm(UnidirectionalSequenceLstm(), operands)
    operands["input"] = tensor(operands["input"][1].swapaxes(0, 1))
    time_major = run_lstm(UnidirectionalSequenceLstm(time_major=True), operands)
    np.testing.assert_array_equal(time_major[2].swapaxes(0, 1), batch_major[2])
    np.testing.assert_array_equal(time_major[1], batch_major[1])


def test_states_fed_back_continue_the_sequence() -> None:
    operands = random_lstm(2, batch=2, time=4)
    whole = run_lstm(UnidirectionalSequenceLstm(), operands)
    sequence = operands["input"][1]
    operands["input"] = tensor(sequence[:, :1])
    first = run_lstm(UnidirectionalSequenceLstm(), operands)
    operands |= {"output_state_in": tensor(first[0]), "cell_state_in": tensor(first[1])}
    operands["input"] = tensor(sequence[:, 1:])
    rest = run_lstm(UnidirectionalSequenceLstm(), operands)
    np.testing.assert_allclose(rest[2], whole[2][:, 1:], rtol=1e-6)
    np.testing.assert_allclose(rest[1], whole[1], rtol=1e-6)


def test_lstm_weights_may_come_at_run_time() -> None:
    operands = random_lstm(3, batch=1, time=2)
    constant = run_lstm(UnidirectionalSequenceLstm(), operands)
    at_run_time = run_lstm(UnidirectionalSequenceLstm(), operands, constants=False)
    np.testing.assert_array_equal(constant[2], at_run_time[2])


def test_empty_sequence_keeps_the_states() -> None:
    operands = random_lstm(4, batch=2, time=0)
    output_state, cell_state, output = run_lstm(UnidirectionalSequenceLstm(), operands)
    assert output.shape == (2, 0, 3)
    np.testing.assert_array_equal(output_state, operands["output_state_in"][1])
    np.testing.assert_array_equal(cell_state, operands["cell_state_in"][1])


def integer_cell(cell_state: int) -> dict[str, Operand]:
    """One cell without input gate whose gates are all 1/2 and whose candidate is 0."""
    s8 = DataType.QASYMM_S8
    operands: dict[str, Operand] = {
        "input": tensor([[[5]]], s8, 1 / 64, 3),
        "output_state_in": tensor([[7]], s8, 1 / 128, 3),
        "cell_state_in": tensor([[cell_state]], DataType.QSYMM_S16, 2.0**-11),
    }
    for gate in ("forget", "cell", "output"):
        operands[f"input_to_{gate}_weights"] = tensor([[0]], s8, 1 / 64)
        operands[f"recurrent_to_{gate}_weights"] = tensor([[0]], s8, 1 / 64)
        bias = "cell_bias" if gate == "cell" else f"{gate}_gate_bias"
        operands[bias] = tensor([0], DataType.SIGNED32)
    return operands


INTEGER = UnidirectionalSequenceLstm(hidden_state_scale=1 / 128, hidden_state_zero_point=3)


def test_integer_lstm_halves_the_cell_state() -> None:
    # tanh(1000 / 2048) / 2 is 28.98 / 128.
    output_state, cell_state, output = run_lstm(INTEGER, integer_cell(2000))
    assert cell_state.tolist() == [[1000]]
    assert output_state.tolist() == [[29 + 3]]
    assert output.tolist() == [[[29 + 3]]]


def test_integer_lstm_clips_the_cell_state() -> None:
    # tanh(512 / 2048) / 2 is 15.67 / 128.
    operation = INTEGER.with_attributes(cell_clip=0.25)
    _, cell_state, output = run_lstm(operation, integer_cell(2000))
    assert cell_state.tolist() == [[512]]
    assert output.tolist() == [[[16 + 3]]]


def test_integer_lstm_adds_bias_and_products_with_12_fraction_bits() -> None:
    # (5 - 3) * 50 + 4096 with 12 fraction bits is the candidate 1.0244, half of it taken.
    operands = integer_cell(0)
    operands["input_to_cell_weights"] = tensor([[50]], DataType.QASYMM_S8, 1 / 64)
    operands["cell_bias"] = tensor([4096], DataType.SIGNED32)
    cell_state = run_lstm(INTEGER, operands)[1]
    assert cell_state.item() == pytest.approx(math.tanh(4196 / 4096) / 2 * 2048, abs=1.5)


def test_integer_lstm_closes_its_input_gate() -> None:
    # The candidate tanh(1) of scale 2048 is taken by sigmoid(-7.5), which is 0.00055.
    s8 = DataType.QASYMM_S8
    operands = integer_cell(0)
    operands["cell_bias"] = tensor([4096], DataType.SIGNED32)
    operands["input_to_input_weights"] = tensor([[0]], s8, 1 / 64)
    operands["recurrent_to_input_weights"] = tensor([[0]], s8, 1 / 64)
    operands["input_gate_bias"] = tensor([-30720], DataType.SIGNED32)
    assert run_lstm(INTEGER, operands)[1].item() == 1


def test_integer_lstm_weighs_the_output_state() -> None:
    # (7 - 3) * 100 / (64 * 128) is the candidate 0.0488, half of it taken.
    operands = integer_cell(0)
    operands["recurrent_to_cell_weights"] = tensor([[100]], DataType.QASYMM_S8, 1 / 64)
    cell_state = run_lstm(INTEGER, operands)[1]
    assert cell_state.item() == pytest.approx(math.tanh(400 / 8192) / 2 * 2048, abs=1.5)


def test_integer_lstm_projects() -> None:
    # The hidden 29 / 128 times 64 / 64 plus 10 / 128, moved to the zero point 3.
    operands = integer_cell(2000)
    operands["projection_weights"] = tensor([[64]], DataType.QASYMM_S8, 1 / 64)
    operands["projection_bias"] = tensor([640], DataType.SIGNED32)
    assert run_lstm(INTEGER, operands)[2].item() == 29 + 10 + 3
    operation = INTEGER.with_attributes(projection_clip=0.125)
    assert run_lstm(operation, operands)[2].item() == 16


@pytest.mark.parametrize("time_major", [False, True])
def test_integer_lstm_peephole_opens_the_output_gate(time_major: bool) -> None:
    # The peephole adds 1000 / 2048 * 2 to the output gate: its sigmoid times tanh(0.488).
    operands = integer_cell(2000)
    weights = tensor([16384], DataType.QSYMM_S16, 2.0**-13)
    none = tensor([0], DataType.QSYMM_S16, 2.0**-13)
    operands |= {"cell_to_forget_weights": none, "cell_to_output_weights": weights}
    operation = INTEGER.with_attributes(time_major=time_major)
    expected = math.tanh(1000 / 2048) / (1 + math.exp(-2000 / 2048)) * 128 + 3
    assert run_lstm(operation, operands)[2].item() == pytest.approx(expected, abs=0.6)


def test_integer_lstm_normalizes_equal_cells_to_their_bias() -> None:
    # A single cell is its own mean, so that the bias alone is left: 1024 * 2**-20 / 2**-10 = 1.
    operands = integer_cell(0)
    operands["cell_bias"] = tensor([1024 * 1024], DataType.SIGNED32)
    for gate in ("forget", "cell", "output"):
        operands[f"{gate}_layer_norm_weights"] = tensor([1024], DataType.QSYMM_S16, 2.0**-10)
    scales = {f"{gate}_intermediate_scale": 2.0**-12 for gate in ("forget", "cell", "output")}
    operation = INTEGER.with_attributes(**scales)
    cell_state = run_lstm(operation, operands)[1]
    assert cell_state.item() == pytest.approx(math.tanh(1.0) / 2 * 2048, abs=1.5)
