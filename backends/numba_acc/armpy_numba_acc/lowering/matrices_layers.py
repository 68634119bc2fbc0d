"""BatchMatMul: products of pairs of computed matrices."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from math import prod

import numpy as np

from armpy.core.symbolic import is_traced
from armpy.graph import Layer, Value
from armpy.ops import BatchMatMul
from armpy.ops.operation import Array
from armpy.types import DataType
from armpy_numba_acc.lowering.broadcasting import KINDS, emit_on_buffers
from armpy_numba_acc.lowering.filling import emit_fill
from armpy_numba_acc.lowering.moves import Side, emit_move
from armpy_numba_acc.lowering.operands import expect
from armpy_numba_acc.lowering.patches import Patches
from armpy_numba_acc.lowering.products import Weights
from armpy_numba_acc.lowering.relaxing import is_faster_relaxed
from armpy_numba_acc.lowering.stand_ins import stand_in_of
from armpy_numba_acc.lowering.tiles import BF16, F32, I16, I16_NARROW, ProductKind, tile_of
from armpy_numba_acc.lowering.weighted_checks import WIDE
from armpy_numba_acc.lowering.weighted_i16 import Finish, emit_i16
from armpy_numba_acc.lowering.weighted_real import UNBOUNDED, Rows, emit_real, pack_real
from armpy_numba_acc.machine import calls
from armpy_numba_acc.machine.memory import Address, Buffer
from armpy_numba_acc.packing.quantized import product_factor, zero_point_of
from armpy_numba_acc.packing.weights_i16 import SumRescaling, pack_pairs
from armpy_numba_acc.program.emitter import Emitter


def _factors_of(emit: Emitter, layer: Layer, depth: int) -> _Factors:
    """Return how a layer's matrices are multiplied."""
    if layer.output.info.data_type is not DataType.FLOAT32:
        return _IntegerFactors(emit, layer)
    is_relaxed = depth > 1 and is_faster_relaxed(emit.choices, layer)
    return _RealFactors(emit, layer, BF16 if is_relaxed else F32)


def lower_matrices(emit: Emitter, layer: Layer) -> None:
    """One product per pair of matrices; all of x at once where there is one y."""
    operation, output = expect(layer.operation, BatchMatMul), layer.output
    x, y = layer["x"], layer["y"]
    if output.info.data_type is WIDE:
        _lower_wide(emit, layer, operation)
        return
    *batches, rows, columns = output.info.known_shape
    depth = x.info.known_shape[-2 if operation.transpose_x else -1]
    if output.info.data_type is DataType.FLOAT32 and _lower_traced(emit, layer, depth):
        return
    factors = _factors_of(emit, layer, depth)
    source = _rows_of(factors, factors.source(x), x, operation.transpose_x)
    xs = _numbers_of(x)
    num_ys = prod(y.info.known_shape[:-2])
    pairs_of_x = prod(batches)
    if num_ys == 1 and xs.size == pairs_of_x:
        rows, pairs_of_x = rows * xs.size, 1
    patches = Patches(source, 1, 1, rows, 0, 0, depth * factors.size, (0,), depth)
    panels, ys = _panels_of(factors, y, operation.transpose_y, patches)
    target = emit.target(output)
    x_of, y_of = (np.broadcast_to(numbers, batches).ravel() for numbers in (xs, ys))
    size_out = output.info.data_type.size_bytes
    for at in range(pairs_of_x):
        size = rows * depth * factors.size
        part = replace(patches, source=source.part(int(x_of[at]) * size, size))
        factors.multiply(part, panels[int(y_of[at])], target.at(at * rows * columns * size_out))


def _lower_traced(emit: Emitter, layer: Layer, depth: int) -> bool:
    """Add one command for all pairs of matrices whose number, or that of columns, is traced."""
    operation, output = expect(layer.operation, BatchMatMul), layer.output
    x, y = layer["x"], layer["y"]
    *batches, rows, columns = output.info.known_shape
    pairs = prod(batches)
    numbers = [prod(value.info.known_shape[:-2]) for value in (x, y)]
    is_repeated = any(number not in (1, pairs) for number in numbers)
    if not is_traced(pairs, columns) or y.data is not None or is_repeated:
        return False
    factors = _RealFactors(emit, layer, F32)
    sources = [
        _rows_of(factors, emit.source(value), value, is_transposed)
        for value, is_transposed in ((x, operation.transpose_x), (y, operation.transpose_y))
    ]
    scratch_bytes = depth * emit.isa.vector_bytes
    call = calls.ProductsF32(
        x=sources[0],
        y=sources[1],
        target=emit.target(output),
        pairs=pairs,
        x_pitch=0 if numbers[0] == 1 else rows * depth * 4,
        y_pitch=0 if numbers[1] == 1 else depth * columns * 4,
        rows=rows,
        depth=depth,
        columns=columns,
        scratch=emit.scratch(scratch_bytes * emit.num_threads),
        scratch_bytes=scratch_bytes,
    )
    emit(call, layer.name, num_operations=2 * pairs * rows * depth * columns)
    return True


