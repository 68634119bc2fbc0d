"""Single steps, sequences and both directions against a formula in plain Python."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from armpy.ops import (
    BidirectionalSequenceLstm,
    BidirectionalSequenceRnn,
    Lstm,
    RecurrentActivation,
    Rnn,
    UnidirectionalSequenceRnn,
)
from armpy.ops.operation import Operation
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_testing.run_operation import run_operation, tensor

Array = npt.NDArray[Any]  # Any: float16 and float32 occur
Operands = dict[str, Array]
Vector = list[float]

BATCH, TIME, SIZE, AUX_SIZE = 2, 3, 2, 4
TOLERANCE = {DataType.FLOAT32: 1e-5, DataType.FLOAT16: 4e-3}
FLOATS = pytest.mark.parametrize("data_type", [DataType.FLOAT32, DataType.FLOAT16])


def dot(rows: Array, values: Sequence[float]) -> Vector:
    """Return a matrix times a vector."""
    return [math.fsum(w * v for w, v in zip(row, values, strict=True)) for row in rows.tolist()]


def sigmoid(value: float) -> float:
    """Return the logistic function."""
    return 1 / (1 + math.exp(-value))


def rnn_step(weights: Mapping[str, Array], x: Vector, h: Vector, aux: Vector) -> Vector:
    """Return tanh of the weighted sums."""
    sums = zip(
        dot(weights["weights"], x),
        dot(weights["recurrent_weights"], h),
        weights["bias"].tolist(),
        dot(weights["aux_weights"], aux) if "aux_weights" in weights else [0.0] * len(h),
        strict=True,
    )
    return [math.tanh(math.fsum(parts)) for parts in sums]


def lstm_step(
    weights: Mapping[str, Array], x: Vector, state: tuple[Vector, Vector], aux: Vector
) -> tuple[Vector, Vector]:
    """Return the states after a step of an LSTM with tanh, without clips."""
    h, c = state

    def gate(name: str, cell: Vector) -> Vector:
        """Return a gate ahead of its activation."""
        bias = weights["cell_bias" if name == "cell" else f"{name}_gate_bias"].tolist()
        sums = [dot(weights[f"input_to_{name}_weights"], x)]
        sums.append(dot(weights[f"recurrent_to_{name}_weights"], h))
        if f"aux_to_{name}_weights" in weights:
            sums.append(dot(weights[f"aux_to_{name}_weights"], aux))
        if name != "cell" and f"cell_to_{name}_weights" in weights:
            peephole = weights[f"cell_to_{name}_weights"].tolist()
            sums.append([p * v for p, v in zip(peephole, cell, strict=True)])
        totals = [math.fsum(parts) for parts in zip(*sums, strict=True)]
        if f"{name}_layer_norm_weights" not in weights:
            return [total + b for total, b in zip(totals, bias, strict=True)]
        mean = math.fsum(totals) / len(totals)
        deviation = math.sqrt(math.fsum((t - mean) ** 2 for t in totals) / len(totals))
        norm = weights[f"{name}_layer_norm_weights"].tolist()
        return [(t - mean) / deviation * n + b for t, n, b in zip(totals, norm, bias, strict=True)]

    forget = [sigmoid(v) for v in gate("forget", c)]
    has_input_gate = "input_to_input_weights" in weights
    update = [sigmoid(v) for v in gate("input", c)] if has_input_gate else [1 - f for f in forget]
    candidates = [math.tanh(v) for v in gate("cell", c)]
    cell = [f * v + i * g for f, v, i, g in zip(forget, c, update, candidates, strict=True)]
    passed = [sigmoid(v) for v in gate("output", cell)]
    output = [o * math.tanh(v) for o, v in zip(passed, cell, strict=True)]
    if "projection_weights" in weights:
        projected = dot(weights["projection_weights"], output)
        output = [p + b for p, b in zip(projected, weights["projection_bias"], strict=True)]
    return output, cell


def rnn_weights(rng: np.random.Generator, units: int, size: int = SIZE, aux: int = 0) -> Operands:
    """Return weights of one recurrent network."""
    shapes = {"weights": (units, size), "recurrent_weights": (units, units), "bias": (units,)}
    if aux:
        shapes["aux_weights"] = (units, aux)
    return {name: rng.uniform(-0.7, 0.7, shape) for name, shape in shapes.items()}


def lstm_weights(
    rng: np.random.Generator,
    cells: int,
    outputs: int,
    size: int = SIZE,
    aux: int = 0,
    *,
    has_everything: bool = True,
) -> Operands:
    """Return weights of one LSTM, of a plain one without input gate or of one with everything."""
    shapes: dict[str, tuple[int, ...]] = {}
    for gate in ("input", "forget", "cell", "output")[not has_everything :]:
        shapes[f"input_to_{gate}_weights"] = (cells, size)
        shapes[f"recurrent_to_{gate}_weights"] = (cells, outputs)
        shapes["cell_bias" if gate == "cell" else f"{gate}_gate_bias"] = (cells,)
        if aux:
            shapes[f"aux_to_{gate}_weights"] = (cells, aux)
        if has_everything:
            shapes[f"{gate}_layer_norm_weights"] = (cells,)
            if gate != "cell":
                shapes[f"cell_to_{gate}_weights"] = (cells,)
    if cells != outputs:
        shapes |= {"projection_weights": (outputs, cells), "projection_bias": (outputs,)}
    return {name: rng.uniform(-0.7, 0.7, shape) for name, shape in shapes.items()}


def run(operation: Operation, operands: Operands, data_type: DataType) -> list[Array]:
    """Run an operation on operands given by name, weights as constants."""
    operand_list = [
        tensor(operands[operand.name], data_type) if operand.name in operands else None
        for operand in operation.inputs
    ]
    constants = [
        i
        for i, operand in enumerate(operation.inputs)
        if not operand.name.endswith(("input", "state_in"))
    ]
    infos = [TensorInfo(None, data_type)] * operation.num_outputs
    return run_operation(operation, operand_list, infos, constants=constants)


def prefixed(prefix: str, operands: Operands) -> Operands:
    """Return operands of one direction."""
    return {f"{prefix}{name}": values for name, values in operands.items()}


def expect(actual: Array, expected: object, data_type: DataType) -> None:
    """Compare with the type's tolerance."""
    assert actual.dtype == data_type.dtype
    tolerance = TOLERANCE[data_type]
    np.testing.assert_allclose(actual, np.asarray(expected), rtol=tolerance, atol=tolerance)


