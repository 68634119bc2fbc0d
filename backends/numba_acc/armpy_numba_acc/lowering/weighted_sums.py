"""Lowers convolutions and matrix products of 8-bit tensors whose output is their sums.

Notes
-----
Sums are exact in int32: those of CpuRef.
"""

from __future__ import annotations

from functools import partial

from armpy.graph import Layer
from armpy.ops.operation import Array
from armpy_numba_acc.lowering.matrix_unit import plan_of
from armpy_numba_acc.lowering.operands import elements_of
from armpy_numba_acc.lowering.patches import Patches, patches_of
from armpy_numba_acc.lowering.products import Weights, emit_product, with_room
from armpy_numba_acc.lowering.tiles import SUMS, SUMS_MATRIX, tile_of
from armpy_numba_acc.lowering.weighted_scaling import largest_sums
from armpy_numba_acc.machine import calls
from armpy_numba_acc.machine.memory import Address, Buffer
from armpy_numba_acc.packing.origins import Part
from armpy_numba_acc.packing.quantized import zero_point_of
from armpy_numba_acc.packing.weights_u8 import pack_weights_sums
from armpy_numba_acc.program.emitter import Emitter


def lower_sums(emit: Emitter, layer: Layer) -> None:
    """Add the command of a convolution or a matrix product."""
    weights = elements_of(layer, "weights")
    patches = patches_of(emit, layer, 1, zero_point_of(layer["input"].info))
    patches, columns = with_room(emit, layer, patches, SUMS), len(weights)
    values = weights.reshape(columns, len(patches.taps), patches.depth)
    emit_filters_sums(emit, layer, patches, values, emit.target(layer.output), columns)


def emit_filters_sums(
    emit: Emitter,
    layer: Layer,
    patches: Patches,
    weights: Array,
    target: Buffer | Address,
    pitch: int,
    chosen: slice = slice(None),
    part: Part | None = None,
) -> None:
    """`filters.emit_filters` of sums; its parameters are described there, but for these.

    Parameters
    ----------
    patches
        See `with_room`.
    weights : ndarray, int8 or uint8, shape (columns, taps, depth)
    """
    columns, bias = len(weights), layer.constant("bias")
    largest_sums(layer, weights.reshape(columns, -1).T, chosen)
    plan = plan_of(emit, SUMS_MATRIX, SUMS, patches, columns)
    if plan is None:
        kind, tile = SUMS, tile_of(emit.choices, SUMS, patches, columns)
    else:
        kind, tile = SUMS_MATRIX, plan.tile(emit.isa)
    packed = pack_weights_sums(
        emit.isa,
        weights,
        layer["weights"].info.zero_point,
        None if bias is None else bias[chosen],
        zero_point_of(layer["input"].info),
        tile.width(emit.isa),
        *([] if plan is None else [plan.arranged]),
    )
    record = partial(
        calls.ConvolutionSums,
        depth=patches.depth,
        correction=packed.correction,
        has_corrections=int(packed.correction != 0),
    )
    memory = emit.packed(packed.packed.of(part)), packed.packed.pitch
    in_memory = Weights(kind, *memory, columns, tile, plan)
    emit_product(emit, patches, in_memory, record, target, pitch * 4, layer.name)
