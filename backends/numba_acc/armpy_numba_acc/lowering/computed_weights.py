"""Lowers convolutions and matrix products whose weights or bias are computed, in float32."""

from __future__ import annotations

import numpy as np

from armpy.graph import Layer
from armpy.ops.operation import Array
from armpy_numba_acc.lowering.filling import emit_fill
from armpy_numba_acc.lowering.moves import Side, emit_move, stand_in
from armpy_numba_acc.lowering.patches import patches_of
from armpy_numba_acc.lowering.products import Weights
from armpy_numba_acc.lowering.tiles import F32, tile_of
from armpy_numba_acc.lowering.weighted_real import emit_fused
from armpy_numba_acc.machine.memory import Buffer
from armpy_numba_acc.program.emitter import Emitter


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
    # Zeros stand for a bias that is left out, and for columns after the last one.
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
