"""NNAPI's recurrent operations on floats against real arithmetic, step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from armpy_nnapi import OperandCode, OperationCode
from tests.differential.nnapi_lstm_peer import ACTIVATIONS, AUX, NORMS, PARTS, STATES, Kind, Memory
from tests.differential.nnapi_peers import (
    FLOAT16,
    FLOATS,
    Draw,
    Expected,
    Input,
    Instance,
    Omitted,
    Reals,
    Tensor,
    boolean,
    check_instances,
    integer,
    names,
    number,
)

_O = OperationCode
Network = tuple[list[Tensor], Callable[[Sequence[Reals], Sequence[Reals] | None], list[Reals]]]


def output(kind: OperandCode, real: Reals, *, is_compared: bool = True) -> Expected:
    """An output; errors of float16 add up from step to step."""
    magnitude = 4.0 if kind is FLOAT16 else 2.0
    return Expected(kind, np.asarray(real, np.float64), 0.0, 0, magnitude, is_compared)


def clips(kind: OperandCode, lstm: Kind) -> list[Input]:
    """Activation and clips of an LSTM."""
    limits = (lstm.cell_clip, lstm.projection_clip)
    return [integer(lstm.activation), *(number(limit, kind) for limit in limits)]


@pytest.mark.parametrize("kind", FLOATS, ids=names)
def test_lstm(kind: OperandCode) -> None:
    def make(draw: Draw) -> Instance:
        lstm, batches, num_inputs = Kind.drawn(draw), draw.size(2), draw.size(3)
        memory = Memory.drawn(draw, kind, lstm, num_inputs, batches, aux=False)
        source = draw.tensor(kind, (batches, num_inputs), -1, 1)
        (result,), outputs, cells = memory.sequence([source.real])
        inputs = [source, *memory.inputs((*PARTS, *STATES), kind), *clips(kind, lstm)]
        if lstm.has_norm or draw.chance():
            inputs += memory.inputs(NORMS, kind)
        scratch = np.zeros((batches, (4 if lstm.has_input_gate else 3) * memory.sizes[0]))
        expected = [output(kind, real) for real in (outputs, cells, result)]
        return Instance(_O.LSTM, inputs, [output(kind, scratch, is_compared=False), *expected])

    check_instances(make)


def time_axis(steps: Sequence[Reals], time_major: bool) -> Reals:
    """Time steps as one tensor."""
    return np.stack(steps, 0 if time_major else 1)


def sequence_of(source: Tensor, time_major: bool) -> list[Reals]:
    """Time steps of a tensor."""
    return list(source.real if time_major else np.moveaxis(source.real, 1, 0))


def sequence_tensor(
    draw: Draw, kind: OperandCode, num_inputs: int, *, time_major: bool
) -> tuple[Tensor, int]:
    """A sequence, and its number of batch items."""
    shape = (draw.size(3), draw.size(3), num_inputs)
    return draw.tensor(kind, shape, -1, 1), shape[1 if time_major else 0]


@pytest.mark.parametrize("kind", FLOATS, ids=names)
def test_unidirectional_sequence_lstm(kind: OperandCode) -> None:
    def make(draw: Draw) -> Instance:
        lstm, num_inputs, time_major = Kind.drawn(draw), draw.size(3), draw.chance()
        source, batches = sequence_tensor(draw, kind, num_inputs, time_major=time_major)
        memory = Memory.drawn(draw, kind, lstm, num_inputs, batches, aux=False)
        results, outputs, cells = memory.sequence(sequence_of(source, time_major))
        inputs = [source, *memory.inputs((*PARTS, *STATES), kind), *clips(kind, lstm)]
        inputs += [boolean(time_major), *memory.inputs(NORMS, kind)]
        expected = [output(kind, real) for real in (time_axis(results, time_major), outputs, cells)]
        return Instance(_O.UNIDIRECTIONAL_SEQUENCE_LSTM, inputs, expected[: draw.pick((1, 3))])

    check_instances(make)


def both(
    kind: OperandCode,
    forward: list[Reals],
    backward: list[Reals],
    *,
    time_major: bool,
    merges: bool,
) -> list[Expected]:
    """Sequences of both directions, as one output or two; the backward one is back in order."""
    sequences = [time_axis(steps, time_major) for steps in (forward, backward[::-1])]
    return [
        output(kind, real) for real in ([np.concatenate(sequences, 2)] if merges else sequences)
    ]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", FLOATS, ids=names)
def test_bidirectional_sequence_lstm(kind: OperandCode) -> None:
    def make(draw: Draw) -> Instance:
        lstm, num_inputs, time_major = Kind.drawn(draw), draw.size(3), draw.chance()
        linking, merges = draw.pick(("none", "parallel", "cross")), draw.chance()
        source, batches = sequence_tensor(draw, kind, num_inputs, time_major=time_major)
        crosses = linking == "cross"
        memories = [
            Memory.drawn(draw, kind, lstm, num_inputs, batches, aux=crosses) for _ in range(2)
        ]
        aux = draw.tensor(kind, source.shape, -1, 1)
        steps, beside = sequence_of(source, time_major), sequence_of(aux, time_major)
        forward = memories[0].sequence(steps, beside if crosses else None)
        back = (beside if linking == "parallel" else steps)[::-1]
        backward = memories[1].sequence(back, beside[::-1] if crosses else None)
        inputs: list[Input] = [source]
        for part in (PARTS, STATES):
            for memory in memories:
                inputs += memory.inputs(part, kind)
        inputs.append(Omitted(kind) if linking == "none" else aux)
        for memory in memories:
            inputs += memory.inputs(AUX, kind)
        inputs += [*clips(kind, lstm), boolean(merges), boolean(time_major)]
        for memory in memories:
            inputs += memory.inputs(NORMS, kind)
        outputs = both(kind, forward[0], backward[0], time_major=time_major, merges=merges)
        if draw.chance():
            outputs += [output(kind, real) for real in (*forward[1:], *backward[1:])]
        return Instance(_O.BIDIRECTIONAL_SEQUENCE_LSTM, inputs, outputs)

    check_instances(make)


class Rnn:
    """A fully connected recurrent network with random weights."""

    def __init__(
        self, draw: Draw, kind: OperandCode, num_inputs: int, batches: int, activation: int
    ) -> None:
        units = draw.size(4)
        shapes = ((units, num_inputs), (units, units), (units,), (batches, units))
        self.tensors = [draw.tensor(kind, shape, -1, 1) for shape in shapes]
        self.aux_weights = draw.tensor(kind, shapes[0], -1, 1)
        self.activation = activation

    def sequence(
        self, steps: Sequence[Reals], aux: Sequence[Reals] | None = None
    ) -> tuple[list[Reals], Reals]:
        """Outputs of each time step, and the last state."""
        weights, recurrent, bias, state = (tensor.real for tensor in self.tensors)
        function, outputs = ACTIVATIONS[self.activation], []
        for i, step in enumerate(steps):
            total = step @ weights.T + state @ recurrent.T + bias
            if aux is not None:
                total = total + aux[i] @ self.aux_weights.real.T
            state = np.array([[function(float(x)) for x in row] for row in total])
            outputs.append(state)
        return outputs, state


RNN_ACTIVATIONS = tuple(ACTIVATIONS)


@pytest.mark.parametrize("kind", FLOATS, ids=names)
def test_rnn(kind: OperandCode) -> None:
    def make(draw: Draw) -> Instance:
        num_inputs, batches, activation = draw.size(4), draw.size(3), draw.pick(RNN_ACTIVATIONS)
        rnn = Rnn(draw, kind, num_inputs, batches, activation)
        source = draw.tensor(kind, (batches, num_inputs), -1, 1)
        _, state = rnn.sequence([source.real])
        inputs = [source, *rnn.tensors, integer(activation)]
        return Instance(_O.RNN, inputs, [output(kind, state)] * 2)

    check_instances(make)


@pytest.mark.parametrize("kind", FLOATS, ids=names)
def test_unidirectional_sequence_rnn(kind: OperandCode) -> None:
    def make(draw: Draw) -> Instance:
        num_inputs, activation, time_major = draw.size(4), draw.pick(RNN_ACTIVATIONS), draw.chance()
        source, batches = sequence_tensor(draw, kind, num_inputs, time_major=time_major)
        rnn = Rnn(draw, kind, num_inputs, batches, activation)
        steps, state = rnn.sequence(sequence_of(source, time_major))
        inputs = [source, *rnn.tensors, integer(activation), integer(time_major)]
        outputs = [output(kind, time_axis(steps, time_major)), output(kind, state)]
        return Instance(_O.UNIDIRECTIONAL_SEQUENCE_RNN, inputs, outputs[: draw.size(2)])

    check_instances(make)


@pytest.mark.parametrize("kind", FLOATS, ids=names)
def test_bidirectional_sequence_rnn(kind: OperandCode) -> None:
    def make(draw: Draw) -> Instance:
        num_inputs, activation, time_major = draw.size(4), draw.pick(RNN_ACTIVATIONS), draw.chance()
        linking, merges = draw.pick(("none", "parallel", "cross")), draw.chance()
        source, batches = sequence_tensor(draw, kind, num_inputs, time_major=time_major)
        networks = [Rnn(draw, kind, num_inputs, batches, activation) for _ in range(2)]
        aux, crosses = draw.tensor(kind, source.shape, -1, 1), linking == "cross"
        steps, beside = sequence_of(source, time_major), sequence_of(aux, time_major)
        forward = networks[0].sequence(steps, beside if crosses else None)
        back = (beside if linking == "parallel" else steps)[::-1]
        backward = networks[1].sequence(back, beside[::-1] if crosses else None)
        inputs: list[Input] = [source, *networks[0].tensors, *networks[1].tensors]
        inputs.append(Omitted(kind) if linking == "none" else aux)
        inputs += [n.aux_weights if crosses else Omitted(kind) for n in networks]
        inputs += [integer(activation), boolean(time_major), boolean(merges)]
        outputs = both(kind, forward[0], backward[0], time_major=time_major, merges=merges)
        if draw.chance():
            outputs += [output(kind, forward[1]), output(kind, backward[1])]
        return Instance(_O.BIDIRECTIONAL_SEQUENCE_RNN, inputs, outputs)

    check_instances(make)


@pytest.mark.parametrize("kind", FLOATS, ids=names)
def test_svdf(kind: OperandCode) -> None:
    def make(draw: Draw) -> Instance:
        batches, num_inputs, memory = draw.size(2), draw.size(4), draw.size(4)
        units, rank, activation = draw.size(3), draw.size(3), draw.pick(RNN_ACTIVATIONS)
        filters = units * rank
        source = draw.tensor(kind, (batches, num_inputs), -1, 1)
        features = draw.tensor(kind, (filters, num_inputs), -1, 1)
        times = draw.tensor(kind, (filters, memory), -1, 1)
        bias = draw.tensor(kind, (units,), -1, 1)
        state = draw.tensor(kind, (batches, filters * memory), -1, 1)
        has_bias = draw.chance()
        real, after = np.zeros((batches, units)), np.zeros((batches, filters, memory))
        for b, u in np.ndindex(batches, units):
            total = float(bias.real[u]) if has_bias else 0.0
            for f in range(u * rank, (u + 1) * rank):
                entries = state.real[b, f * memory : (f + 1) * memory].tolist()
                entries[-1] = float(source.real[b] @ features.real[f])
                total += sum(e * float(t) for e, t in zip(entries, times.real[f], strict=True))
                after[b, f] = [*entries[1:], 0.0]
            real[b, u] = ACTIVATIONS[activation](total)
        inputs: list[Input] = [source, features, times, bias if has_bias else Omitted(kind), state]
        inputs += [integer(rank), integer(activation)]
        outputs = [output(kind, after.reshape(batches, -1)), output(kind, real)]
        return Instance(_O.SVDF, inputs, outputs)

    check_instances(make)
