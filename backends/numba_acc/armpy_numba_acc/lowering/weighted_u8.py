"""Lowers convolutions and matrix products of 8-bit tensors."""

from __future__ import annotations

from functools import partial

import numpy as np

from armpy.core.symbolic import is_traced
from armpy.graph import Layer
from armpy.ops.operation import Array
from armpy_numba_acc.lowering.depthwise_f32 import fusion_of
from armpy_numba_acc.lowering.matrix_unit import plan_of
from armpy_numba_acc.lowering.operands import elements_of
from armpy_numba_acc.lowering.patches import Patches, patches_of
from armpy_numba_acc.lowering.products import Weights, emit_product, with_room
from armpy_numba_acc.lowering.tiles import U8, U8_MATRIX, U8_PAIRED, U8_SORTED, tile_of
from armpy_numba_acc.lowering.weighted_scaling import Residual, Scaling
from armpy_numba_acc.lowering.winograd_u8 import is_winograd_u8, lower_winograd_u8
from armpy_numba_acc.machine import calls
from armpy_numba_acc.machine.memory import Address, Buffer
from armpy_numba_acc.packing.origins import Part
from armpy_numba_acc.packing.quantized import zero_point_of
from armpy_numba_acc.packing.sorted_steps import sorted_lines
from armpy_numba_acc.packing.weights_u8 import pack_weights_u8
from armpy_numba_acc.program.emitter import Emitter


def lower_u8(emit: Emitter, layer: Layer) -> None:
    """Add the command of a convolution or a matrix product, and of its fused layers."""
    weights, fusion = elements_of(layer, "weights"), fusion_of(emit, layer)
    if is_winograd_u8(emit, layer, weights):
        lower_winograd_u8(emit, layer, weights)
        return
    patches = patches_of(emit, layer, 1, zero_point_of(layer["input"].info))
    columns = len(weights)
    emit_filters_u8(
        emit,
        layer,
        with_room(emit, layer, patches, U8),
        weights.reshape(columns, len(patches.taps), patches.depth),
        emit.target(fusion.output),
        columns,
        residual=Residual.of(emit, layer, fusion),
        label=fusion.label(layer),
    )


def emit_filters_u8(
    emit: Emitter,
    layer: Layer,
    patches: Patches,
    weights: Array,
    target: Buffer | Address,
    pitch: int,
    chosen: slice = slice(None),
    part: Part | None = None,
    *,
    residual: Residual | None = None,
    label: str = "",
) -> None:
    """`filters.emit_filters` of 8 bits; its parameters are described there, but for these.

    Results are exactly those of TFLite's arithmetic: see `ExactScaling`.

    Parameters
    ----------
    patches
        See `with_room`.
    weights : ndarray, int8 or uint8, shape (columns, taps, depth)
    residual
        The addend of the layer's output.
    label
        The layer's name if left out.
    """
    columns, bias = len(weights), layer.constant("bias")
    plan = plan_of(emit, U8_MATRIX, U8, patches, columns)
    if plan is None and emit.isa.has_paired_products and patches.num_pixels > 1:
        kind, patches = U8_PAIRED, with_room(emit, layer, patches, U8_PAIRED)
        tile = tile_of(emit.choices, kind, patches, columns)
    elif plan is None:
        kind, tile = U8, tile_of(emit.choices, U8, patches, columns)
    else:
        kind, tile = U8_MATRIX, plan.tile(emit.isa)
    zero_point, lines = layer["weights"].info.zero_point, None
    if kind is U8 and emit.isa.has_saturating_bytes and not is_traced(*patches.taps):
        values = weights.astype(np.int16) - np.int16(zero_point)
        lines = sorted_lines(emit.isa, values, tile.width(emit.isa), patches.taps)
        kind = U8 if lines is None else U8_SORTED
    scaling = Scaling.of(layer, weights, chosen)
    pack = pack_weights_u8 if plan is None else partial(pack_weights_u8, arranged=plan.arranged)
    packed = pack(
        emit.isa,
        weights,
        zero_point,
        None if bias is None else bias[chosen],
        scaling.factors,
        zero_point_of(layer["input"].info),
        tile.width(emit.isa),
        group=kind.group,
        lines=lines,
    )
    record = partial(
        calls.ConvolutionU8,
        depth=patches.depth,
        correction=packed.correction,
        zero_point=scaling.zero_point,
        low=scaling.low,
        high=scaling.high,
        residual=0 if residual is None else residual.source,
        sum=0 if residual is None else residual.parameters,
        has_corrections=int(packed.correction != 0),
        has_negatives=int(scaling.has_negatives),
        has_bounds=int(scaling.has_bounds if residual is None else residual.has_bounds),
        has_large_scales=int(scaling.has_large_scales),
        is_imprecise=int(scaling.is_imprecise),
        has_residual=int(residual is not None),
    )
    memory = emit.packed(packed.packed.of(part)), packed.packed.pitch
    in_memory = Weights(kind, *memory, columns, tile, plan)
    emit_product(emit, patches, in_memory, record, target, pitch, label or layer.name)
