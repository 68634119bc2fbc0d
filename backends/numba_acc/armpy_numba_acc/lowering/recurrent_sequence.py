"""RecurrentSequence: recurrent networks, GRU and LSTM with ONNX's attributes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from armpy.graph import Layer
from armpy.ops import GateFunction, RecurrentCell, RecurrentSequence
from armpy.ops.operands import Operands
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_numba_acc.lowering.operands import elements_of, expect
from armpy_numba_acc.lowering.recurrent_cells import Cell, emit_cell
from armpy_numba_acc.machine import calls
from armpy_numba_acc.machine.memory import Buffer
from armpy_numba_acc.program.emitter import Emitter
from armpy_numba_acc.program.registry import LoweringRule

_PLAIN = (GateFunction.SIGMOID, GateFunction.TANH, GateFunction.RELU)
"""Functions without parameters."""
_WEIGHTS = ("weights", "recurrent_weights", "bias", "recurrent_bias", "peephole")


def check(operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
    """float32, constant weights, lengths of 32 bits."""
    operands = Operands(operation, inputs)
    if (data_type := operands["input"].data_type) is not DataType.FLOAT32:
        return f"{data_type.name} is not supported"
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
    cell = Cell(
        _kind_of(operation),
        _functions_of(operation),
        elements_of(layer, "weights"),
        elements_of(layer, "recurrent_weights"),
        *(layer.constant(name) for name in ("bias", "recurrent_bias", "peephole")),
    )
    output, hidden_out, *cell_out = (emit.target(value) for value in layer.outputs)
    size = layer.outputs[1].info.num_elements
    lengths = layer.operand("sequence_lengths")
    record = partial(
        calls.RecurrentSequence,
        hidden_in=_state(emit, layer, "hidden_state_in", size),
        cell_in=_state(emit, layer, "cell_state_in", size) if cell_out else 0,
        lengths=0 if lengths is None else emit.source(lengths),
        output=output,
        hidden_out=hidden_out,
        cell_out=cell_out[0] if cell_out else 0,
        is_reversed=int(operation.is_reversed),
        batches=batches,
        times=times,
        batch_rows=1,
        time_rows=batches,
        limit=operation.clip or np.inf,
    )
    emit_cell(emit, layer, cell, batches * times, record)


def _kind_of(operation: RecurrentSequence) -> str:
    """The name of a cell and of its form."""
    if operation.cell is RecurrentCell.GRU and operation.resets_after:
        return "GRU_AFTER"
    if operation.cell is RecurrentCell.LSTM and operation.couples_gates:
        return "LSTM_COUPLED"
    return operation.cell.name


def _functions_of(operation: RecurrentSequence) -> tuple[str, ...]:
    """Functions with their parameters, as the kernel reads them."""
    functions = operation.functions or operation.cell.functions
    zeros = (0.0,) * len(functions)
    pairs = zip(functions, operation.alphas or zeros, operation.betas or zeros, strict=True)
    return tuple(
        function.name if function in _PLAIN else f"{function.name}:{alpha}:{beta}"
        for function, alpha, beta in pairs
    )


def _state(emit: Emitter, layer: Layer, name: str, size: int) -> Buffer:
    value = layer.operand(name)
    return emit.constant(np.zeros(size, np.float32)) if value is None else emit.source(value)


LOWERINGS = {RecurrentSequence: LoweringRule(check, lower)}
