"""Lowers convolutions and matrix products whose weights or bias are computed, in float32."""

from __future__ import annotations

import numpy as np

from armpy.graph import Layer
from armpy.ops import Convolution2d, DepthwiseConvolution2d
from armpy.ops.operands import Operands
from armpy.ops.operation import Array, OperandInfos, Operation
from armpy.types import DataType
from armpy_numba_acc.lowering.filling import emit_fill
from armpy_numba_acc.lowering.moves import Side, emit_move, stand_in
from armpy_numba_acc.lowering.patches import patches_of
from armpy_numba_acc.lowering.products import Weights
from armpy_numba_acc.lowering.tiles import F32, tile_of
from armpy_numba_acc.lowering.weighted_real import emit_fused
from armpy_numba_acc.machine.memory import Buffer
from armpy_numba_acc.program.emitter import Emitter


def has_computed_weights(inputs: OperandInfos) -> bool:
    """Whether weights or bias are no constants."""
    return any(info is not None and not info.is_constant for info in inputs[1:])


def check_computed(operation: Operation, inputs: OperandInfos) -> str:
    """float32, filters that see all channels."""
    operands = Operands(operation, inputs)
    source, weights = operands["input"], operands["weights"]
    if isinstance(operation, DepthwiseConvolution2d):
        return "the weights are not constant"
    if any(info is not None and info.data_type is not DataType.FLOAT32 for info in inputs):
        return "weights that are not constant are supported in FLOAT32 only"
    is_convolution = isinstance(operation, Convolution2d)
    if is_convolution and source.known_shape[3] != weights.known_shape[3]:
        return "groups of filters that are not constant are not supported"
    return ""


def lower_computed(emit: Emitter, layer: Layer) -> None:
    """Commands that arrange the weights, and the product."""
    patches, info = patches_of(emit, layer, F32.element_bytes), layer["weights"].info
    columns = info.known_shape[0]
    depth = info.num_elements // columns
    tile = tile_of(emit.choices, F32, patches, columns)
    width = tile.width(emit.isa)
    panels = _panels(emit, layer, (columns, depth), width)
    weights = Weights(F32, panels, (1 + depth) * width * 4, columns, tile)
    emit_fused(emit, layer, patches, weights)


def _panels(emit: Emitter, layer: Layer, shape: tuple[int, int], width: int) -> Buffer:
    """Weights and bias as `armpy_numba_acc.packing.weights_real.pack_panels_f32` arranges them."""
    columns, depth = shape
    panels: Array = np.empty((-(-columns // width), 1 + depth, width), np.float32)
    target = emit.scratch(panels.nbytes)
    # Zeros stand for a bias that is left out, and for columns behind the last one.
    emit_fill(emit, target, panels.nbytes, bytes(4), layer.name)
    full = columns // width * width
    for name, lines in (("weights", slice(1, None)), ("bias", slice(0, 1))):
        value = layer.operand(name)
        if value is None:
            continue
        whole = stand_in(value.info)
        matrix = whole.reshape(columns, -1)
        for first, last in ((0, full), (full, columns)):
            if first == last:
                continue
            size = min(width, last - first)
            part = matrix[first:last].reshape(-1, size, matrix.shape[1]).swapaxes(1, 2)
            to = panels[first // width : -(-last // width), lines, :size]
            sides = Side(emit.source(value), whole, part), Side(target, panels, to)
            emit_move(emit, *sides, layer.name)
    return target
