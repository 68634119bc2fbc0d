"""RecurrentSequence: recurrent networks, GRU and LSTM with ONNX's attributes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from armpy.graph import Layer
from armpy.ops import GateFunction, RecurrentCell, RecurrentSequence
from armpy.ops.operands import Operands
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_numba_acc.lowering.operands import elements_of, expect
from armpy_numba_acc.lowering.recurrent_inputs import emit_inputs_share
from armpy_numba_acc.machine import calls
from armpy_numba_acc.machine.memory import Buffer
from armpy_numba_acc.packing.recurrent import packed_panels, panel_line, side_by_side
from armpy_numba_acc.program.emitter import Emitter
from armpy_numba_acc.program.registry import Lowering

_FUNCTIONS = (GateFunction.SIGMOID, GateFunction.TANH, GateFunction.RELU)
_WEIGHTS = ("weights", "recurrent_weights", "bias", "recurrent_bias", "peephole")


def check(operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
    """float32, constant weights, functions without parameters, lengths of 32 bits."""
    sequence, operands = expect(operation, RecurrentSequence), Operands(operation, inputs)
    if (data_type := operands["input"].data_type) is not DataType.FLOAT32:
        return f"{data_type.name} is not supported"
    for function in sequence.functions:
        if function not in _FUNCTIONS:
            return f"the function {function.name} is not supported"
    for name in _WEIGHTS:
        info = operands.get(name)
        if info is not None and not info.is_constant:
            return f"{name} is not constant"
    lengths = operands.get("sequence_lengths")
    if lengths is not None and lengths.data_type is not DataType.SIGNED32:
        return f"sequence lengths of {lengths.data_type.name} are not supported"
    return ""


def lower(emit: Emitter, layer: Layer) -> None:
    """Multiply all inputs with their weights at once, then run over time."""
    operation = expect(layer.operation, RecurrentSequence)
    times, batches, _ = layer["input"].info.known_shape
    recurrent = elements_of(layer, "recurrent_weights")
    units, num_gates, lanes = recurrent.shape[1], operation.cell.num_gates, emit.isa.lanes
    width = panel_width = -(-units // lanes) * lanes
    kind, split = _kind_of(operation), num_gates
    candidate: Buffer | int = 0
    weights, gates = (
        side_by_side([part.T for part in np.split(matrix, num_gates)], width)
        for matrix in (elements_of(layer, "weights"), recurrent)
    )
    first = _row(layer, "recurrent_bias", num_gates, width)
    if kind == "GRU":  # its candidate's product is one of its own
        split, panel_width = 2, panel_line(width, lanes)
        candidate = emit.constant(packed_panels(gates[:, 2 * width :], lanes))
    line = panel_line(split * width, lanes)
    begun = np.zeros(line + panel_width, np.float32)
    begun[: split * width] = first[: split * width]
    begun[line:][: len(first) - split * width] = first[split * width :]
    pitch = (2 * width + panel_width + line) * 4
    functions = operation.functions or operation.cell.functions
    hidden_out, *cell_out = (emit.target(value) for value in layer.outputs[1:])
    call = calls.RecurrentSequence(
        cell=kind,
        functions=" ".join(function.name for function in functions),
        share=emit_inputs_share(emit, layer, weights, _row(layer, "bias", num_gates, width)),
        hidden_in=_state(emit, layer, "hidden_state_in", batches * units),
        cell_in=_state(emit, layer, "cell_state_in", batches * units) if cell_out else 0,
        lengths=_lengths(emit, layer),
        output=emit.target(layer.outputs[0]),
        hidden_out=hidden_out,
        cell_out=cell_out[0] if cell_out else 0,
        recurrent=emit.constant(packed_panels(gates[:, : split * width], lanes)),
        candidate=candidate,
        first=emit.constant(begun),
        peephole=emit.constant(_row(layer, "peephole", 3, width)),
        scratch=emit.scratch(pitch * emit.num_threads),
        scratch_pitch=pitch,
        is_reversed=int(operation.is_reversed),
        batches=batches,
        times=times,
        num_gates=num_gates,
        units=units,
        width=width,
        line=line,
        candidate_line=panel_width,
        limit=operation.clip or np.inf,
    )
    emit(call, layer.name, num_operations=2 * times * batches * recurrent.size)


def _kind_of(operation: RecurrentSequence) -> str:
    """The name of a cell and of its form."""
    if operation.cell is RecurrentCell.GRU and operation.resets_after:
        return "GRU_AFTER"
    if operation.cell is RecurrentCell.LSTM and operation.couples_gates:
        return "LSTM_COUPLED"
    return operation.cell.name


def _row(layer: Layer, name: str, count: int, width: int) -> npt.NDArray[np.float32]:
    """A row of each gate's elements of an operand, which are 0 if it is left out."""
    elements = layer.constant(name)
    if elements is None:
        return np.zeros(count * width, np.float32)
    row = side_by_side([part[np.newaxis] for part in np.split(elements, count)], width)
    return row.reshape(-1)


def _state(emit: Emitter, layer: Layer, name: str, size: int) -> Buffer:
    """A state at first."""
    value = layer.operand(name)
    return emit.constant(np.zeros(size, np.float32)) if value is None else emit.source(value)


def _lengths(emit: Emitter, layer: Layer) -> Buffer | int:
    """Lengths of sequences, if there are any."""
    value = layer.operand("sequence_lengths")
    return 0 if value is None else emit.source(value)


LOWERINGS = {RecurrentSequence: Lowering(check, lower)}
