"""Adds products of patches with packed weights, of any kind: the one way to the product kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from armpy.core.dataclass import dataclass
from armpy.graph import Layer
from armpy_numba_acc.lowering.matrix_unit import MatrixPlan
from armpy_numba_acc.lowering.patches import Patches
from armpy_numba_acc.lowering.tiles import ProductKind, Tile, panels_at_once
from armpy_numba_acc.machine import calls
from armpy_numba_acc.machine.call import Pointer
from armpy_numba_acc.machine.memory import Address, Buffer
from armpy_numba_acc.machine.space import Space
from armpy_numba_acc.program.emitter import Emitter
from armpy_numba_acc.program.estimate import num_pieces

Record: TypeAlias = Callable[..., calls.ProductCall]
"""Makes a kernel's record of what all products have: the record, with its own fields filled."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights in memory as a kernel wants them."""

    kind: ProductKind
    panels: Buffer | Address  # as wide as the tile
    panel_bytes: int
    columns: int
    tile: Tile
    plan: MatrixPlan | None = None  # where a matrix unit computes the product
    skipped_taps: int = 0  # in front of the first one that is multiplied


def emit_product(
    emit: Emitter,
    patches: Patches,
    weights: Weights,
    record: Record,
    target: Buffer | Address,
    pitch_bytes: int,
    label: str,
    *,
    at_once: int = 0,
) -> None:
    """Add the command that multiplies patches with weights.

    Parameters
    ----------
    record : callable
        See `Record`.
    target
        Where the first pixel's columns go.
    pitch_bytes
        From there to the next pixel's.
    at_once
        Panels that are used for all pixels before the next ones; chosen if left out.
    """
    kind, tile, width = weights.kind, weights.tile, weights.tile.width(emit.isa)
    num_pixels, height, line, image_pitch, row_pitch, pixel_pitch = patches.layout
    if not at_once:
        shape = (num_pixels, -(-weights.columns // width), kind.steps(patches))
        at_once = panels_at_once(emit.choices, kind, shape, weights.panel_bytes)
    steps = (patches.depth + (0 if kind.splits_odd else kind.group - 1)) // kind.group
    num_operations = 2 * num_pixels * weights.columns * len(patches.taps) * patches.depth
    plan, rows = weights.plan, tile.rows
    walk: Pointer = 0
    scratch: Pointer = 0
    if plan is not None:
        walk = emit.constant(plan.words(emit, patches, kind.element_bytes))
        rows = plan.rows
        if plan.gathers:
            scratch = emit.scratch(plan.gathered_bytes * emit.num_threads)
    call = record(
        kernel_name=kind.name,
        source=patches.source,
        target=target,
        weights=weights.panels,
        taps=emit.table([patches.taps]),
        num_taps=len(patches.taps),
        steps=steps,
        columns=weights.columns,
        num_pixels=num_pixels,
        out_height=height,
        out_width=line,
        image_pitch=image_pitch,
        row_pitch=row_pitch,
        pixel_pitch=pixel_pitch,
        out_pitch=pitch_bytes,
        panel_bytes=weights.panel_bytes,
        skipped_bytes=weights.skipped_taps * steps * kind.group * kind.element_bytes * width,
        panels_at_once=at_once,
        rows=rows,
        width=width,
        has_table=int(tile.has_table),
        walk=walk,
        scratch=scratch,
        tile_rows=tile.rows,
        tile_vectors=tile.vectors,
    )
    pieces = num_pieces(call.work, emit.choices, num_operations)
    emit(call, label, num_operations=num_operations, num_pieces=pieces)


def with_room(emit: Emitter, layer: Layer, patches: Patches, kind: ProductKind) -> Patches:
    """The same with a copy of the caller's tensor if elements after it would be read."""
    if patches.source.space is not Space.TENSORS or patches.depth % kind.group == 0:
        return patches
    size = layer["input"].info.size_bytes
    copy = emit.scratch(size)
    call = calls.Copy(source=patches.source, target=copy, size=size)
    emit(call, f"copy {layer.name}", part="copy")
    return replace(patches, source=copy)
