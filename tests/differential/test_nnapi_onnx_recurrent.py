"""NNAPI's recurrent operations on float32 against ONNX Runtime's LSTM and RNN."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from armpy_nnapi import OperationCode
from tests.differential.nnapi_lstm_peer import AUX, NORMS, PARTS, STATES, Kind, Memory
from tests.differential.nnapi_peers import (
    FLOAT32,
    Array,
    Draw,
    Expected,
    Input,
    Instance,
    Omitted,
    Tensor,
    boolean,
    check_instances,
    integer,
    number,
)
from tests.differential.onnx_oracle import onnx_or_skip, run_onnx

onnx_or_skip()

_O = OperationCode
ACTIVATIONS = {1: "Relu", 4: "Tanh", 6: "Sigmoid"}
ONNX_GATES = ("input", "output", "forget", "cell")


def real(values: Array) -> Expected:
    """A float32 output."""
    return Expected(FLOAT32, values.astype(np.float64), magnitude=2)


def plain_kind(draw: Draw) -> Kind:
    """An LSTM as ONNX has it."""
    activation = draw.pick(tuple(ACTIVATIONS))
    return Kind(True, draw.chance(), False, False, False, activation, 0.0, 0.0)


def run_lstm(memories: Sequence[Memory], steps: Array) -> list[Array]:
    """Outputs (time, directions, batches, units) and the last states, forwards then backwards."""
    kind = memories[0].kind
    rows: list[list[Array]] = [[], [], [], [], [], []]
    for memory in memories:
        stored = {name: tensor.stored for name, tensor in memory.tensors.items()}
        units = memory.sizes[0]
        biases = [stored[f"{gate}_bias"] for gate in ONNX_GATES]
        peepholes = [
            stored.get(f"cell_to_{gate}", np.zeros(units, np.float32)) for gate in ONNX_GATES[:3]
        ]
        parts = (
            np.concatenate([stored[f"input_to_{gate}"] for gate in ONNX_GATES]),
            np.concatenate([stored[f"recurrent_to_{gate}"] for gate in ONNX_GATES]),
            np.concatenate([*biases, np.zeros(4 * units, np.float32)]),
            stored["output_state"],
            stored["cell_state"],
            np.concatenate(peepholes),
        )
        for row, array in zip(rows, parts, strict=True):
            row.append(array)
    weights, recurrent, bias, outputs, cells, peephole = (np.stack(row) for row in rows)
    activation = ACTIVATIONS[kind.activation]
    return run_onnx(
        "LSTM",
        [steps, weights, recurrent, bias, None, outputs, cells, peephole],
        outputs=("sequence", "output_state", "cell_state"),
        hidden_size=memories[0].sizes[0],
        direction="bidirectional" if len(memories) > 1 else "forward",
        activations=["Sigmoid", activation, activation] * len(memories),
    )


def layers(draw: Draw, count: int) -> tuple[list[Memory], Tensor, Tensor, bool]:
    """LSTMs of as many units, a sequence as NNAPI takes it and as ONNX does, and its layout."""
    kind, num_inputs, time_major = plain_kind(draw), draw.size(3), draw.chance()
    num_steps, batches = draw.size(3), draw.size(3)
    memories = [Memory.drawn(draw, FLOAT32, kind, num_inputs, batches, aux=False)]
    while len(memories) < count:
        other = Memory.drawn(draw, FLOAT32, kind, num_inputs, batches, aux=False)
        if other.sizes == memories[0].sizes:
            memories.append(other)
    steps = draw.tensor(FLOAT32, (num_steps, batches, num_inputs), -1, 1)
    source = steps if time_major else Tensor(FLOAT32, np.ascontiguousarray(swapped(steps.stored)))
    return memories, source, steps, time_major


def swapped(values: Array) -> Array:
    """Time and batch the other way round."""
    return np.swapaxes(values, 0, 1)


def laid_out(values: Array, time_major: bool) -> Array:
    """A time-major sequence in the layout that is asked for."""
    return np.ascontiguousarray(values if time_major else swapped(values))


def test_lstm() -> None:
    def make(draw: Draw) -> Instance:
        memories, _, steps, _ = layers(draw, 1)
        first = Tensor(FLOAT32, steps.stored[0])
        _, outputs, cells = run_lstm(memories, steps.stored[:1])
        kind = memories[0].kind
        inputs = [first, *memories[0].inputs((*PARTS, *STATES), FLOAT32)]
        inputs += [integer(kind.activation), number(0.0), number(0.0)]
        scratch = np.zeros((len(first.stored), 4 * memories[0].sizes[0]))
        ignored = Expected(FLOAT32, scratch, is_compared=False)
        return Instance(_O.LSTM, inputs, [ignored, *map(real, (outputs[0], cells[0], outputs[0]))])

    check_instances(make)


def test_unidirectional_sequence_lstm() -> None:
    def make(draw: Draw) -> Instance:
        memories, source, steps, time_major = layers(draw, 1)
        sequence, outputs, cells = run_lstm(memories, steps.stored)
        kind = memories[0].kind
        inputs = [source, *memories[0].inputs((*PARTS, *STATES), FLOAT32)]
        inputs += [integer(kind.activation), number(0.0), number(0.0), boolean(time_major)]
        inputs += memories[0].inputs(NORMS, FLOAT32)
        expected = (laid_out(sequence[:, 0], time_major), outputs[0], cells[0])
        return Instance(_O.UNIDIRECTIONAL_SEQUENCE_LSTM, inputs, [*map(real, expected)])

    check_instances(make)


def test_bidirectional_sequence_lstm() -> None:
    def make(draw: Draw) -> Instance:
        memories, source, steps, time_major = layers(draw, 2)
        sequence, outputs, cells = run_lstm(memories, steps.stored)
        inputs: list[Input] = [source]
        for part in (PARTS, STATES):
            for memory in memories:
                inputs += memory.inputs(part, FLOAT32)
        inputs += [Omitted(FLOAT32)] * (1 + 2 * len(AUX))
        inputs += [integer(memories[0].kind.activation), number(0.0), number(0.0)]
        inputs += [boolean(False), boolean(time_major), *[Omitted(FLOAT32)] * (2 * len(NORMS))]
        expected = [laid_out(sequence[:, i], time_major) for i in range(2)]
        expected += [outputs[0], cells[0], outputs[1], cells[1]]
        return Instance(_O.BIDIRECTIONAL_SEQUENCE_LSTM, inputs, [*map(real, expected)])

    check_instances(make)


@pytest.mark.parametrize("num_directions", [1, 2])
def test_sequence_rnn(num_directions: int) -> None:
    def make(draw: Draw) -> Instance:
        num_inputs, batches, units = draw.size(3), draw.size(3), draw.size(4)
        code, time_major = draw.pick(tuple(ACTIVATIONS)), draw.chance()
        steps = draw.tensor(FLOAT32, (draw.size(3), batches, num_inputs), -1, 1)
        shapes = ((units, num_inputs), (units, units), (units,), (batches, units))
        networks = [
            [draw.tensor(FLOAT32, shape, -1, 1) for shape in shapes] for _ in range(num_directions)
        ]
        weights, recurrent, bias, states = (
            np.stack([network[i].stored for network in networks]) for i in range(len(shapes))
        )
        sequence, last = run_onnx(
            "RNN",
            [steps.stored, weights, recurrent, np.pad(bias, ((0, 0), (0, units))), None, states],
            outputs=("sequence", "state"),
            hidden_size=units,
            direction="bidirectional" if num_directions > 1 else "forward",
            activations=[ACTIVATIONS[code]] * num_directions,
        )
        source = Tensor(FLOAT32, laid_out(steps.stored, time_major))
        inputs = [source, *(tensor for network in networks for tensor in network)]
        expected = [laid_out(sequence[:, i], time_major) for i in range(num_directions)]
        outputs = [*map(real, (*expected, *last))]
        if num_directions == 1:
            arguments: list[Input] = [integer(code), integer(time_major)]
            return Instance(_O.UNIDIRECTIONAL_SEQUENCE_RNN, [*inputs, *arguments], outputs)
        arguments = [*[Omitted(FLOAT32)] * 3, integer(code), boolean(time_major), boolean(False)]
        return Instance(_O.BIDIRECTIONAL_SEQUENCE_RNN, [*inputs, *arguments], outputs)

    check_instances(make)
