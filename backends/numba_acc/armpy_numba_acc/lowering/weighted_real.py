"""Lowers convolutions and matrix products of float32, also those computed with bfloat16.

Notes
-----
With bfloat16, weights and inputs are rounded; products are added up in float32, two at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from armpy.core.dataclass import dataclass
from armpy.graph import Layer, Value
from armpy.ops.operation import Array
from armpy_numba_acc.lowering.depthwise_f32 import fusion_of
from armpy_numba_acc.lowering.matrix_unit import plan_of
from armpy_numba_acc.lowering.operands import elements_of
from armpy_numba_acc.lowering.patches import (
    Patches,
    SlicePatches,
    patches_by_slice,
    patches_of,
)
from armpy_numba_acc.lowering.products import Record, Weights, emit_product
from armpy_numba_acc.lowering.tiles import (
    BF16,
    BF16_MATRIX,
    BF16_PAIRED,
    F32,
    ProductKind,
    tile_of,
)
from armpy_numba_acc.lowering.winograd_f32 import is_winograd, lower_winograd_f32
from armpy_numba_acc.machine import calls
from armpy_numba_acc.machine.formats import FORMAT_BYTES
from armpy_numba_acc.machine.memory import Address, Buffer
from armpy_numba_acc.packing.origins import Part
from armpy_numba_acc.packing.weights_real import (
    pack_panels_bf16,
    pack_panels_bf16_paired,
    pack_panels_f32,
)
from armpy_numba_acc.program.emitter import Emitter
from armpy_numba_acc.program.fusion import Bounds, float_bounds

UNBOUNDED: Bounds = (None, None)


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows that a product writes, or adds to its output."""

    place: Buffer | Address  # of the first pixel's columns
    pitch: int  # elements from there to the next pixel's
    kind: str = "f32"  # how they are kept

    @property
    def pitch_bytes(self) -> int:
        """Bytes from one pixel to the next."""
        return self.pitch * FORMAT_BYTES[self.kind]


def lower_real(emit: Emitter, layer: Layer, kind: ProductKind) -> None:
    """Add the command of a convolution or a matrix product, and of its fused layers."""
    weights = elements_of(layer, "weights")
    if kind is F32 and is_winograd(emit, layer):
        lower_winograd_f32(emit, layer, weights)
        return
    source = emit.source_as_bfloat16(layer["input"]) if kind is BF16 else None
    parts = patches_by_slice(emit, layer, kind.element_bytes) if kind is F32 else []
    if parts:
        _lower_by_slice(emit, layer, weights, parts)
        return
    patches = patches_of(emit, layer, kind.element_bytes, source=source)
    flat = weights.reshape(len(weights), len(patches.taps), patches.depth)
    packed = pack_real(emit, kind, patches, flat, layer.constant("bias"))
    emit_fused(emit, layer, patches, packed)


def _lower_by_slice(
    emit: Emitter, layer: Layer, weights: Array, parts: Sequence[SlicePatches]
) -> None:
    """Add a command for all slices whose windows see the same of their slices."""
    largest = max(parts, key=lambda part: part.patches.num_pixels * len(part.patches.taps)).patches
    flat = weights.reshape(len(weights), -1, largest.depth)
    packed = pack_real(emit, F32, largest, flat, layer.constant("bias"))
    for part in parts:
        tile = packed.tile._replace(has_table=part.patches.layout[1] > 1)
        some = replace(packed, tile=tile, skipped_taps=part.skipped_taps)
        emit_fused(emit, layer, part.patches, some, part.first_pixel)


def emit_fused(
    emit: Emitter, layer: Layer, patches: Patches, weights: Weights, first_pixel: int = 0
) -> None:
    """Add the command of a layer's product, from a pixel on, and of its fused layers."""
    fusion, columns = fusion_of(emit, layer), weights.columns

    def rows(buffer: Buffer, value: Value) -> Rows:
        kind = emit.kind_of(value)
        return Rows(buffer.at(first_pixel * columns * FORMAT_BYTES[kind]), columns, kind)

    residual = None
    if (other := fusion.residual) is not None:
        residual = rows(emit.source_as_kept(other), other)
    output = rows(emit.target(fusion.output), fusion.output)
    label = fusion.label(layer)
    emit_real(emit, patches, weights, output, fusion.bounds, label, residual)


def pack_real(
    emit: Emitter,
    kind: ProductKind,
    patches: Patches,
    weights: Array,
    bias: Array | None,
    part: Part | None = None,
) -> Weights:
    """Pack constant weights (columns, taps, depth) that patches are multiplied with."""
    if kind is BF16:
        plan = plan_of(emit, BF16_MATRIX, BF16, patches, len(weights))
        if plan is not None:
            tile = plan.tile(emit.isa)
            packed = pack_panels_bf16(plan.arranged(weights), bias, tile.width(emit.isa))
            memory = emit.packed(packed), packed.pitch
            return Weights(BF16_MATRIX, *memory, len(weights), tile, plan)
    pack = pack_panels_f32 if kind is F32 else pack_panels_bf16
    if kind is BF16 and emit.isa.has_paired_products:
        kind, pack = BF16_PAIRED, pack_panels_bf16_paired
    tile = tile_of(emit.choices, kind, patches, len(weights))
    packed = pack(weights, bias, tile.width(emit.isa))
    if kind is F32:
        packed = packed.of(part)
    return Weights(kind, emit.packed(packed), packed.pitch, len(weights), tile)


def emit_real(
    emit: Emitter,
    patches: Patches,
    weights: Weights,
    output: Rows,
    bounds: Bounds,
    label: str,
    residual: Rows | None = None,
) -> None:
    """Add the command that multiplies patches with weights.

    Parameters
    ----------
    patches
        Of bfloat16, at least two elements deep, if the weights are.
    bounds
        Bounds of the output.
    residual
        Added before that.
    """
    low, high = float_bounds(bounds)
    added = "" if residual is None else residual.kind
    record: Record = partial(
        calls.ConvolutionF32,
        half_vectors=weights.tile.half_vectors,
        has_residual=int(residual is not None),
    )
    if weights.kind is BF16:
        record = partial(
            calls.ConvolutionBf16,
            is_odd=patches.depth % BF16.group,
            residual_format=added,
            output_format=output.kind,
        )
    elif weights.kind is BF16_MATRIX:
        record = partial(
            calls.ConvolutionBf16Matrix, residual_format=added, output_format=output.kind
        )
    elif weights.kind is BF16_PAIRED:
        record = partial(
            calls.ConvolutionBf16Pairs,
            rest=patches.depth % BF16_PAIRED.group,
            residual_format=added,
            output_format=output.kind,
        )
    record = partial(
        record,
        low=low,
        high=high,
        residual=0 if residual is None else residual.place,
        residual_pitch=0 if residual is None else residual.pitch_bytes,
    )
    emit_product(emit, patches, weights, record, output.place, output.pitch_bytes, label)
