"""Lowers convolutions and matrix products in float32."""

from __future__ import annotations

import numpy as np

from armpy.graph import Layer
from armpy.ops import Convolution2d, FusedActivation
from armpy.ops.operation import Array
from armpy.records import dataclass
from armpy_numba_acc.lowering.patches import (
    Patches,
    constant_of,
    patches_of_images,
    patches_of_vectors,
)
from armpy_numba_acc.lowering.tiles import panels_at_once, tile_of_f32, width_of
from armpy_numba_acc.lowering.winograd_f32 import is_winograd, lower_winograd_f32
from armpy_numba_acc.machine.kernel import Kernel
from armpy_numba_acc.machine.memory import Address, Buffer
from armpy_numba_acc.packing.weights import pack_panels_f32
from armpy_numba_acc.program.choices import Option
from armpy_numba_acc.program.emitter import Emitter
from armpy_numba_acc.program.estimate import num_pieces, work_of

SCRATCH_BYTES = 768
"""Of the kernel's tables, for each thread."""

_CACHED_BYTES = 512 << 10
"""Weights that are used for all pixels before the next ones."""


def bounds_of(activation: FusedActivation) -> tuple[float, float]:
    """Lowest and highest float32 of a fused activation."""
    low, high = activation.bounds
    return (-np.inf if low is None else low, np.inf if high is None else high)


def lower_f32(emit: Emitter, layer: Layer) -> None:
    """Add the command of a convolution or a matrix product, and of what is fused with it."""
    weights = constant_of(layer, 1)
    assert weights is not None
    if is_winograd(emit, layer):
        lower_winograd_f32(emit, layer, weights)
        return
    if isinstance(layer.operation, Convolution2d):
        patches = patches_of_images(emit, layer, 4, 0)
    else:
        patches = patches_of_vectors(emit, layer, 4)
    fusion = emit.fusions[layer]
    columns = weights.shape[0]
    residual = None if fusion.residual is None else emit.source(fusion.residual)
    low, high = fusion.bounds
    flat = weights.reshape(columns, -1)
    emit_product_f32(
        emit,
        patches,
        PackedF32.of(emit, flat, constant_of(layer, 2), patches.num_pixels),
        emit.target(fusion.output),
        columns * 4,
        (-np.inf if low is None else low, np.inf if high is None else high),
        " + ".join(each.name for each in (layer, *fusion.absorbed)),
        residual,
    )


@dataclass(frozen=True, slots=True)
class PackedF32:
    """Weights in memory as the kernel wants them.

    Parameters
    ----------
    panels : Buffer or Address
        As `armpy_numba_acc.packing.weights.pack_panels_f32` arranges them.
    columns : int
    depth : int
        Elements that are multiplied for each column.
    tile : tuple of int
        As `armpy_numba_acc.lowering.tiles.tile_of_f32` says.
    """

    panels: Buffer | Address
    columns: int
    depth: int
    tile: Option

    @classmethod
    def of(cls, emit: Emitter, weights: Array, bias: Array | None, num_pixels: int) -> PackedF32:
        """Pack constant weights (columns, depth) that so many pixels are multiplied with."""
        tile = tile_of_f32(emit.choices, num_pixels, weights.shape[0], weights.shape[1])
        panels = pack_panels_f32(weights, bias, width_of(emit.isa, tile))
        return cls(emit.constant(panels), weights.shape[0], weights.shape[1], tile)


def emit_product_f32(
    emit: Emitter,
    patches: Patches,
    weights: PackedF32,
    target: Buffer | Address,
    pitch: int,
    bounds: tuple[float, float],
    label: str,
    residual: Buffer | None = None,
) -> None:
    """Add the command that multiplies patches with weights.

    Parameters
    ----------
    target : Buffer or Address
        Where the first pixel's columns go.
    pitch : int
        Bytes from there to the next pixel's.
    bounds : (float, float)
        What the output is clamped to.
    residual : Buffer, optional
        Added before that; laid out as the target.
    """
    width = width_of(emit.isa, weights.tile)
    panel_bytes = 4 * (1 + weights.depth) * width
    low, high = bounds
    kernel = Kernel("convolution_f32", weights.tile)
    num_operations = 2 * patches.num_pixels * weights.columns * weights.depth
    pieces = num_pieces(work_of(kernel.symbol), emit.isa, num_operations)
    num_panels = -(-weights.columns // width)
    shape = (patches.num_pixels, num_panels, weights.depth)
    emit.command(
        kernel,
        (
            patches.source,
            target,
            0 if residual is None else residual,
            weights.panels,
            emit.constant(np.array(patches.taps, np.int64)),
            emit.scratch(SCRATCH_BYTES * emit.num_threads * pieces),
            len(patches.taps),
            patches.depth,
            weights.columns,
            *patches.layout,
            pitch,
            pitch,
            panel_bytes,
            panels_at_once(emit.choices, "convolution_f32", shape, panel_bytes, _CACHED_BYTES),
            float(low),
            float(high),
        ),
        label,
        num_operations=num_operations,
        num_pieces=pieces,
    )
