"""Single steps, sequences and both directions against LiteRT's reference kernels."""

from __future__ import annotations

from typing import Any

import pytest

from armpy.ops import (
    BidirectionalSequenceLstm,
    BidirectionalSequenceRnn,
    Lstm,
    RecurrentActivation,
    Rnn,
    UnidirectionalSequenceRnn,
)
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_testing.litert_oracle import litert_or_skip
from tests.differential.recurrent_case import ACTIVATIONS, Array, Case, Draw, compare, zeros

NUM_CASES = 100

Operands = dict[str, tuple[TensorInfo, Array]]


def info(*shape: int) -> TensorInfo:
    """Return the info of a float32 tensor."""
    return TensorInfo(shape, DataType.FLOAT32)


def sequence(draw: Draw, time_major: bool, batch: int, time: int, size: int) -> tuple[int, ...]:
    """Return the shape of a sequence."""
    return (time, batch, size) if time_major else (batch, time, size)


def rnn_operands(draw: Draw, prefix: str, batch: int, size: int, units: int) -> Operands:
    """Return weights and state of one recurrent network."""
    return {
        f"{prefix}weights": draw.floats(units, size),
        f"{prefix}recurrent_weights": draw.floats(units, units),
        f"{prefix}bias": draw.floats(units),
        f"{prefix}hidden_state_in": zeros(info(batch, units)),
    }


def rnn(draw: Draw) -> Case:
    """Return a random Rnn."""
    batch, size, units = (draw.size(n) for n in (3, 7, 9))
    activation = list(ACTIVATIONS)[draw.size(5) - 1]
    operands = rnn_operands(draw, "", batch, size, units) | {"input": draw.floats(batch, size)}
    options = {"fused_activation_function": ACTIVATIONS[activation]}
    outputs = [info(batch, units)]
    return Case(Rnn(activation), "RNN", options, operands, outputs, ("hidden_state_in",))


def sequence_rnn(draw: Draw) -> Case:
    """Return a random UnidirectionalSequenceRnn."""
    batch, time, size, units = (draw.size(n) for n in (3, 4, 7, 9))
    activation, time_major = list(ACTIVATIONS)[draw.size(5) - 1], draw.chance()
    operands = rnn_operands(draw, "", batch, size, units)
    operands["input"] = draw.floats(*sequence(draw, time_major, batch, time, size))
    options = {"fused_activation_function": ACTIVATIONS[activation], "time_major": time_major}
    return Case(
        UnidirectionalSequenceRnn(activation, time_major),
        "UNIDIRECTIONAL_SEQUENCE_RNN",
        options,
        operands,
        [info(*sequence(draw, time_major, batch, time, units))],
        ("hidden_state_in",),
    )


def direction_outputs(shape: tuple[int, ...], sizes: list[int], merges: bool) -> list[TensorInfo]:
    """Return the infos of the sequences that come out."""
    lead = shape[:2]
    return [info(*lead, sum(sizes))] if merges else [info(*lead, size) for size in sizes]


def bidirectional_rnn(draw: Draw) -> Case:
    """Return a random BidirectionalSequenceRnn, with each way of linking."""
    batch, time, size = (draw.size(n) for n in (3, 4, 7))
    units = [draw.size(9), draw.size(9)]
    activation = list(ACTIVATIONS)[draw.size(5) - 1]
    merges, has_aux, has_aux_weights = draw.chance(), draw.chance(), draw.chance()
    # LiteRT's backward direction reads the auxiliary input in place of the other one only if
    # time-major. NNAPI's vectors have it in both layouts, and so does armpy.
    time_major = draw.chance() or (has_aux and not has_aux_weights)
    # LiteRT takes the auxiliary input to be as wide as the input.
    shape = sequence(draw, time_major, batch, time, size)
    operands = {
        "input": draw.floats(*shape),
        **rnn_operands(draw, "forward_", batch, size, units[0]),
        **rnn_operands(draw, "backward_", batch, size, units[1]),
    }
    if has_aux:
        operands["aux_input"] = draw.floats(*shape)
    if has_aux and has_aux_weights:
        operands["forward_aux_weights"] = draw.floats(units[0], size)
        operands["backward_aux_weights"] = draw.floats(units[1], size)
    return Case(
        BidirectionalSequenceRnn(activation, time_major, merges),
        "BIDIRECTIONAL_SEQUENCE_RNN",
        {
            "fused_activation_function": ACTIVATIONS[activation],
            "time_major": time_major,
            "merge_outputs": merges,
        },
        operands,
        direction_outputs(shape, units, merges),
        ("forward_hidden_state_in", "backward_hidden_state_in"),
    )


