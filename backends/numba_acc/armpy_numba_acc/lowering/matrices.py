"""Lowers BatchMatMul."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from armpy.graph import Layer, Value
from armpy.ops import BatchMatMul
from armpy.ops.operation import Array, OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_numba_acc.lowering.emitter import Emitter
from armpy_numba_acc.lowering.filling import emit_fill
from armpy_numba_acc.lowering.memory import Buffer
from armpy_numba_acc.lowering.moves import Side, emit_move, stand_in
from armpy_numba_acc.lowering.patches import Patches, input_of
from armpy_numba_acc.lowering.registry import Lowering
from armpy_numba_acc.lowering.tiles import tile_of_f32
from armpy_numba_acc.lowering.weighted_f32 import PackedF32, emit_product_f32

_UNBOUNDED = (-np.inf, np.inf)


def check(operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
    """float32."""
    data_type = outputs[0].data_type
    return "" if data_type is DataType.FLOAT32 else f"{data_type.name} is not supported"


def lower(emit: Emitter, layer: Layer) -> None:
    """One product per pair of matrices; all of x at once where there is one y."""
    operation, x, y = layer.operation, input_of(layer, 0), input_of(layer, 1)
    assert isinstance(operation, BatchMatMul)
    output = layer.outputs[0]
    *batches, rows, columns = output.info.known_shape
    source, xs = _rows_of(emit, x, operation.transpose_x, layer.name)
    panels, ys = _panels_of(emit, y, operation.transpose_y, rows, layer.name)
    depth = x.info.known_shape[-2 if operation.transpose_x else -1]
    pairs = list(
        zip(
            np.broadcast_to(xs, batches).flat,
            np.broadcast_to(ys, batches).flat,
            range(prod(batches)),
            strict=True,
        )
    )
    if ys.size == 1 and xs.size == len(pairs):
        pairs, rows = [(0, 0, 0)], rows * len(pairs)
    target = emit.target(output)
    for at_x, at_y, at in pairs:
        place = source.part(int(at_x) * rows * depth * 4, rows * depth * 4)
        emit_product_f32(
            emit,
            Patches(place, 1, 1, rows, 0, 0, depth * 4, (0,), depth),
            panels[int(at_y)],
            target.at(at * rows * columns * 4),
            columns * 4,
            _UNBOUNDED,
            layer.name,
        )


def _rows_of(emit: Emitter, x: Value, is_transposed: bool, label: str) -> tuple[Buffer, Array]:
    """Where the rows of x lie one behind the other, and the number of each matrix."""
    batches = x.info.known_shape[:-2]
    numbers = np.arange(prod(batches)).reshape(batches)
    if not is_transposed:
        return emit.source(x), numbers
    whole = stand_in(x.info)
    swapped = whole.swapaxes(-1, -2)
    rows = np.empty(swapped.shape, swapped.dtype)
    scratch = emit.scratch(rows.nbytes)
    emit_move(emit, Side(emit.source(x), whole, swapped), Side(scratch, rows, rows), label)
    return scratch, numbers


def _panels_of(
    emit: Emitter, y: Value, is_transposed: bool, rows: int, label: str
) -> tuple[list[PackedF32], Array]:
    """Every matrix of y as the kernel wants it, and the number of each."""
    batches = y.info.known_shape[:-2]
    numbers = np.arange(prod(batches)).reshape(batches)
    if y.data is not None:
        data = y.data if is_transposed else y.data.swapaxes(-1, -2)
        matrices = data.reshape(-1, *data.shape[-2:])
        return [PackedF32.of(emit, matrix, None, rows) for matrix in matrices], numbers
    whole = stand_in(y.info)
    matrices = whole.swapaxes(-1, -2) if is_transposed else whole
    depth, columns = matrices.shape[-2:]
    tile = tile_of_f32(emit.isa, rows, columns, depth)
    width = tile[1] * emit.isa.lanes
    shape = (*batches, -(-columns // width), 1 + depth, width)
    panels = np.empty(shape, whole.dtype)
    scratch = emit.scratch(panels.nbytes)
    # Zeros stand for the bias, and for columns behind the last one.
    emit_fill(emit, scratch, panels.nbytes, bytes(4), label)
    full = columns // width
    parts = [(matrices[..., full * width :], panels[..., full:, 1:, : columns - full * width])]
    inside = matrices[..., : full * width].reshape(*matrices.shape[:-1], full, width)
    parts.append((inside.swapaxes(-2, -3), panels[..., :full, 1:, :]))
    for from_, to in parts:
        if from_.size:
            side = Side(emit.source(y), whole, from_.reshape(to.shape))
            emit_move(emit, side, Side(scratch, panels, to), label)
    size = panels.nbytes // numbers.size
    packed = [PackedF32(scratch.at(n * size), columns, depth, tile) for n in range(numbers.size)]
    return packed, numbers


LOWERINGS = {BatchMatMul: Lowering(check, lower)}
