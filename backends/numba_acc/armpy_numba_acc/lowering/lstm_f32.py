"""UnidirectionalSequenceLstm in float32."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from armpy.graph import Layer
from armpy.ops import UnidirectionalSequenceLstm
from armpy.ops.operation import Array
from armpy.records import dataclass
from armpy.tensor import TensorInfo
from armpy_numba_acc.lowering.operands import expect
from armpy_numba_acc.lowering.patches import Patches
from armpy_numba_acc.lowering.tiles import F32
from armpy_numba_acc.lowering.weighted_real import UNBOUNDED, Rows, emit_real, pack_real
from armpy_numba_acc.machine import calls
from armpy_numba_acc.machine.memory import Buffer
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
    """Multiply all inputs with their weights at once, then run over time.

    References
    ----------
    TFLite ``kernels/lstm_eval.cc`` (``EvalFloat``).
    """
    operation, source = expect(layer.operation, UnidirectionalSequenceLstm), layer["input"]
    weights = constants_of(layer)
    gates = [gate for gate in GATES if f"input_to_{gate}_weights" in weights]
    normalizes = "forget_layer_norm_weights" in weights
    projection = weights.get("projection_weights")
    cells, outputs = weights["recurrent_to_output_weights"].shape
    width, out_width = (-(-size // emit.isa.lanes) * emit.isa.lanes for size in (cells, outputs))
    pitch = ((len(gates) + 2) * width + max(out_width, width)) * 4
    recurrent = [weights[f"recurrent_to_{gate}_weights"].T for gate in gates]

    def row(names: Mapping[str, str], is_there: bool) -> Buffer | int:
        """A row of each gate's elements of some operands."""
        if not is_there:
            return 0
        parts = [weights.get(names[gate], np.zeros(cells))[np.newaxis] for gate in gates]
        return emit.constant(_side_by_side(parts, width))

    peepholes = {gate: f"cell_to_{gate}_weights" for gate in gates}
    norms = {gate: f"{gate}_layer_norm_weights" for gate in gates}
    bias = weights.get("projection_bias", np.zeros(outputs))
    steps = Steps.of(operation, source.info)
    share = _input_share(emit, layer, weights, gates, width)
    output_state, cell_state, output = (emit.target(value) for value in layer.outputs)
    call = calls.LstmF32(
        activation=operation.activation.name,
        share=share,
        output_state_in=emit.source(layer["output_state_in"]),
        cell_state_in=emit.source(layer["cell_state_in"]),
        output_state_out=output_state,
        cell_state_out=cell_state,
        output=output,
        recurrent=emit.constant(_side_by_side(recurrent, width)),
        peephole=row(peepholes, "cell_to_output_weights" in weights),
        norm_weights=row(norms, normalizes),
        norm_bias=row(BIASES, normalizes),
        projection=0 if projection is None else _padded(emit, projection.T, out_width),
        projection_bias=_padded(emit, bias[np.newaxis], out_width),
        scratch=emit.scratch(pitch * emit.num_threads),
        scratch_pitch=pitch,
        num_gates=len(gates),
        batches=steps.batches,
        times=steps.times,
        batch_rows=steps.batch_rows,
        time_rows=steps.time_rows,
        cells=cells,
        width=width,
        outputs=outputs,
        out_width=out_width,
        cell_clip=float(operation.cell_clip or np.inf),
        projection_clip=float(operation.projection_clip or np.inf),
    )
    macs = recurrent[0].size * len(gates) + (0 if projection is None else projection.size)
    emit(call, layer.name, num_operations=2 * steps.batches * steps.times * macs)


def _input_share(
    emit: Emitter,
    layer: Layer,
    weights: Mapping[str, Array],
    gates: list[str],
    width: int,
) -> Buffer:
    """What the inputs add to the gates, with the biases that are not for later."""
    source = layer["input"]
    depth = source.info.known_shape[2]
    rows = source.info.num_elements // depth
    matrix = _side_by_side([weights[f"input_to_{gate}_weights"].T for gate in gates], width).T
    bias = np.zeros(len(matrix), np.float32)
    if "forget_layer_norm_weights" not in weights:
        bias = _side_by_side([weights[BIASES[gate]][np.newaxis] for gate in gates], width)[0]
    share = emit.scratch(rows * len(matrix) * 4)
    patches = Patches(emit.source(source), 1, 1, rows, 0, 0, depth * 4, (0,), depth)
    packed = pack_real(emit, F32, patches, matrix[:, np.newaxis], bias)
    emit_real(emit, patches, packed, Rows(share, len(matrix)), UNBOUNDED, layer.name)
    return share


def _side_by_side(matrices: list[Array], width: int) -> npt.NDArray[np.float32]:
    """Matrices of equal height side by side, each filled up to a width with zeros."""
    height = len(matrices[0])
    result = np.zeros((height, len(matrices), width), np.float32)
    for number, matrix in enumerate(matrices):
        result[:, number, : matrix.shape[1]] = matrix
    return result.reshape(height, -1)


def _padded(emit: Emitter, matrix: Array, width: int) -> Buffer:
    """A constant matrix, filled up to a width."""
    return emit.constant(_side_by_side([matrix], width))
