"""UnidirectionalSequenceLstm in float32."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from armpy.core.dataclass import dataclass
from armpy.graph import Layer
from armpy.ops import GateFunction, UnidirectionalSequenceLstm
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy_numba_acc.lowering.operands import expect
from armpy_numba_acc.lowering.recurrent_cells import Cell, emit_cell, emit_inputs_share
from armpy_numba_acc.machine import calls
from armpy_numba_acc.machine.memory import Buffer
from armpy_numba_acc.packing.recurrent import packed_panels, panel_line, side_by_side
from armpy_numba_acc.program.emitter import Emitter

GATES = ("input", "forget", "cell", "output")
BIASES = {
    "input": "input_gate_bias",
    "forget": "forget_gate_bias",
    "cell": "cell_bias",
    "output": "output_gate_bias",
}


def constants_of(layer: Layer) -> dict[str, Array]:
    """Constant operands by name."""
    return {
        operand.name: value.data
        for operand, value in zip(layer.operation.inputs, layer.inputs, strict=False)
        if value is not None and value.data is not None
    }


def infos_of(layer: Layer) -> dict[str, TensorInfo]:
    """Infos of the operands that are there, by name."""
    return {
        operand.name: value.info
        for operand, value in zip(layer.operation.inputs, layer.inputs, strict=False)
        if value is not None
    }


@dataclass(frozen=True, slots=True)
class Steps:
    """Batches and times of a sequence, and how many rows each is from the next."""

    batches: int
    times: int
    batch_rows: int
    time_rows: int

    @classmethod
    def of(cls, operation: UnidirectionalSequenceLstm, info: TensorInfo) -> Steps:
        """Those of an input."""
        first, second = info.known_shape[:2]
        if operation.time_major:
            return cls(second, first, 1, second)
        return cls(first, second, second, 1)


def lower_f32(emit: Emitter, layer: Layer) -> None:
    """Add the commands of an LSTM, whatever parts it has."""
    if _is_plain(layer):
        _lower_plain(emit, layer)
    else:
        _lower_any(emit, layer)


def _is_plain(layer: Layer) -> bool:
    """Return whether an LSTM has no parts that `RecurrentSequence` has none of."""
    operation, names = expect(layer.operation, UnidirectionalSequenceLstm), infos_of(layer)
    others = {"forget_layer_norm_weights", "projection_weights"} & names.keys()
    is_known = operation.activation.name in GateFunction.__members__
    return "input_to_input_weights" in names and not others and not operation.cell_clip and is_known


def _lower_plain(emit: Emitter, layer: Layer) -> None:
    """Lower it as a `RecurrentSequence`."""
    operation = expect(layer.operation, UnidirectionalSequenceLstm)
    weights, steps = constants_of(layer), Steps.of(operation, layer["input"].info)
    activation, gates = operation.activation.name, ("input", "output", "forget", "cell")
    peephole = None
    if "cell_to_output_weights" in weights:
        peephole = np.concatenate([weights[f"cell_to_{gate}_weights"] for gate in gates[:3]])
    matrix, recurrent = (
        np.concatenate([weights[f"{kind}_to_{gate}_weights"] for gate in gates])
        for kind in ("input", "recurrent")
    )
    bias = np.concatenate([weights[BIASES[gate]] for gate in gates])
    functions = ("SIGMOID", activation, activation)
    cell = Cell("LSTM", functions, matrix, recurrent, bias, peephole=peephole)
    hidden_out, cell_out, output = (emit.target(value) for value in layer.outputs)
    record = partial(
        calls.RecurrentSequence,
        hidden_in=emit.source(layer["output_state_in"]),
        cell_in=emit.source(layer["cell_state_in"]),
        lengths=0,
        output=output,
        hidden_out=hidden_out,
        cell_out=cell_out,
        is_reversed=0,
        batches=steps.batches,
        times=steps.times,
        batch_rows=steps.batch_rows,
        time_rows=steps.time_rows,
        limit=np.inf,
    )
    emit_cell(emit, layer, cell, steps.batches * steps.times, record)


def _lower_any(emit: Emitter, layer: Layer) -> None:
    """Multiply all inputs with their weights at once, then run over time.

    Reference: TFLite ``kernels/lstm_eval.cc`` (``EvalFloat``).
    """
    operation, source = expect(layer.operation, UnidirectionalSequenceLstm), layer["input"]
    weights = constants_of(layer)
    gates = [gate for gate in GATES if f"input_to_{gate}_weights" in weights]
    normalizes = "forget_layer_norm_weights" in weights
    projection = weights.get("projection_weights")
    cells, outputs = weights["recurrent_to_output_weights"].shape
    lanes = emit.isa.lanes
    width = -(-cells // lanes) * lanes
    line, out_line = panel_line(len(gates) * width, lanes), panel_line(outputs, lanes)
    pitch = (line + 2 * width + max(out_line, width)) * 4
    recurrent = [weights[f"recurrent_to_{gate}_weights"].T for gate in gates]

    def row(names: Mapping[str, str], is_there: bool) -> Buffer | int:
        """A row of each gate's elements of some operands."""
        if not is_there:
            return 0
        parts = [weights.get(names[gate], np.zeros(cells))[np.newaxis] for gate in gates]
        return emit.constant(side_by_side(parts, width))

    peepholes = {gate: f"cell_to_{gate}_weights" for gate in gates}
    norms = {gate: f"{gate}_layer_norm_weights" for gate in gates}
    bias = weights.get("projection_bias", np.zeros(outputs))
    steps = Steps.of(operation, source.info)
    share = _inputs_share(emit, layer, weights, gates, width)
    output_state, cell_state, output = (emit.target(value) for value in layer.outputs)
    call = calls.LstmF32(
        activation=operation.activation.name,
        share=share,
        output_state_in=emit.source(layer["output_state_in"]),
        cell_state_in=emit.source(layer["cell_state_in"]),
        output_state_out=output_state,
        cell_state_out=cell_state,
        output=output,
        recurrent=emit.constant(packed_panels(side_by_side(recurrent, width), lanes)),
        peephole=row(peepholes, "cell_to_output_weights" in weights),
        norm_weights=row(norms, normalizes),
        norm_bias=row(BIASES, normalizes),
        projection=0 if projection is None else emit.constant(packed_panels(projection.T, lanes)),
        projection_bias=emit.constant(side_by_side([bias[np.newaxis]], out_line)),
        scratch=emit.scratch(pitch * emit.num_threads),
        scratch_pitch=pitch,
        num_gates=len(gates),
        batches=steps.batches,
        times=steps.times,
        batch_rows=steps.batch_rows,
        time_rows=steps.time_rows,
        cells=cells,
        width=width,
        line=line,
        outputs=outputs,
        out_line=out_line,
        cell_clip=float(operation.cell_clip or np.inf),
        projection_clip=float(operation.projection_clip or np.inf),
    )
    macs = recurrent[0].size * len(gates) + (0 if projection is None else projection.size)
    emit(call, layer.name, num_operations=2 * steps.batches * steps.times * macs)


def _inputs_share(
    emit: Emitter, layer: Layer, weights: Mapping[str, Array], gates: list[str], width: int
) -> Buffer:
    """Return the inputs' share of the gates' sums, with the biases that are not for later."""
    line = panel_line(len(gates) * width, emit.isa.lanes)
    matrix = side_by_side([weights[f"input_to_{gate}_weights"].T for gate in gates], width)
    biases = np.zeros((1, line), np.float32)
    if "forget_layer_norm_weights" not in weights:
        row = side_by_side([weights[BIASES[gate]][np.newaxis] for gate in gates], width)
        biases = side_by_side([row], line)
    return emit_inputs_share(emit, layer, side_by_side([matrix], line), biases[0])
