"""Lowers concatenation: tensors one after the other along an axis, which may be new."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from armpy.graph import Layer, Value
from armpy.ops import Concat, Stack
from armpy.ops.operation import OperandInfos, Operation
from armpy.ops.shapes import normalize_axis
from armpy.tensor import TensorInfo
from armpy_numba_acc.lowering.lookup import emit_lookup
from armpy_numba_acc.lowering.moves import Side, emit_move, stand_in
from armpy_numba_acc.lowering.operands import expect, given
from armpy_numba_acc.machine.memory import Buffer
from armpy_numba_acc.packing import tables
from armpy_numba_acc.program.emitter import Emitter
from armpy_numba_acc.program.registry import LoweringRule


def check(operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
    """Any type; all inputs are there."""
    return "an input is left out" if None in inputs else ""


def lower_concat(emit: Emitter, layer: Layer) -> None:
    """Concatenate along an axis that the inputs have."""
    output, values = layer.output, given(layer)
    axis = normalize_axis(expect(layer.operation, Concat).axis, len(output.info.known_shape))
    _lower(emit, layer, axis, [value.info.known_shape[axis] for value in values])


def lower_stack(emit: Emitter, layer: Layer) -> None:
    """Concatenate along an axis of the output's own."""
    axis = normalize_axis(expect(layer.operation, Stack).axis, len(layer.output.info.known_shape))
    _lower(emit, layer, axis, [1] * len(layer.inputs))


def _lower(emit: Emitter, layer: Layer, axis: int, sizes: Sequence[int]) -> None:
    """Put each input into its place, unless it has been written there.

    Reference: TFLite ``ConcatenationWithScaling``; NNAPI CONCATENATION.
    """
    output = layer.output
    whole, target, start = stand_in(output.info), emit.target(output), 0
    for value, size in zip(given(layer), sizes, strict=True):
        part = whole[(slice(None),) * axis + (slice(start, start + size),)]
        start += size
        source = emit.source(value)
        side = Side(target, whole, part)
        if source.whole is target and source.offset == side.offset_bytes:
            continue
        if value.info.quantization != output.info.quantization:
            is_whole = prod(whole.shape[:axis]) == 1
            requantized = _requantized(emit, layer, value, side if is_whole else None)
            if requantized is None:
                continue
            source = requantized
        whole_input = stand_in(value.info)
        emit_move(
            emit, Side(source, whole_input, whole_input.reshape(part.shape)), side, layer.name
        )


def _requantized(emit: Emitter, layer: Layer, value: Value, place: Side | None) -> Buffer | None:
    """An input quantised like the output; None if it has been written to its place.

    `place` is None where the elements do not lie one after the other there.
    """
    table = tables.of_concatenation(value.info, layer.output.info)
    size = value.info.size_bytes
    if place is not None:
        emit_lookup(emit, table, value, place.buffer.part(place.offset_bytes, size), layer.name)
        return None
    scratch = emit.scratch(size)
    emit_lookup(emit, table, value, scratch, layer.name)
    return scratch


LOWERINGS = {Concat: LoweringRule(check, lower_concat), Stack: LoweringRule(check, lower_stack)}