def _lower_wide(emit: Emitter, layer: Layer, operation: BatchMatMul) -> None:
    """Products of 16-bit elements, pair by pair of matrices."""
    x, y, output = layer["x"], layer["y"], layer.output
    *batches, rows, columns = output.info.known_shape
    depth = x.info.known_shape[-2 if operation.transpose_x else -1]
    as_stored = _IntegerFactors(emit, layer)
    xs, ys = (
        _rows_of(as_stored, emit.source(value), value, is_transposed)
        for value, is_transposed in ((x, operation.transpose_x), (y, operation.transpose_y))
    )
    real = np.array([product_factor(x.info, y.info, output.info)])
    factor, addend, shift, *_ = SumRescaling.once(real, np.zeros(1, np.int64)).lines[:, 0].tolist()
    target, scratch_bytes = emit.target(output), columns * 8
    x_of, y_of = (
        np.broadcast_to(numbers, batches).ravel() for numbers in (_numbers_of(x), _numbers_of(y))
    )
    for at, (x_number, y_number) in enumerate(zip(x_of.tolist(), y_of.tolist(), strict=True)):
        call = calls.ProductI16(
            x=xs.at(x_number * rows * depth * 2),
            y=ys.at(y_number * depth * columns * 2),
            target=target.at(at * rows * columns * 2),
            rows=rows,
            depth=depth,
            columns=columns,
            scratch=emit.scratch(scratch_bytes * emit.num_threads),
            scratch_bytes=scratch_bytes,
            factor=factor,
            addend=addend,
            shift=shift,
        )
        emit(call, layer.name, num_operations=2 * rows * depth * columns)


class _Factors(ABC):
    """Factors of matrix products, and how they are multiplied.

    Parameters
    ----------
    head_lines : int
        Lines in front of a panel's, for the bias.
    """

    def __init__(self, emit: Emitter, label: str, kind: ProductKind, head_lines: int) -> None:
        self.emit, self.label, self.kind, self.head_lines = emit, label, kind, head_lines
        self.size = kind.element_bytes

    @abstractmethod
    def source(self, value: Value) -> Buffer:
        """Place of an operand."""

    @abstractmethod
    def packed(self, matrix: Array, patches: Patches) -> Weights:
        """A matrix (columns, depth) of a constant operand."""

    @abstractmethod
    def multiply(self, patches: Patches, weights: Weights, target: Address) -> None:
        """Multiply patches by a packed matrix."""

    def packed_at(self, panels: Address, columns: int, patches: Patches) -> Weights:
        """A matrix that lies in memory as panels."""
        tile = tile_of(self.emit.choices, self.kind, patches, columns)
        lines = self.head_lines + self.kind.steps(patches)
        panel_bytes = lines * 4 * tile.width(self.emit.isa)
        return Weights(self.kind, panels, panel_bytes, columns, tile)


class _RealFactors(_Factors):
    """Products of float32 or of bfloat16."""

    def __init__(self, emit: Emitter, layer: Layer, kind: ProductKind) -> None:
        super().__init__(emit, layer.name, kind, head_lines=1)

    def source(self, value: Value) -> Buffer:
        return (self.emit.source_as_bfloat16 if self.kind is BF16 else self.emit.source)(value)

    def packed(self, matrix: Array, patches: Patches) -> Weights:
        return pack_real(self.emit, self.kind, patches, matrix[:, None], None)

    def multiply(self, patches: Patches, weights: Weights, target: Address) -> None:
        rows = Rows(target, weights.columns)
        emit_real(self.emit, patches, weights, rows, UNBOUNDED, self.label)


