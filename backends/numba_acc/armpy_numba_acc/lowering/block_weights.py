"""Products with numbers of few bits, which stay packed in memory."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from armpy.graph import Layer
from armpy.ops import BlockwiseFullyConnected
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy_numba_acc.lowering.dynamic_range import quantized_rows
from armpy_numba_acc.lowering.filling import emit_fill
from armpy_numba_acc.lowering.moves import Side, emit_move, stand_in
from armpy_numba_acc.lowering.operands import expect
from armpy_numba_acc.lowering.stand_ins import stand_in_of
from armpy_numba_acc.machine import calls
from armpy_numba_acc.machine.calls.vectors import BYTE_STEP, UNITS_AT_ONCE, numbers_at_once
from armpy_numba_acc.machine.memory import Buffer
from armpy_numba_acc.program.emitter import Emitter
from armpy_numba_acc.program.estimate import num_pieces
from armpy_numba_acc.program.registry import LoweringRule

_BLOCKS = (16, 32, 64, 128, 256)
"""Numbers of a block that there are kernels for."""


def check(operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
    """Blocks of some sizes."""
    block = _block(expect(operation, BlockwiseFullyConnected), inputs[1])
    return "" if block in _BLOCKS else f"blocks of {block} numbers are not supported"


def _block(operation: BlockwiseFullyConnected, weights: TensorInfo | None) -> int:
    """Numbers of a block."""
    assert weights is not None
    return weights.known_shape[2] * 8 // operation.bits


def lower(emit: Emitter, layer: Layer) -> None:
    """One command, after one that puts the input in order."""
    operation = expect(layer.operation, BlockwiseFullyConnected)
    weights, scales = layer["weights"], layer["scales"]
    points, bias = (*layer.inputs[3:], None, None)[:2]
    units, blocks, _ = weights.info.known_shape
    bits, block = operation.bits, _block(operation, weights.info)
    rows, length = prod(layer["input"].info.known_shape[:-1]), blocks * block
    is_single = rows == 1
    rows = 1 if is_single else rows  # no traced size from here on
    pitch = 0 if is_single else UNITS_AT_ONCE * length * 4
    source, ranges = _padded(emit, layer, rows, length), None
    has_bytes = operation.quantizes_input and is_single and _has_bytes(emit, bits, block, length)
    if operation.quantizes_input:
        written, shape = "u8" if has_bytes else "f32", (rows * blocks, block)
        source, ranges = quantized_rows(emit, layer, source, shape, written, is_asymmetric=False)
    at_once, item = (BYTE_STEP, 1) if has_bytes else (numbers_at_once(block), 4)
    order = at_once * bits // 8, 8 // bits
    source = _in_order(emit, layer, source, (rows, length), order, item)
    call = calls.BlockProduct(
        bits,
        block,
        int(points is not None),
        int(bias is not None),
        "bytes" if has_bytes else "row" if is_single else "rows",
        source=source,
        ranges=ranges if has_bytes and ranges is not None else 0,
        target=emit.target(layer.output),
        weights=emit.source(weights),
        scales=emit.source(scales),
        points=0 if points is None else emit.source(points),
        bias=0 if bias is None else emit.source(bias),
        rows=rows,
        units=units,
        blocks=blocks,
        scratch=emit.scratch(pitch * emit.num_threads) if pitch else 0,
        scratch_pitch=pitch,
    )
    num_operations, pieces = 2 * rows * units * length, 1
    if is_single:
        pieces = num_pieces(call.work, emit.choices, num_operations, weights.info.size_bytes)
    emit(call, layer.name, num_operations=num_operations, num_pieces=pieces)


def _has_bytes(emit: Emitter, bits: int, block: int, length: int) -> bool:
    """Return whether quantised rows are multiplied as bytes; else as the floats they stand for."""
    fits = bits == 4 and block >= 32 and length % BYTE_STEP == 0
    return fits and "avx" in emit.isa.name and emit.isa.vector_bytes >= 32


def _padded(emit: Emitter, layer: Layer, rows: int, length: int) -> Buffer:
    """The input with zeros after each row up to a length."""
    value = layer["input"]
    source, depth = emit.source(value), value.info.known_shape[-1]
    if depth == length:
        return source
    whole = stand_in(value.info).reshape(rows, depth)
    padded, target = emit.scratch(rows * length * 4), stand_in_of((rows, length), 4)
    emit_fill(emit, padded, rows * length * 4, bytes(4), layer.name)
    sides = Side(source, whole, whole), Side(padded, target, target[:, :depth])
    emit_move(emit, *sides, layer.name)
    return padded


def _in_order(
    emit: Emitter,
    layer: Layer,
    source: Buffer,
    shape: tuple[int, int],
    order: tuple[int, int],
    item: int,
) -> Buffer:
    """Rows in the order of `BlockProduct`: of each chunk, elements for the first numbers first."""
    (rows, length), (size, count) = shape, order
    if count == 1:
        return source
    chunks = (rows, length // (size * count))
    whole, target = stand_in_of(shape, item), stand_in_of((*chunks, count, size), item)
    ordered = emit.scratch(rows * length * item)
    parts = whole.reshape(*chunks, size, count).swapaxes(2, 3)
    emit_move(emit, Side(source, whole, parts), Side(ordered, target, target), layer.name)
    return ordered


LOWERINGS = {BlockwiseFullyConnected: LoweringRule(check, lower)}