@FLOATS
def test_rnn_adds_weighted_input_state_and_bias(data_type: DataType) -> None:
    rng = np.random.default_rng(0)
    weights, x, h = rnn_weights(rng, 3), rng.normal(size=(BATCH, SIZE)), rng.normal(size=(BATCH, 3))
    operands = {**weights, "input": x, "hidden_state_in": h}
    state, output = run(Rnn(RecurrentActivation.TANH), operands, data_type)
    expected = [rnn_step(weights, x[b].tolist(), h[b].tolist(), []) for b in range(BATCH)]
    expect(output, expected, data_type)
    np.testing.assert_array_equal(state, output)


def test_rnn_without_activation_is_linear() -> None:
    operands = {
        "input": np.array([[1.0, 2.0]]),
        "weights": np.array([[3.0, 4.0]]),
        "recurrent_weights": np.array([[5.0]]),
        "bias": np.array([6.0]),
        "hidden_state_in": np.array([[7.0]]),
    }
    assert run(Rnn(), operands, DataType.FLOAT32)[1].tolist() == [[3 + 8 + 35 + 6]]


@pytest.mark.parametrize("time_major", [False, True])
def test_sequence_rnn_hands_its_state_on(time_major: bool) -> None:
    rng = np.random.default_rng(1)
    weights, x = rnn_weights(rng, 3), rng.normal(size=(BATCH, TIME, SIZE))
    h = rng.normal(size=(BATCH, 3))
    expected = np.zeros((BATCH, TIME, 3))
    for b in range(BATCH):
        state = h[b].tolist()
        for t in range(TIME):
            expected[b, t] = state = rnn_step(weights, x[b, t].tolist(), state, [])
    swap = (1, 0, 2) if time_major else (0, 1, 2)
    operation = UnidirectionalSequenceRnn(RecurrentActivation.TANH, time_major)
    operands = {**weights, "input": x.transpose(swap), "hidden_state_in": h}
    final, output = run(operation, operands, DataType.FLOAT32)
    expect(output.transpose(swap), expected, DataType.FLOAT32)
    expect(final, expected[:, -1], DataType.FLOAT32)


@FLOATS
@pytest.mark.parametrize("has_everything", [False, True])
def test_lstm_takes_one_step(has_everything: bool, data_type: DataType) -> None:
    rng = np.random.default_rng(2)
    cells, outputs = 4, 3 if has_everything else 4
    weights = lstm_weights(rng, cells, outputs, has_everything=has_everything)
    x, h, c = (rng.normal(size=(BATCH, size)) for size in (SIZE, outputs, cells))
    operands = {**weights, "input": x, "output_state_in": h, "cell_state_in": c}
    scratch, output_state, cell_state, output = run(Lstm(), operands, data_type)
    for b in range(BATCH):
        states = h[b].tolist(), c[b].tolist()
        expected = lstm_step(weights, x[b].tolist(), states, [])
        expect(output[b], expected[0], data_type)
        expect(cell_state[b], expected[1], data_type)
    np.testing.assert_array_equal(output_state, output)
    assert scratch.shape == (BATCH, 16 if has_everything else 12)


class Linking:
    """An input, an auxiliary input, and what each direction reads of them."""

    def __init__(self, kind: str, rng: np.random.Generator) -> None:
        self.kind = kind
        self.sequence = rng.normal(size=(BATCH, TIME, SIZE))
        self.aux = rng.normal(size=(BATCH, TIME, AUX_SIZE))
        self.aux_size = AUX_SIZE if kind == "cross" else 0
        self.backward = self.aux if kind == "parallel" else self.sequence

    def operands(self) -> Operands:
        """Return the inputs."""
        operands = {"input": self.sequence}
        return operands if self.kind == "none" else {**operands, "aux_input": self.aux}


