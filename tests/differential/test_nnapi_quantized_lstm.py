"""NNAPI's quantised LSTMs against the same networks in real arithmetic.

Their gates are 16-bit fixed point with 12 fraction bits, so that results differ from real
arithmetic by a few steps.
"""

from __future__ import annotations

import numpy as np
import pytest

from armpy_nnapi import OperandCode, OperationCode
from tests.differential.nnapi_lstm_peer import GATES
from tests.differential.nnapi_peers import (
    INT32,
    SIGNED,
    SYMMETRIC,
    SYMMETRIC16,
    UNSIGNED,
    Draw,
    Expected,
    Input,
    Instance,
    Omitted,
    Reals,
    Tensor,
    check_instances,
    integer,
    limits_of,
    number,
)

_O = OperationCode


def sigmoid(x: Reals) -> Reals:
    """1 / (1 + exp(-x)) of each element."""
    return np.asarray(1 / (1 + np.exp(-x)))


def test_quantized_16bit_lstm() -> None:
    def make(draw: Draw) -> Instance:
        batches, num_inputs, units = draw.size(3), draw.size(4), draw.size(4)
        scale, zero_point = float(np.float32(draw.number(0.002, 0.02))), draw.size(255, 0)
        matrices = [
            draw.tensor(UNSIGNED, (units, columns), scale=scale, zero_point=zero_point)
            for columns in (num_inputs, units)
            for _ in GATES
        ]
        bias_scale = float(np.float32(scale / 128))
        biases = [
            Tensor(INT32, draw.tensor(INT32, (units,), -5000, 5000).stored, bias_scale)
            for _ in GATES
        ]
        source = draw.tensor(UNSIGNED, (batches, num_inputs), scale=1 / 128, zero_point=128)
        cells = draw.tensor(SYMMETRIC16, (batches, units), scale=2.0**-11)
        outputs = draw.tensor(UNSIGNED, (batches, units), scale=1 / 128, zero_point=128)
        # As published vectors have it: the recurrent weights' first columns meet the input.
        joined = np.concatenate([source.real, outputs.real], 1)
        gates = [
            joined @ np.concatenate([matrices[4 + g].real, matrices[g].real], 1).T
            + biases[g].stored * bias_scale
            for g in range(len(GATES))
        ]
        # Gates are 16 bits with 12 fraction bits.
        enter, forget, cell, out = (np.clip(gate, -8, 8 - 2**-12) for gate in gates)
        new = sigmoid(enter) * np.tanh(cell) + sigmoid(forget) * cells.real
        result = sigmoid(out) * np.tanh(new)
        expected = [
            # The state has up to 2**15 steps, and sigmoids 15 bits.
            Expected(SYMMETRIC16, new, cells.scale, 0, magnitude=8),
            Expected(UNSIGNED, result, outputs.scale, 128),
        ]
        return Instance(
            _O.QUANTIZED_16BIT_LSTM, [source, *matrices, *biases, cells, outputs], expected
        )

    check_instances(make)


def _weights(draw: Draw, code: OperandCode, *shape: int, largest: float = 1.0) -> Tensor:
    """Weights up to about a number."""
    limit = limits_of(code)[1]
    return draw.tensor(code, shape, scale=largest / limit * draw.rng.uniform(0.5, 1))


def _offsets(draw: Draw, length: int, scale: float) -> Tensor:
    """A bias that counts in steps of a scale."""
    stored = np.round(draw.rng.uniform(-1, 1, length) / scale).astype(np.int32)
    return Tensor(INT32, stored, float(np.float32(scale)))


def _normalized(total: Reals, weights: Tensor, offsets: Reals) -> Reals:
    """Layer normalisation of the units (batches, units)."""
    mean, spread = total.mean(1, keepdims=True), total.std(1, keepdims=True)
    return np.asarray((total - mean) / spread * weights.real + offsets)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("projects", [False, True], ids=["plain", "projection"])
@pytest.mark.parametrize("is_normal", [False, True], ids=["plain", "layer_norm"])
def test_quantized_lstm(is_normal: bool, projects: bool) -> None:
    def make(draw: Draw) -> Instance:
        batches, num_inputs, units = draw.size(2), draw.size(4), draw.size(6, 3)
        num_outputs = draw.size(3) if projects else units
        has_input_gate = draw.chance()
        gates = GATES if has_input_gate else GATES[1:]
        source = draw.tensor(SIGNED, (batches, num_inputs), -1, 1, zero_point=draw.size(20, -20))
        hidden = draw.tensor(SIGNED, (batches, num_outputs), -1, 1, zero_point=0)
        cells = draw.tensor(SYMMETRIC16, (batches, units), scale=2.0**-12)
        first = {g: _weights(draw, SYMMETRIC, units, num_inputs) for g in gates}
        again = {g: _weights(draw, SYMMETRIC, units, num_outputs) for g in gates}
        norms = {g: _weights(draw, SYMMETRIC16, units) for g in gates}
        biases = {g: _offsets(draw, units, norms[g].scale * 2**-10) for g in gates}
        real: dict[str, Reals] = {}
        for g in gates:
            total = source.real @ first[g].real.T + hidden.real @ again[g].real.T
            if is_normal:
                total = _normalized(total, norms[g], biases[g].stored * biases[g].scale)
            real[g] = np.clip(total, -8, 8 - 2**-12)
        forget = sigmoid(real["forget"])
        keep = sigmoid(real["input"]) if has_input_gate else 1 - forget
        new = forget * cells.real + keep * np.tanh(real["cell"])
        cell_clip = draw.pick((0.0, 2.0))
        new = np.clip(new, -cell_clip, cell_clip) if cell_clip else new
        result = sigmoid(real["output"]) * np.tanh(new)
        projection: list[Input] = [Omitted(SYMMETRIC), Omitted(INT32)]
        hidden_scale, projection_clip = hidden.scale, 0.0
        if projects:
            hidden_scale = 1 / 128
            result = np.clip(result, -1, 127 / 128)
            matrix = _weights(draw, SYMMETRIC, num_outputs, units)
            offsets = _offsets(draw, num_outputs, matrix.scale * hidden_scale)
            result = result @ matrix.real.T + offsets.stored * (matrix.scale * hidden_scale)
            projection = [matrix, offsets]
        none8, none16, none32 = Omitted(SYMMETRIC), Omitted(SYMMETRIC16), Omitted(INT32)
        inputs: list[Input] = [source]
        inputs += [first.get(g, none8) for g in GATES] + [again.get(g, none8) for g in GATES]
        inputs += [none16] * 3 + [biases.get(g, none32) for g in GATES]
        inputs += [*projection, hidden, cells]
        inputs += [norms.get(g, none16) if is_normal else none16 for g in GATES]
        scales = [2.0**-12] * len(GATES)
        inputs += [number(cell_clip), number(projection_clip), *(number(s) for s in scales)]
        inputs += [integer(0), number(hidden_scale)]
        # A projection's input is rounded before it is summed.
        steps = 2.0 if projects else 1.0
        output = Expected(SIGNED, result, hidden.scale, hidden.zero_point, steps)
        # One step of a gate is 2**-12, the cell state's is the same; the state goes up to 8.
        state = Expected(SYMMETRIC16, new, cells.scale, 0, magnitude=12)
        return Instance(_O.QUANTIZED_LSTM, inputs, [output, state, output])

    check_instances(make)
