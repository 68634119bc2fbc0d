"""Lowers convolutions and matrix products whose weights or bias are computed, in float32."""

from __future__ import annotations

import numpy as np

from armpy.graph import Layer, Value
from armpy.ops import Convolution2d, DepthwiseConvolution2d
from armpy.ops.operation import Array, OperandInfos, Operation
from armpy.types import DataType
from armpy_numba_acc.lowering.depthwise_f32 import fusion_of
from armpy_numba_acc.lowering.filling import emit_fill
from armpy_numba_acc.lowering.moves import Side, emit_move, stand_in
from armpy_numba_acc.lowering.patches import input_of, patches_of_images, patches_of_vectors
from armpy_numba_acc.lowering.tiles import tile_of_f32, width_of
from armpy_numba_acc.lowering.weighted_f32 import PackedF32, emit_product_f32
from armpy_numba_acc.machine.memory import Buffer
from armpy_numba_acc.program.emitter import Emitter


def has_computed_weights(inputs: OperandInfos) -> bool:
    """Whether weights or bias are no constants."""
    return any(info is not None and not info.is_constant for info in inputs[1:])


def check_computed(operation: Operation, inputs: OperandInfos) -> str:
    """float32, filters that see all channels."""
    source, weights = inputs[0], inputs[1]
    assert source is not None
    assert weights is not None
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
    if isinstance(layer.operation, Convolution2d):
        patches = patches_of_images(emit, layer, 4, 0)
    else:
        patches = patches_of_vectors(emit, layer, 4)
    info = input_of(layer, 1).info
    columns = info.known_shape[0]
    depth = info.num_elements // columns
    tile = tile_of_f32(emit.choices, patches.num_pixels, columns, depth)
    panels = _panels(emit, layer, (columns, depth), width_of(emit.isa, tile))
    fusion = fusion_of(emit, layer)
    low, high = fusion.bounds
    emit_product_f32(
        emit,
        patches,
        PackedF32(panels, columns, depth, tile),
        emit.target(fusion.output),
        columns * 4,
        (-np.inf if low is None else low, np.inf if high is None else high),
        " + ".join(each.name for each in (layer, *fusion.absorbed)),
        None if fusion.residual is None else emit.source(fusion.residual),
    )


def _panels(emit: Emitter, layer: Layer, shape: tuple[int, int], width: int) -> Buffer:
    """Weights and bias as `armpy_numba_acc.packing.weights.pack_panels_f32` arranges them."""
    columns, depth = shape
    panels: Array = np.empty((-(-columns // width), 1 + depth, width), np.float32)
    target = emit.scratch(panels.nbytes)
    # Zeros stand for a bias that is left out, and for columns behind the last one.
    emit_fill(emit, target, panels.nbytes, bytes(4), layer.name)
    bias = layer.inputs[2] if len(layer.inputs) > 2 else None
    given: list[tuple[Value | None, slice]] = [
        (input_of(layer, 1), slice(1, None)),
        (bias, slice(0, 1)),
    ]
    full = columns // width * width
    for value, lines in given:
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
