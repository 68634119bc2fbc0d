"""Lowers operations that put tensors one behind the other."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.graph import Layer, Value
from armpy.ops import Concat, Stack
from armpy.ops.operation import OperandInfos, Operation
from armpy.ops.shapes import normalize_axis
from armpy.tensor import TensorInfo
from armpy_numba_acc.lowering.lookup import emit_lookup
from armpy_numba_acc.lowering.moves import Side, emit_move, stand_in
from armpy_numba_acc.machine.memory import Buffer
from armpy_numba_acc.packing import tables
from armpy_numba_acc.program.emitter import Emitter
from armpy_numba_acc.program.registry import Lowering


def check(operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
    """Any type; all inputs are there."""
    return "an input is left out" if None in inputs else ""


def lower(emit: Emitter, layer: Layer) -> None:
    """Put each input into its place, unless it has been written there.

    References
    ----------
    TFLite ``ConcatenationWithScaling``; NNAPI CONCATENATION.
    """
    output = layer.outputs[0]
    whole = stand_in(output.info)
    axis = normalize_axis(layer.operation.axis, whole.ndim)  # type: ignore[attr-defined]
    target = emit.target(output)
    start = 0
    for value in layer.inputs:
        assert value is not None
        size = value.info.known_shape[axis] if isinstance(layer.operation, Concat) else 1
        part = whole[(slice(None),) * axis + (slice(start, start + size),)]
        start += size
        source = emit.source(value)
        side = Side(target, whole, part)
        if source.whole is target and source.offset == side.offset_bytes:
            continue
        if value.info.quantization != output.info.quantization:
            requantized = _requantized(emit, value, output, side, layer.name)
            if requantized is None:
                continue
            source = requantized
        given = stand_in(value.info)
        emit_move(emit, Side(source, given, given.reshape(part.shape)), side, layer.name)


def _requantized(
    emit: Emitter, value: Value, output: Value, side: Side, label: str
) -> Buffer | None:
    """An input quantised like the output; None if it is in its place already."""
    table = tables.of_concatenation(value.info, output.info)
    size = value.info.size_bytes
    if side.part.flags.c_contiguous:
        emit_lookup(emit, table, value, side.buffer.part(side.offset_bytes, size), label)
        return None
    scratch = emit.scratch(size)
    emit_lookup(emit, table, value, scratch, label)
    return scratch


LOWERINGS = {Concat: Lowering(check, lower), Stack: Lowering(check, lower)}