class LstmDirection:
    """Random sizes and variant of one LSTM without layer normalisation."""

    def __init__(self, draw: Draw, batch: int, cells: int, outputs: int) -> None:
        self.draw, self.batch, self.cells, self.outputs = draw, batch, cells, outputs
        self.has_projection = cells != outputs or draw.chance()
        self.has_input_gate, self.has_peephole = draw.chance(), draw.chance()
        self.gates = ["input", "forget", "cell", "output"][not self.has_input_gate :]

    def operands(self, prefix: str, size: int, aux_size: int = 0) -> Operands:
        """Return weights and states."""
        draw, cells = self.draw, self.cells
        operands: Operands = {}
        for gate in self.gates:
            operands[f"input_to_{gate}_weights"] = draw.floats(cells, size)
            operands[f"recurrent_to_{gate}_weights"] = draw.floats(cells, self.outputs)
            operands["cell_bias" if gate == "cell" else f"{gate}_gate_bias"] = draw.floats(cells)
            if self.has_peephole and gate != "cell":
                operands[f"cell_to_{gate}_weights"] = draw.floats(cells)
            if aux_size:
                operands[f"aux_to_{gate}_weights"] = draw.floats(cells, aux_size)
        if self.has_projection:
            operands["projection_weights"] = draw.floats(self.outputs, cells)
            operands["projection_bias"] = draw.floats(self.outputs)
        operands["output_state_in"] = zeros(info(self.batch, self.outputs))
        operands["cell_state_in"] = zeros(info(self.batch, cells))
        return {f"{prefix}{name}": operand for name, operand in operands.items()}


def lstm(draw: Draw) -> Case:
    """Return a random Lstm."""
    batch, size = draw.size(3), draw.size(7)
    direction = LstmDirection(draw, batch, *lstm_sizes(draw))
    activation = lstm_activation(draw)
    cell_clip, projection_clip = clips(draw)
    return Case(
        Lstm(activation, cell_clip, projection_clip),
        "LSTM",
        {
            "fused_activation_function": ACTIVATIONS[activation],
            "cell_clip": cell_clip,
            "proj_clip": projection_clip,
        },
        {"input": draw.floats(batch, size), **direction.operands("", size)},
        [info(batch, direction.outputs)],
        ("output_state_in", "cell_state_in"),
    )


def bidirectional_lstm(draw: Draw) -> Case:
    """Return a random BidirectionalSequenceLstm, with each way of linking."""
    batch, time, size = (draw.size(n) for n in (3, 4, 7))
    # LiteRT takes both directions to be of the same sizes.
    cells, outputs = lstm_sizes(draw)
    forward, backward = (LstmDirection(draw, batch, cells, outputs) for _ in range(2))
    activation, time_major = lstm_activation(draw), draw.chance()
    # LiteRT writes batch-major merged outputs over each other if there are several.
    merges = draw.chance() and (time_major or batch == 1)
    cell_clip, projection_clip = clips(draw)
    has_aux, has_aux_weights = draw.chance(), draw.chance()
    weighed = size if has_aux and has_aux_weights else 0
    shape = sequence(draw, time_major, batch, time, size)
    operands = {
        "input": draw.floats(*shape),
        **forward.operands("forward_", size, weighed),
        **backward.operands("backward_", size, weighed),
    }
    if has_aux:
        operands["aux_input"] = draw.floats(*shape)
    return Case(
        BidirectionalSequenceLstm(activation, cell_clip, projection_clip, merges, time_major),
        "BIDIRECTIONAL_SEQUENCE_LSTM",
        {
            "fused_activation_function": ACTIVATIONS[activation],
            "cell_clip": cell_clip,
            "proj_clip": projection_clip,
            "merge_outputs": merges,
            "time_major": time_major,
        },
        operands,
        direction_outputs(shape, [forward.outputs, backward.outputs], merges),
        tuple(
            f"{prefix}{state}_state_in"
            for prefix in ("forward_", "backward_")
            for state in ("output", "cell")
        ),
        num_inputs=48,
    )


def lstm_sizes(draw: Draw) -> tuple[int, int]:
    """Return numbers of cells and outputs, which are the same half of the time."""
    cells = draw.size(9)
    return cells, draw.size(cells) if draw.chance() else cells


def lstm_activation(draw: Draw) -> RecurrentActivation:
    """Return any activation but NONE, with which LiteRT lets the candidate out."""
    return list(ACTIVATIONS)[draw.size(4)]


def clips(draw: Draw) -> tuple[float, float]:
    """Return limits of cell state and projection."""
    return float(draw.rng.choice([0.0, 0.5, 3.0])), float(draw.rng.choice([0.0, 0.3]))


@pytest.mark.sampled(7)
@pytest.mark.parametrize("make", [rnn, sequence_rnn, bidirectional_rnn, lstm, bidirectional_lstm])
def test_random_instances_agree_with_litert(make: Any) -> None:  # Any: the five functions above
    """Floats agree within the float tolerance of the largest element."""
    litert_or_skip()
    for seed in range(NUM_CASES):
        case = make(Draw(seed))
        try:
            compare(case, invocations=1 + seed % 3)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {case.operation}\n{error}") from error
