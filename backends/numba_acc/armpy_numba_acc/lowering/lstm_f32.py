"""Lowers long short-term memories in float32."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from armpy.graph import Layer
from armpy.ops import UnidirectionalSequenceLstm
from armpy.ops.operation import Array
from armpy_numba_acc.lowering.patches import Patches, input_of
from armpy_numba_acc.lowering.weighted_f32 import PackedF32, emit_product_f32
from armpy_numba_acc.machine.kernel import Kernel
from armpy_numba_acc.machine.memory import Buffer
from armpy_numba_acc.program.emitter import Argument, Emitter

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


def state_inputs(layer: Layer) -> tuple[int, int]:
    """Numbers of the operands that hold the output state and the cell state."""
    names = [operand.name for operand in layer.operation.inputs]
    return names.index("output_state_in"), names.index("cell_state_in")


def lower_f32(emit: Emitter, layer: Layer) -> None:
    """Multiply all inputs with their weights at once, then run over time.

    References
    ----------
    TFLite ``kernels/lstm_eval.cc`` (``EvalFloat``).
    """
    operation, source = layer.operation, input_of(layer, 0)
    assert isinstance(operation, UnidirectionalSequenceLstm)
    weights = constants_of(layer)
    gates = [gate for gate in GATES if f"input_to_{gate}_weights" in weights]
    normalizes = "forget_layer_norm_weights" in weights
    projection = weights.get("projection_weights")
    cells, outputs = weights["recurrent_to_output_weights"].shape
    width, out_width = (-(-size // emit.isa.lanes) * emit.isa.lanes for size in (cells, outputs))
    share = _input_share(emit, layer, weights, gates, width)
    output_state, cell_state = (emit.source(input_of(layer, n)) for n in state_inputs(layer))
    pitch = ((len(gates) + 2) * width + max(out_width, width)) * 4
    arguments: list[Argument] = [share, output_state, cell_state]
    arguments += [emit.target(value) for value in layer.outputs]
    recurrent = [weights[f"recurrent_to_{gate}_weights"].T for gate in gates]
    arguments.append(emit.constant(_side_by_side(recurrent, width)))
    peephole = {gate: f"cell_to_{gate}_weights" for gate in gates}
    norm = {gate: f"{gate}_layer_norm_weights" for gate in gates}
    for names, is_there in (
        (peephole, "cell_to_output_weights" in weights),
        (norm, normalizes),
        (BIASES, normalizes),
    ):
        rows = [weights.get(names[gate], np.zeros(cells))[np.newaxis] for gate in gates]
        arguments.append(emit.constant(_side_by_side(rows, width)) if is_there else 0)
    arguments.append(0 if projection is None else _padded(emit, projection.T, out_width))
    bias = weights.get("projection_bias", np.zeros(outputs))
    arguments.append(_padded(emit, bias[np.newaxis], out_width))
    n, t = source.info.known_shape[:2]
    rows_apart = (t, 1)
    if operation.time_major:
        n, t = t, n
        rows_apart = (1, n)
    arguments += [emit.scratch(pitch * emit.num_threads), pitch, len(gates)]
    arguments += [n, t, *rows_apart]
    arguments += [cells, width, outputs, out_width]
    arguments += [
        float(clip or np.inf) for clip in (operation.cell_clip, operation.projection_clip)
    ]
    macs = recurrent[0].size * len(gates) + (0 if projection is None else projection.size)
    emit.command(
        Kernel("lstm_f32", (operation.activation.name,)),
        arguments,
        layer.name,
        num_operations=2 * n * t * macs,
    )


def _input_share(
    emit: Emitter,
    layer: Layer,
    weights: Mapping[str, Array],
    gates: list[str],
    width: int,
) -> Buffer:
    """What the inputs add to the gates, with the biases that are not for later."""
    source = input_of(layer, 0)
    depth = source.info.known_shape[2]
    rows = source.info.num_elements // depth
    matrix = _side_by_side([weights[f"input_to_{gate}_weights"].T for gate in gates], width).T
    bias = np.zeros(len(matrix), np.float32)
    if "forget_layer_norm_weights" not in weights:
        bias = _side_by_side([weights[BIASES[gate]][np.newaxis] for gate in gates], width)[0]
    share = emit.scratch(rows * len(matrix) * 4)
    emit_product_f32(
        emit,
        Patches(emit.source(source), 1, 1, rows, 0, 0, depth * 4, (0,), depth),
        PackedF32.of(emit, matrix, bias, rows),
        share,
        len(matrix) * 4,
        (-np.inf, np.inf),
        layer.name,
    )
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
