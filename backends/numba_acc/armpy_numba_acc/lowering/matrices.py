"""Lowers BatchMatMul."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import TypeAlias

import numpy as np

from armpy.graph import Layer, Value
from armpy.ops import BatchMatMul
from armpy.ops.operation import Array, OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_numba_acc.lowering.emitter import Emitter
from armpy_numba_acc.lowering.filling import emit_fill
from armpy_numba_acc.lowering.memory import Address, Buffer
from armpy_numba_acc.lowering.moves import Side, emit_move
from armpy_numba_acc.lowering.patches import Patches, input_of
from armpy_numba_acc.lowering.registry import Lowering
from armpy_numba_acc.lowering.relaxing import are_many
from armpy_numba_acc.lowering.tiles import tile_of_f32, width_of
from armpy_numba_acc.lowering.weighted_bf16 import (
    PackedBf16,
    Rows,
    emit_product_bf16,
    tile_of_patches,
)
from armpy_numba_acc.lowering.weighted_f32 import PackedF32, emit_product_f32

Packed: TypeAlias = PackedF32 | PackedBf16
"""A matrix as a kernel wants it."""

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
    depth = x.info.known_shape[-2 if operation.transpose_x else -1]
    is_relaxed = emit.isa.is_relaxed and depth > 1 and are_many(layer)
    factors = (_Halves if is_relaxed else _Floats)(emit, layer.name)
    source, xs = _rows_of(factors, x, operation.transpose_x)
    num_ys = prod(y.info.known_shape[:-2])
    pairs_of_x = prod(batches)
    if num_ys == 1 and xs.size == pairs_of_x:
        rows, pairs_of_x = rows * xs.size, 1
    patches = Patches(source, 1, 1, rows, 0, 0, depth * factors.size, (0,), depth)
    panels, ys = _panels_of(factors, y, operation.transpose_y, patches)
    target = emit.target(output)
    x_of, y_of = (np.broadcast_to(numbers, batches).ravel() for numbers in (xs, ys))
    for at in range(pairs_of_x):
        size = rows * depth * factors.size
        part = replace(patches, source=source.part(int(x_of[at]) * size, size))
        factors.multiply(part, panels[int(y_of[at])], target.at(at * rows * columns * 4))


class _Floats:
    """Products of float32."""

    size = 4

    def __init__(self, emit: Emitter, label: str) -> None:
        self.emit = emit
        self.label = label

    def source(self, value: Value) -> Buffer:
        """Where an operand is."""
        return self.emit.source(value)

    def packed(self, matrix: Array, patches: Patches) -> Packed:
        """A constant matrix (columns, depth)."""
        return PackedF32.of(self.emit, matrix, None, patches.num_pixels)

    def width(self, columns: int, patches: Patches) -> int:
        """Columns of a panel."""
        tile = tile_of_f32(self.emit.choices, patches.num_pixels, columns, patches.depth)
        return width_of(self.emit.isa, tile)

    def packed_at(self, panels: Address, columns: int, patches: Patches) -> Packed:
        """A matrix that lies in memory as panels."""
        tile = tile_of_f32(self.emit.choices, patches.num_pixels, columns, patches.depth)
        return PackedF32(panels, columns, patches.depth, tile)

    def multiply(self, patches: Patches, packed: Packed, target: Address) -> None:
        """Add the command."""
        assert isinstance(packed, PackedF32)
        pitch = packed.columns * 4
        emit_product_f32(self.emit, patches, packed, target, pitch, _UNBOUNDED, self.label)


class _Halves(_Floats):
    """Products of bfloat16, two at a time."""

    size = 2

    def source(self, value: Value) -> Buffer:
        """Where an operand is."""
        return self.emit.source_of_halves(value)

    def packed(self, matrix: Array, patches: Patches) -> Packed:
        """A constant matrix (columns, depth)."""
        return PackedBf16.of(self.emit, patches, matrix[:, None], None)

    def width(self, columns: int, patches: Patches) -> int:
        """Columns of a panel."""
        return tile_of_patches(self.emit, patches, columns).vectors * self.emit.isa.lanes

    def packed_at(self, panels: Address, columns: int, patches: Patches) -> Packed:
        """A matrix that lies in memory as panels."""
        return PackedBf16(panels, columns, tile_of_patches(self.emit, patches, columns))

    def multiply(self, patches: Patches, packed: Packed, target: Address) -> None:
        """Add the command."""
        assert isinstance(packed, PackedBf16)
        rows = Rows(target, packed.columns)
        emit_product_bf16(self.emit, patches, packed, rows, _UNBOUNDED, self.label)


def _stand_in(value: Value, factors: _Floats) -> Array:
    """An array that stands for an operand."""
    return np.empty(value.info.known_shape, f"V{factors.size}")


def _rows_of(factors: _Floats, x: Value, is_transposed: bool) -> tuple[Buffer, Array]:
    """Where the rows of x lie one behind the other, and the number of each matrix."""
    emit, batches = factors.emit, x.info.known_shape[:-2]
    numbers = np.arange(prod(batches)).reshape(batches)
    source = factors.source(x)
    if not is_transposed:
        return source, numbers
    whole = _stand_in(x, factors)
    swapped = whole.swapaxes(-1, -2)
    rows = np.empty(swapped.shape, swapped.dtype)
    scratch = emit.scratch(rows.nbytes)
    emit_move(emit, Side(source, whole, swapped), Side(scratch, rows, rows), factors.label)
    return scratch, numbers


def _panels_of(
    factors: _Floats, y: Value, is_transposed: bool, patches: Patches
) -> tuple[list[Packed], Array]:
    """Every matrix of y as the kernel wants it, and the number of each."""
    batches = y.info.known_shape[:-2]
    numbers = np.arange(prod(batches)).reshape(batches)
    if y.data is not None:
        data = y.data if is_transposed else y.data.swapaxes(-1, -2)
        matrices = data.reshape(-1, *data.shape[-2:])
        return [factors.packed(matrix, patches) for matrix in matrices], numbers
    whole = _stand_in(y, factors)
    matrices = whole.swapaxes(-1, -2) if is_transposed else whole
    emit, label, columns = factors.emit, factors.label, matrices.shape[-1]
    width = factors.width(columns, patches)
    slots = 4 // factors.size
    lines = 1 + -(-patches.depth // slots)
    panels = np.empty((*batches, -(-columns // width), lines, width, slots), whole.dtype)
    scratch, source = emit.scratch(panels.nbytes), factors.source(y)
    # Zeros stand for the bias, and for what is behind the last column and line.
    emit_fill(emit, scratch, panels.nbytes, bytes(4), label)
    full = columns // width
    for slot in range(slots):
        given = matrices[..., slot::slots, :]
        places = panels[..., 1 : 1 + given.shape[-2], :, slot]
        inside = given[..., : full * width].reshape(*given.shape[:-1], full, width)
        parts = [(given[..., full * width :], places[..., full:, :, : columns - full * width])]
        parts.append((inside.swapaxes(-2, -3), places[..., :full, :, :]))
        for from_, to in parts:
            if from_.size:
                side = Side(source, whole, from_.reshape(to.shape))
                emit_move(emit, side, Side(scratch, panels, to), label)
    size = panels.nbytes // numbers.size
    made = [factors.packed_at(scratch.at(n * size), columns, patches) for n in range(numbers.size)]
    return made, numbers


LOWERINGS = {BatchMatMul: Lowering(check, lower)}
