"""Winograd's algorithm: 3x3 convolutions of bytes, exactly, with fewer multiplications.

Notes
-----
Values of 16 bits are multiplied, which gains where products of bytes are made of such products:
without dot products of bytes.
"""

from __future__ import annotations

import numpy as np

from armpy.core.symbolic import is_traced
from armpy.graph import Layer
from armpy.ops.operation import Array
from armpy_numba_acc.lowering.depthwise_f32 import fusion_of
from armpy_numba_acc.lowering.tiles import U8, Tile, product_ns, tiles_that_fit
from armpy_numba_acc.lowering.weighted_scaling import Residual, Scaling
from armpy_numba_acc.lowering.winograd import (
    MOST_WEIGHT_BYTES,
    Plan,
    may_be_winograd,
    operations_of,
    tiles_of,
)
from armpy_numba_acc.machine import calls
from armpy_numba_acc.packing.quantized import zero_point_of
from armpy_numba_acc.packing.sorted_steps import cost_of_steps
from armpy_numba_acc.packing.weights_u8 import without_zero_point
from armpy_numba_acc.packing.winograd import pack_winograd_u8
from armpy_numba_acc.program.choices import Choices
from armpy_numba_acc.program.emitter import Emitter
from armpy_numba_acc.program.estimate import num_pieces

_ROWS = (12, 6, 8, 4, 3)
"""Tiles that are multiplied at once."""

_MOST_DEPTH = (1 << 29) // (9 * 255 * 255)
"""Channels whose sums, times four, fit 32 bits."""


def is_winograd_u8(emit: Emitter, layer: Layer, weights: Array) -> bool:
    """Return whether a layer is computed faster this way than by steps, sorted or not."""
    isa, choices, output = emit.isa, emit.choices, layer.output.info.known_shape
    if not isa.has_saturating_bytes or not may_be_winograd(layer):
        return False
    *window, depth = layer["weights"].info.known_shape
    if len(window) != 3 or window[0] % isa.lanes or depth % (2 * isa.lanes):
        return False
    if is_traced(*output[1:3]):
        return False
    plan = Plan.of(layer, 1, 1, 2)
    if plan.weight_bytes > MOST_WEIGHT_BYTES or plan.depth > _MOST_DEPTH:
        return False
    shape = 1, output[1] * output[2], plan.columns, 3 * -(-3 * plan.depth // U8.group)
    direct = {tile: product_ns(choices, U8, tile, shape) for tile in U8.tiles(isa)}
    tile = min(direct, key=direct.__getitem__)
    fewer_ns = plan.fastest_ns(choices, _tiles(choices))
    if fewer_ns > direct[tile]:
        return False
    values = weights.reshape(plan.columns, 3, -1).astype(np.int16)
    values -= np.int16(layer["weights"].info.zero_point)
    steps_ns = cost_of_steps(values, tile.width(isa)) * direct[tile]
    key = (*output[1:], plan.depth, round(100 * steps_ns / direct[tile]))
    costs = {(1,): fewer_ns, (0,): steps_ns}
    return choices.choose("winograd_u8 or not", key, [*costs], costs.__getitem__) == (1,)


def _tiles(choices: Choices) -> list[Tile]:
    """Tiles of the product that fit the registers."""
    return tiles_that_fit(choices.isa, _ROWS, others=2)


def lower_winograd_u8(emit: Emitter, layer: Layer, weights: Array) -> None:
    """Add the command of a convolution that `is_winograd_u8`, and of its fused layers."""
    fusion, plan = fusion_of(emit, layer), Plan.of(layer, 1, 1, 2)
    tile = plan.tile_of(emit.choices, _tiles(emit.choices), "winograd_u8")
    zero_point = zero_point_of(layer["input"].info)
    lines = weights.reshape(len(weights), 9, -1)
    values, bias, _ = without_zero_point(
        emit.isa, lines, layer["weights"].info.zero_point, layer.constant("bias"), zero_point
    )
    packed = pack_winograd_u8(values.reshape(weights.shape), tile.width(emit.isa))
    scaling = Scaling.of(layer, lines, slice(None))
    residual = Residual.of(emit, layer, fusion)
    num_operations = operations_of(layer, plan)
    pieces = num_pieces(calls.WinogradU8.work, emit.choices, num_operations)
    call = calls.WinogradU8(
        product_rows=tile.rows,
        vectors=tile.vectors,
        has_negatives=int(scaling.has_negatives),
        has_bounds=int(scaling.has_bounds if residual is None else residual.has_bounds),
        has_large_scales=int(scaling.has_large_scales),
        is_imprecise=int(scaling.is_imprecise),
        has_residual=int(residual is not None),
        tiles=tiles_of(
            emit,
            layer,
            plan,
            tile,
            packed,
            np.array([zero_point], np.uint8),
            0 if residual is None else residual.source,
        ),
        bias=emit.constant(bias),
        scales=emit.constant(scaling.factors.scales),
        nudges=emit.constant(scaling.factors.nudges),
        exact=emit.constant(scaling.factors.exact),
        sum=0 if residual is None else residual.parameters,
        zero_point=scaling.zero_point,
        low=scaling.low,
        high=scaling.high,
    )
    emit(call, fusion.label(layer), num_operations=num_operations, num_pieces=pieces)
