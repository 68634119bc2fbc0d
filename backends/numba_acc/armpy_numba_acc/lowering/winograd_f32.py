"""Winograd's algorithm: 3x3 convolutions of float32 with fewer multiplications."""

from __future__ import annotations

import numpy as np

from armpy.graph import Layer
from armpy.ops.operation import Array
from armpy_numba_acc.lowering.depthwise_f32 import fusion_of
from armpy_numba_acc.lowering.tiles import F32, Tile, product_ns, tiles_that_fit
from armpy_numba_acc.lowering.winograd import (
    MOST_WEIGHT_BYTES,
    Plan,
    may_be_winograd,
    operations_of,
    tiles_of,
)
from armpy_numba_acc.machine import calls
from armpy_numba_acc.packing.winograd import PAIRS, pack_winograd_f32
from armpy_numba_acc.program.choices import Choices
from armpy_numba_acc.program.emitter import Emitter
from armpy_numba_acc.program.estimate import num_pieces
from armpy_numba_acc.program.fusion import float_bounds

_ROWS = (8, 7, 14, 9, 12, 6, 4)
"""Tiles that are multiplied at once."""


def is_winograd(emit: Emitter, layer: Layer) -> bool:
    """Return whether a layer is computed faster this way.

    Sums depend on it in their last bits: it is decided by the size of one image, however many
    there are, and by nothing that may change from call to call.
    """
    if not may_be_winograd(layer, emit.isa.lanes, emit.isa.lanes):
        return False
    plan, choices = _plan_for(emit, layer), emit.choices
    if plan.weight_bytes > MOST_WEIGHT_BYTES:
        return False
    output = layer.output.info.known_shape
    shape = 1, output[1] * output[2], plan.columns, 9 * plan.depth
    costs = {
        (1,): plan.fastest_ns(choices, _tiles(choices)),
        (0,): min(product_ns(choices, F32, tile, shape) for tile in F32.tiles(emit.isa)),
    }
    key = (*output[1:], plan.depth)
    return choices.choose("winograd_f32 or not", key, [*costs], costs.__getitem__) == (1,)


def _plan_for(emit: Emitter, layer: Layer) -> Plan:
    """The tiles that an image takes least time with.

    Errors are relative to the largest sum. Where a clamp cuts sums off, which may be large for
    among the rest, tiles are preferred that are as precise as single products.
    """
    _, height, width, columns = layer.output.info.known_shape
    depth = layer["weights"].info.known_shape[3]
    is_cut = None not in emit.arrangement.fusions[layer].bounds
    plans = {
        (down, right): Plan.of(layer, down, right, 4)
        for down in PAIRS
        for right in PAIRS
        if down * right < 4 or not is_cut
    }
    chosen = emit.choices.choose(
        "winograd_f32 pixels",
        (height, width, columns, depth, int(is_cut)),
        [*plans],
        lambda option: plans[option].fastest_ns(emit.choices, _tiles(emit.choices)),
    )
    return plans[chosen]


def _tiles(choices: Choices) -> list[Tile]:
    """Tiles of the product that fit the registers."""
    return tiles_that_fit(choices.isa, _ROWS)


def lower_winograd_f32(emit: Emitter, layer: Layer, weights: Array) -> None:
    """Add the command of a convolution that `is_winograd`, and of its fused layers.

    Sums are two to three times less precise than those of multiplications one by one: they differ
    by some millionths of the largest output. An infinity in the input makes NaN of more pixels.
    """
    fusion, plan = fusion_of(emit, layer), _plan_for(emit, layer)
    tile = plan.tile_of(emit.choices, _tiles(emit.choices), "winograd_f32")
    packed = pack_winograd_f32(weights, (plan.down, plan.right), tile.width(emit.isa))
    num_operations = operations_of(layer, plan)
    pieces = num_pieces(calls.WinogradF32.work, emit.choices, num_operations)
    bias = layer.constant("bias")
    low, high = float_bounds(fusion.bounds)
    other = 0 if fusion.residual is None else emit.source(fusion.residual)
    call = calls.WinogradF32(
        down=plan.down,
        right=plan.right,
        product_rows=tile.rows,
        vectors=tile.vectors,
        tiles=tiles_of(emit, layer, plan, tile, packed, np.zeros(1, np.float32), other),
        bias=emit.constant(np.zeros(plan.columns, np.float32) if bias is None else bias),
        low=low,
        high=high,
    )
    emit(call, fusion.label(layer), num_operations=num_operations, num_pieces=pieces)