LINKINGS = pytest.mark.parametrize("kind", ["none", "parallel", "cross"])


@FLOATS
@LINKINGS
def test_bidirectional_rnn_runs_against_time_too(kind: str, data_type: DataType) -> None:
    rng = np.random.default_rng(3)
    linking = Linking(kind, rng)
    aux_size, width = linking.aux_size, linking.backward.shape[2]
    directions = {
        "forward_": (rnn_weights(rng, 3, SIZE, aux_size), linking.sequence),
        "backward_": (rnn_weights(rng, 5, width, aux_size), linking.backward),
    }
    operands, expected, finals = linking.operands(), [], []
    for prefix, (weights, read) in directions.items():
        units = len(weights["bias"])
        h = rng.normal(size=(BATCH, units))
        operands |= prefixed(prefix, {**weights, "hidden_state_in": h})
        out, final = np.zeros((BATCH, TIME, units)), np.zeros((BATCH, units))
        for b in range(BATCH):
            state = h[b].tolist()
            times = range(TIME) if prefix == "forward_" else reversed(range(TIME))
            for t in times:
                aux = linking.aux[b, t].tolist()
                out[b, t] = state = rnn_step(weights, read[b, t].tolist(), state, aux)
            final[b] = state
        expected.append(out)
        finals.append(final)
    operation = BidirectionalSequenceRnn(RecurrentActivation.TANH)
    outputs = run(operation, operands, data_type)
    for actual, wanted in zip(outputs, (*finals, *expected), strict=True):
        expect(actual, wanted, data_type)


@FLOATS
@LINKINGS
def test_bidirectional_lstm_runs_against_time_too(kind: str, data_type: DataType) -> None:
    rng = np.random.default_rng(4)
    linking = Linking(kind, rng)
    aux, width = linking.aux_size, linking.backward.shape[2]
    directions = {
        "forward_": (lstm_weights(rng, 4, 3, SIZE, aux), linking.sequence),
        "backward_": (lstm_weights(rng, 5, 5, width, aux, has_everything=False), linking.backward),
    }
    operands, expected, finals = linking.operands(), [], []
    for prefix, (weights, read) in directions.items():
        cells, outputs = weights["recurrent_to_output_weights"].shape
        h, c = rng.normal(size=(BATCH, outputs)), rng.normal(size=(BATCH, cells))
        operands |= prefixed(prefix, {**weights, "output_state_in": h, "cell_state_in": c})
        out = np.zeros((BATCH, TIME, outputs))
        last_output, last_cell = np.zeros((BATCH, outputs)), np.zeros((BATCH, cells))
        for b in range(BATCH):
            states = h[b].tolist(), c[b].tolist()
            times = range(TIME) if prefix == "forward_" else reversed(range(TIME))
            for t in times:
                seen = linking.aux[b, t].tolist()
                states = lstm_step(weights, read[b, t].tolist(), states, seen)
                out[b, t] = states[0]
            last_output[b], last_cell[b] = states
        expected.append(out)
        finals += [last_output, last_cell]
    outputs_of = run(BidirectionalSequenceLstm(), operands, data_type)
    for actual, wanted in zip(outputs_of, (*finals, *expected), strict=True):
        expect(actual, wanted, data_type)


def bidirectional_operands() -> Operands:
    """Return operands of an LSTM that runs in both directions."""
    rng = np.random.default_rng(5)
    operands: Operands = {"input": rng.normal(size=(BATCH, TIME, SIZE))}
    for prefix in ("forward_", "backward_"):
        states = {"output_state_in": np.zeros((BATCH, 3)), "cell_state_in": np.zeros((BATCH, 3))}
        weights = lstm_weights(rng, 3, 3, has_everything=False)
        operands |= prefixed(prefix, {**weights, **states})
    return operands


@pytest.mark.parametrize("time_major", [False, True])
def test_merged_output_has_the_forward_elements_first(time_major: bool) -> None:
    operands = bidirectional_operands()
    *states, forward, backward = run(BidirectionalSequenceLstm(), operands, DataType.FLOAT32)
    if time_major:
        operands["input"] = operands["input"].swapaxes(0, 1)
    operation = BidirectionalSequenceLstm(merge_outputs=True, time_major=time_major)
    *merged_states, merged = run(operation, operands, DataType.FLOAT32)
    if time_major:
        merged = merged.swapaxes(0, 1)
    np.testing.assert_array_equal(merged, np.concatenate([forward, backward], axis=2))
    for actual, expected in zip(merged_states, states, strict=True):
        np.testing.assert_array_equal(actual, expected)


def test_weights_of_both_directions_may_come_at_run_time() -> None:
    operands = bidirectional_operands()
    operation = BidirectionalSequenceLstm()
    constant = run(operation, operands, DataType.FLOAT32)
    operand_list = [
        tensor(operands[o.name]) if o.name in operands else None for o in operation.inputs
    ]
    for actual, expected in zip(run_operation(operation, operand_list), constant, strict=True):
        np.testing.assert_array_equal(actual, expected)
