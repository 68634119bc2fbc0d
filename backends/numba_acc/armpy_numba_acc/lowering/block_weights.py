"""Products with numbers of few bits, which stay packed in memory, and packing them in panels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import prod

import numpy as np

from armpy.graph import Layer, Value
from armpy.ops import BlockwiseFullyConnected
from armpy.ops.operation import Array, OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_numba_acc.lowering.dynamic_range import quantized_rows
from armpy_numba_acc.lowering.filling import emit_fill
from armpy_numba_acc.lowering.moves import Side, emit_move, stand_in
from armpy_numba_acc.lowering.operands import expect
from armpy_numba_acc.lowering.stand_ins import stand_in_of
from armpy_numba_acc.machine import calls
from armpy_numba_acc.machine.memory import Buffer
from armpy_numba_acc.packing.origins import Origin, PackedArray
from armpy_numba_acc.packing.panels import in_panels, side_by_side
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
    """One command, after one that quantises the input if that is wanted."""
    operation = expect(layer.operation, BlockwiseFullyConnected)
    weights = layer["weights"]
    points, bias = (*layer.inputs[3:], None, None)[:2]
    units, blocks, _ = weights.info.known_shape
    block = _block(operation, weights.info)
    rows, length = prod(layer["input"].info.known_shape[:-1]), blocks * block
    source, ranges, form = _padded(emit, layer, rows, length), None, "floats"
    if operation.quantizes_input:
        shape = (rows * blocks, block)
        if operation.bits == 4:
            source, ranges = _quantized(emit, layer, source, shape)
            form = "bytes"
        else:
            source, _ = quantized_rows(emit, layer, source, shape, "f32", is_asymmetric=False)
    call = calls.BlockProduct(
        operation.bits,
        block,
        int(points is not None),
        int(bias is not None),
        form,
        source=source,
        ranges=0 if ranges is None else ranges,
        target=emit.target(layer.output),
        weights=_in_panels(emit, layer, layer["scales"], weights),
        points=0 if points is None else _in_panels(emit, layer, points),
        bias=0 if bias is None else emit.source(bias),
        rows=rows,
        units=units,
        blocks=blocks,
    )
    num_operations, num_bytes = 2 * rows * units * length, weights.info.size_bytes
    pieces = num_pieces(call.work, emit.choices, num_operations, num_bytes)
    emit(call, layer.name, num_operations=num_operations, num_pieces=pieces)


def _quantized(
    emit: Emitter, layer: Layer, source: Buffer, shape: tuple[int, int]
) -> tuple[Buffer, Buffer]:
    """Blocks of floats as bytes, and their ranges."""
    blocks, block = shape
    target, ranges = emit.scratch(blocks * block), emit.scratch(8 * blocks)
    call = calls.QuantizeBlocks(block, source, target, ranges, blocks)
    emit(call, f"quantize {layer.name}", part="quantize")
    return target, ranges


def _in_panels(emit: Emitter, layer: Layer, *values: Value) -> Buffer:
    """Operands of blocks in panels, see `BlockProduct`: packed if they are constant."""
    units, blocks = values[0].info.known_shape[:2]
    lanes, constants = emit.isa.lanes, [value.data for value in values]
    item = 1 if values[0].info.data_type is DataType.UNSIGNED8 else 4
    if all(constant is not None for constant in constants):
        parts = [
            (data, np.ascontiguousarray(data).view(f"u{item}").reshape(units, blocks, -1))
            for data in constants
            if data is not None
        ]
        return emit.packed(pack_blocks(lanes, *parts))
    sizes = [value.info.size_bytes // (units * blocks * item) for value in values]
    panels = stand_in_of((-(-units // lanes), blocks, sum(sizes), lanes), item)
    target, first = emit.scratch(panels.nbytes), 0
    emit_fill(emit, target, panels.nbytes, bytes(item), layer.name)
    for value, size in zip(values, sizes, strict=True):
        whole = stand_in_of((units, blocks, size), item)
        for part, to in _panel_parts(whole, panels[:, :, first : first + size]):
            sides = Side(emit.source(value), whole, part), Side(target, panels, to)
            emit_move(emit, *sides, layer.name)
        first += size
    return target


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


def pack_blocks(lanes: int, *parts: tuple[Array, Array]) -> PackedArray:
    """Values of each block, panel by panel and block by block.

    Parameters
    ----------
    lanes
        Units of a panel; the last one is filled up with zeros.
    *parts
        Each a constant of shape (units, blocks) or (units, blocks, bytes), and the same bytes as
        words of shape (units, blocks, words): of every block, each word of all units lies together.
    """
    rows = [_in_lanes(words, lanes) for _, words in parts]
    packed = side_by_side(*rows)
    begin, origins = 0, []
    for (constant, words), row in zip(parts, rows, strict=True):
        moved = partial(_in_lanes, lanes=lanes, words=words.shape[2])
        size, together = constant.itemsize, words.itemsize // constant.itemsize
        origin = Origin.of(constant, moved, size, begin, packed.shape[1], together=together)
        origins.append(origin)
        begin += row[0].nbytes
    return PackedArray(packed, tuple(origins))


def _in_lanes(values: Array, lanes: int, words: int = 0) -> Array:
    """Values (units, blocks, ...), which are some words in each block, as rows of blocks."""
    units, blocks = values.shape[:2]
    panels = in_panels(values.reshape(units, blocks, words or values.shape[2], -1), lanes)
    return panels.transpose(0, 2, 3, 1, 4).reshape(len(panels) * blocks, -1)


def _panel_parts(values: Array, panels: Array) -> Iterator[tuple[Array, Array]]:
    """Parts of values (units, blocks, words) and of panels (panels, blocks, words, lanes)."""
    units, blocks, words = values.shape
    lanes = panels.shape[3]
    whole, rest = divmod(units, lanes)
    for first, count, width in ((0, whole, lanes), (whole, 1, rest)):
        if count * width:
            part = values[first * lanes : first * lanes + count * width]
            ordered = part.reshape(count, width, blocks, words).transpose(0, 2, 3, 1)
            yield ordered, panels[first : first + count, :, :, :width]


LOWERINGS = {BlockwiseFullyConnected: LoweringRule(check, lower)}
