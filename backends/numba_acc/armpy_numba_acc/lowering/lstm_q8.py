"""UnidirectionalSequenceLstm in integers, and the tables of its functions."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import numpy.typing as npt

from armpy.core import numerics
from armpy.graph import Layer
from armpy.ops import UnidirectionalSequenceLstm
from armpy.ops.operation import Array, OperandInfos
from armpy.tensor import TensorInfo
from armpy_numba_acc.lowering.lstm_f32 import BIASES, GATES, Steps, constants_of, infos_of
from armpy_numba_acc.lowering.operands import expect
from armpy_numba_acc.machine import calls
from armpy_numba_acc.packing.quantized import zero_point_of
from armpy_numba_acc.program.emitter import Emitter

_GATE_SCALE = np.float32(2.0**-12)

_PARTS = {
    "cell_to_output_weights": "a peephole",
    "output_layer_norm_weights": "layer normalisation",
    "projection_weights": "a projection",
}
"""Operations without an integer form, by an operand that it has."""


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
    operation, source = expect(layer.operation, UnidirectionalSequenceLstm), layer["input"]
    weights, infos = constants_of(layer), infos_of(layer)
    gates = [gate for gate in GATES if f"input_to_{gate}_weights" in weights]
    cells, size = weights["input_to_output_weights"].shape
    cell_scale = infos["cell_state_in"].scale
    exponent = round(math.log2(cell_scale))
    steps = Steps.of(operation, source.info)
    output_state, cell_state, output = (emit.target(value) for value in layer.outputs)
    to_hidden = np.float32(2.0**-15 / float(np.float32(operation.hidden_state_scale)) * 2.0**-15)
    multiplier, shift = numerics.quantize_multiplier(float(to_hidden))
    call = calls.LstmQ8(
        has_input_gate=int("input" in gates),
        source=emit.source(source),
        output_state_in=emit.source(layer["output_state_in"]),
        cell_state_in=emit.source(layer["cell_state_in"]),
        output_state_out=output_state,
        cell_state_out=cell_state,
        output=output,
        weights=emit.constant(_matrix(weights, gates)),
        biases=emit.constant(_biases(weights, gates, infos)),
        multipliers=emit.constant(_multipliers(infos, gates)),
        sigmoid=emit.constant(_sigmoid_table()),
        tanh=emit.constant(_tanh_table(3)),
        cell_tanh=emit.constant(_tanh_table(15 + exponent)),
        scratch=emit.scratch(2 * len(gates) * cells),
        batches=steps.batches,
        times=steps.times,
        batch_rows=steps.batch_rows,
        time_rows=steps.time_rows,
        inputs=size,
        cells=cells,
        cell_shift=30 + exponent,
        cell_clip=_stored_clip(operation.cell_clip, cell_scale),
        to_hidden=multiplier,
        to_hidden_shift=shift,
        # A signed tensor's elements have their top bit flipped.
        zero_point=operation.hidden_state_zero_point + 128,
    )
    macs = len(gates) * cells * (size + cells)
    emit(call, layer.name, num_operations=2 * steps.batches * steps.times * macs)


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
    """Return the biases of the two sums of each cell: zero points folded into the bias."""
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
    """The limit of the cell state as a stored number; 0 is not a limit."""
    return min(int(np.float32(clip) / np.float32(scale)), 32767) if clip > 0 else 0


@cache
def _sigmoid_table() -> npt.NDArray[np.int16]:
    """Logistic function of every number with 3 integer bits, lowest first.

    Returns
    -------
    ndarray, int16, shape (65536,)
        With 15 fraction bits.
    """
    return numerics.gemmlowp.logistic(_every_number(), 3, bits=16).astype(np.int16)


@cache
def _tanh_table(integer_bits: int) -> npt.NDArray[np.int16]:
    """Hyperbolic tangent of every number with some integer bits; otherwise as above."""
    return numerics.gemmlowp.tanh(_every_number(), integer_bits, bits=16).astype(np.int16)


def _every_number() -> npt.NDArray[np.int64]:
    """All of int16, lowest first."""
    return np.arange(-(1 << 15), 1 << 15)
