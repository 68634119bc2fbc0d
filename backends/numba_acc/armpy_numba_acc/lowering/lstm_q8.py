"""Lowers long short-term memories in integers."""

from __future__ import annotations

import math

import numpy as np

from armpy import numerics
from armpy.graph import Layer
from armpy.ops import UnidirectionalSequenceLstm
from armpy.ops.operation import Array, OperandInfos
from armpy.tensor import TensorInfo
from armpy_numba_acc.lowering.lstm_f32 import BIASES, GATES, constants_of, state_inputs
from armpy_numba_acc.lowering.patches import input_of
from armpy_numba_acc.machine.kernel import Kernel
from armpy_numba_acc.packing.gates import sigmoid_table, tanh_table
from armpy_numba_acc.packing.quantized import zero_point_of
from armpy_numba_acc.program.emitter import Argument, Emitter

_GATE_SCALE = np.float32(2.0**-12)

_PARTS = {
    "cell_to_output_weights": "a peephole",
    "output_layer_norm_weights": "layer normalisation",
    "projection_weights": "a projection",
}
"""What is not there in integers, by an operand that it has."""


def check_q8(operation: UnidirectionalSequenceLstm, inputs: OperandInfos) -> str:
    """Gates alone."""
    for operand, info in zip(operation.inputs, inputs, strict=False):
        if info is not None and operand.name in _PARTS:
            return f"{_PARTS[operand.name]} is not supported in integers"
    return ""


def lower_q8(emit: Emitter, layer: Layer) -> None:
    """Run over time; integers are those of CpuRef.

    References
    ----------
    TFLite ``kernels/unidirectional_sequence_lstm.cc`` (``PopulateQuantizedLstmParams8x8_16``).
    """
    operation, source = layer.operation, input_of(layer, 0)
    assert isinstance(operation, UnidirectionalSequenceLstm)
    infos = {
        operand.name: value.info
        for operand, value in zip(operation.inputs, layer.inputs, strict=False)
        if value is not None
    }
    weights = constants_of(layer)
    gates = [gate for gate in GATES if f"input_to_{gate}_weights" in weights]
    cells, size = weights["input_to_output_weights"].shape
    exponent = round(math.log2(infos["cell_state_in"].scale))
    output_state, cell_state = (emit.source(input_of(layer, n)) for n in state_inputs(layer))
    arguments: list[Argument] = [emit.source(source), output_state, cell_state]
    arguments += [emit.target(value) for value in layer.outputs]
    arguments += [
        emit.constant(array)
        for array in (
            _matrix(weights, gates),
            _biases(weights, gates, infos),
            _multipliers(infos, gates),
            sigmoid_table(),
            tanh_table(3),
            tanh_table(15 + exponent),
        )
    ]
    arguments.append(emit.scratch(2 * len(gates) * cells))
    n, t = source.info.known_shape[:2]
    rows_apart = (t, 1)
    if operation.time_major:
        n, t = t, n
        rows_apart = (1, n)
    to_hidden = np.float32(2.0**-15 / float(np.float32(operation.hidden_state_scale)) * 2.0**-15)
    arguments += [n, t, *rows_apart, size, cells, 30 + exponent]
    arguments += [_stored_clip(operation.cell_clip, infos["cell_state_in"].scale)]
    # A signed tensor's elements have their top bit flipped.
    arguments += [
        *numerics.quantize_multiplier(float(to_hidden)),
        operation.hidden_state_zero_point + 128,
    ]
    macs = len(gates) * cells * (size + cells)
    kernel = Kernel("lstm_q8", (int("input" in gates),))
    emit.command(kernel, arguments, layer.name, num_operations=2 * n * t * macs)


def _matrix(weights: dict[str, Array], gates: list[str]) -> Array:
    """Rows of each gate's weights, the input's in front of the output's."""
    return np.concatenate(
        [
            np.concatenate(
                [weights[f"{source}_to_{gate}_weights"] for source in ("input", "recurrent")], 1
            )
            for gate in gates
        ]
    )


def _biases(weights: dict[str, Array], gates: list[str], infos: dict[str, TensorInfo]) -> Array:
    """What is added to the two sums of each cell: zero points folded into the bias."""
    rows = []
    for gate in gates:
        for source, operand in (("input", "input"), ("recurrent", "output_state_in")):
            sums = weights[f"{source}_to_{gate}_weights"].sum(axis=1, dtype=np.int64)
            rows.append(sums * -zero_point_of(infos[operand]))
        rows[-2] += weights[BIASES[gate]]
    pairs = np.array(rows).reshape(len(gates), 2, -1)
    return pairs.transpose(0, 2, 1).astype(np.int32)


def _multipliers(infos: dict[str, TensorInfo], gates: list[str]) -> Array:
    """Multiplier and shift from each gate's two sums to 12 fraction bits."""
    pairs = []
    for gate in gates:
        for source, operand in (("input", "input"), ("recurrent", "output_state_in")):
            scale = np.float32(infos[f"{source}_to_{gate}_weights"].scale)
            effective = scale * np.float32(infos[operand].scale) / _GATE_SCALE
            pairs.append(numerics.quantize_multiplier(float(effective)))
    return np.array(pairs, np.int64)


def _stored_clip(clip: float, scale: float) -> int:
    """The limit of the cell state as a stored number; 0 is no limit."""
    return min(int(np.float32(clip) / np.float32(scale)), 32767) if clip > 0 else 0