class _IntegerFactors(_Factors):
    """Products of bytes less their zero points, which take 16 bits: two at a time.

    Results are CpuRef's: sums are exact, and rounded twice in fixed point if they are rounded.
    """

    def __init__(self, emit: Emitter, layer: Layer) -> None:
        # Matrices that are computed are packed as constant ones are, which takes moves of whole
        # lines where elements lie one after the other in each register.
        kind = I16_NARROW if emit.isa.has_long_products else I16
        super().__init__(emit, layer.name, kind, head_lines=0)
        x, y, output = layer["x"].info, layer["y"].info, layer.output.info
        if output.data_type is DataType.SIGNED32:
            bounds = DataType.SIGNED32.integer_range
            self._finish = Finish(SumRescaling.none(), bounds, kind="i32", is_uniform=True)
            return
        real = np.array([product_factor(x, y, output)])
        rescaling = SumRescaling.twice(real, np.zeros(1, np.int64), has_negatives=True)
        zero_point = zero_point_of(output)
        bounds = -zero_point, 255 - zero_point
        self._finish = Finish(rescaling, bounds, zero_point, "u8", is_uniform=True)

    def source(self, value: Value) -> Buffer:
        """A copy of an operand with its zero point taken off."""
        operand, is_flipped = self.emit.flipped_source(value)
        centred = self.emit.scratch(2 * value.info.num_elements)
        zero_point = value.info.zero_point if is_flipped else zero_point_of(value.info)
        kind = "i8" if is_flipped else KINDS[value.info.data_type]
        emit_on_buffers(
            self.emit,
            "centre",
            [operand],
            [value.info.known_shape],
            value,
            self.label,
            parameters=(float(zero_point),),
            kinds=(kind, "i16"),
            target=centred,
        )
        return centred

    def packed(self, matrix: Array, patches: Patches) -> Weights:
        tile = tile_of(self.emit.choices, self.kind, patches, len(matrix))
        panels = pack_pairs(self.emit.isa, matrix[:, None], tile.width(self.emit.isa))
        return self.packed_at(self.emit.packed(panels).at(0), len(matrix), patches)

    def multiply(self, patches: Patches, weights: Weights, target: Address) -> None:
        columns = weights.columns
        emit_i16(self.emit, patches, weights, self._finish, 1, target, columns, self.label)


def _stand_in(value: Value, factors: _Factors) -> Array:
    return stand_in_of(value.info.known_shape, factors.size)


def _numbers_of(value: Value) -> Array:
    """The number of each matrix."""
    batches = value.info.known_shape[:-2]
    return np.arange(prod(batches)).reshape(batches)


def _rows_of(factors: _Factors, source: Buffer, x: Value, is_transposed: bool) -> Buffer:
    """Return where the rows of x lie one after the other."""
    emit = factors.emit
    if not is_transposed:
        return source
    whole = _stand_in(x, factors)
    swapped = whole.swapaxes(-1, -2)
    rows = stand_in_of(swapped.shape, factors.size)
    scratch = emit.scratch(rows.nbytes)
    emit_move(emit, Side(source, whole, swapped), Side(scratch, rows, rows), factors.label)
    return scratch


def _panels_of(
    factors: _Factors, y: Value, is_transposed: bool, patches: Patches
) -> tuple[list[Weights], Array]:
    """Every matrix of y as the kernel wants it, and the number of each."""
    batches, numbers = y.info.known_shape[:-2], _numbers_of(y)
    if y.data is not None:
        data = y.data
        if factors.kind in (I16, I16_NARROW):
            data = data.astype(np.int16) - np.int16(y.info.zero_point)
        data = data if is_transposed else data.swapaxes(-1, -2)
        matrices = data.reshape(-1, *data.shape[-2:])
        return [factors.packed(matrix, patches) for matrix in matrices], numbers
    whole = _stand_in(y, factors)
    matrices = whole.swapaxes(-1, -2) if is_transposed else whole
    emit, label, columns = factors.emit, factors.label, matrices.shape[-1]
    width = tile_of(emit.choices, factors.kind, patches, columns).width(emit.isa)
    slots, head = factors.kind.group, factors.head_lines
    lines = head + factors.kind.steps(patches)
    line = (slots, width) if factors.kind is I16_NARROW else (width, slots)
    panels = stand_in_of((*batches, -(-columns // width), lines, *line), factors.size)
    by_slot = panels if factors.kind is I16_NARROW else panels.swapaxes(-1, -2)
    scratch, source = emit.scratch(panels.nbytes), factors.source(y)
    if head or columns % width or patches.depth % slots:
        # Zeros stand for the bias, and for elements after the last column and line.
        emit_fill(emit, scratch, panels.nbytes, bytes(4), label)
    full = columns // width
    for slot in range(slots):
        source_part = matrices[..., slot::slots, :]
        places = by_slot[..., head : head + source_part.shape[-2], slot, :]
        inside = source_part[..., : full * width].reshape(*source_part.shape[:-1], full, width)
        parts = [
            (source_part[..., full * width :], places[..., full:, :, : columns - full * width])
        ]
        parts.append((inside.swapaxes(-2, -3), places[..., :full, :, :]))
        for from_, to in parts:
            if from_.size:
                side = Side(source, whole, from_.reshape(to.shape))
                emit_move(emit, side, Side(scratch, panels, to), label)
    size = panels.nbytes // numbers.size
    packed = [
        factors.packed_at(scratch.at(n * size), columns, patches) for n in range(numbers.size)
    ]
    return packed, numbers
