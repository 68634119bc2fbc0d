"""Lowers convolutions and matrix products of float32 tensors that may be computed with bfloat16.

Notes
-----
Weights and inputs are rounded to bfloat16; products are added up in float32, two at a time.
"""

from __future__ import annotations

import numpy as np

from armpy.graph import Layer
from armpy.ops import Convolution2d
from armpy.ops.operation import Array
from armpy.records import dataclass
from armpy_numba_acc.lowering.patches import (
    Patches,
    constant_of,
    input_of,
    patches_of_images,
    patches_of_vectors,
)
from armpy_numba_acc.lowering.tiles import Tile, panels_at_once, tile_of_bf16
from armpy_numba_acc.machine.kernel import Kernel
from armpy_numba_acc.machine.memory import Address, Buffer
from armpy_numba_acc.packing.weights_bf16 import pack_panels_bf16
from armpy_numba_acc.program.emitter import SIZES, Emitter
from armpy_numba_acc.program.estimate import num_pieces, work_of

_CACHED_BYTES = 512 << 10
"""Weights that are used for all pixels before the next ones."""


@dataclass(frozen=True, slots=True)
class Rows:
    """What a product writes, or adds to what it writes.

    Parameters
    ----------
    place : Buffer or Address
        Of the first pixel's columns.
    pitch : int
        Elements from there to the next pixel's.
    kind : {"f32", "bf16"}
        How they are kept.
    """

    place: Buffer | Address
    pitch: int
    kind: str = "f32"

    @property
    def pitch_bytes(self) -> int:
        """Bytes from one pixel to the next."""
        return self.pitch * SIZES[self.kind]


@dataclass(frozen=True, slots=True)
class PackedBf16:
    """Weights in memory as the kernel wants them.

    Parameters
    ----------
    panels : Buffer or Address
        As `armpy_numba_acc.packing.weights_bf16.pack_panels_bf16` arranges them.
    columns : int
    tile : Tile
        The panels are as wide as its vectors.
    """

    panels: Buffer | Address
    columns: int
    tile: Tile

    @classmethod
    def of(cls, emit: Emitter, patches: Patches, weights: Array, bias: Array | None) -> PackedBf16:
        """Pack constant weights (columns, taps, depth) that patches are multiplied with."""
        columns = len(weights)
        tile = tile_of_patches(emit, patches, columns)
        panels = pack_panels_bf16(weights, bias, tile.vectors * emit.isa.lanes)
        return cls(emit.constant(panels), columns, tile)


def steps_of(patches: Patches) -> int:
    """Pairs of elements that are multiplied for each element of the output."""
    return len(patches.taps) * -(-patches.depth // 2)


def tile_of_patches(emit: Emitter, patches: Patches, columns: int) -> Tile:
    """The tile that computes the product of patches with so many columns fastest."""
    num_pixels, _, line, *_ = patches.layout
    return tile_of_bf16(emit.choices, num_pixels // line, line, columns, steps_of(patches))


def lower_bf16(emit: Emitter, layer: Layer) -> None:
    """Add the command of a convolution or a matrix product, and of what is fused with it."""
    weights, source = constant_of(layer, 1), emit.source_of_halves(input_of(layer, 0))
    assert weights is not None
    if isinstance(layer.operation, Convolution2d):
        patches = patches_of_images(emit, layer, 2, 0, source)
    else:
        patches = patches_of_vectors(emit, layer, 2, source)
    fusion, columns = emit.fusions[layer], len(weights)
    flat = weights.reshape(columns, len(patches.taps), patches.depth)
    packed = PackedBf16.of(emit, patches, flat, constant_of(layer, 2))
    residual = None
    if (other := fusion.residual) is not None:
        residual = Rows(emit.source_as_kept(other), columns, emit.kind_of(other))
    low, high = fusion.bounds
    emit_product_bf16(
        emit,
        patches,
        packed,
        Rows(emit.target(fusion.output), columns, emit.kind_of(fusion.output)),
        (-np.inf if low is None else low, np.inf if high is None else high),
        " + ".join(each.name for each in (layer, *fusion.absorbed)),
        residual,
    )


def emit_product_bf16(
    emit: Emitter,
    patches: Patches,
    weights: PackedBf16,
    output: Rows,
    bounds: tuple[float, float],
    label: str,
    residual: Rows | None = None,
) -> None:
    """Add the command that multiplies patches of bfloat16 with weights.

    Parameters
    ----------
    patches : Patches
        At least two elements deep.
    bounds : (float, float)
        What the output is clamped to.
    residual : Rows, optional
        Added before that.
    """
    tile, width = weights.tile, weights.tile.vectors * emit.isa.lanes
    low, high = bounds
    added = "" if residual is None else residual.kind
    shape = (tile.rows, tile.vectors, int(tile.has_table), patches.depth % 2)
    kernel = Kernel("convolution_bf16", (*shape, added, output.kind))
    steps, num_taps = steps_of(patches), len(patches.taps)
    panel_bytes = (1 + steps) * width * 4
    num_operations = 2 * patches.num_pixels * weights.columns * num_taps * patches.depth
    product = (patches.num_pixels, -(-weights.columns // width), steps)
    emit.command(
        kernel,
        (
            patches.source,
            output.place,
            weights.panels,
            emit.constant(np.array(patches.taps, np.int64)),
            num_taps,
            patches.depth // 2,
            weights.columns,
            *patches.layout,
            output.pitch_bytes,
            panel_bytes,
            panels_at_once(emit.choices, "convolution_bf16", product, panel_bytes, _CACHED_BYTES),
            tile.rows,
            width,
            int(tile.has_table),
            0 if residual is None else residual.place,
            0 if residual is None else residual.pitch_bytes,
            float(low),
            float(high),
            0 if residual is None else SIZES[residual.kind],
            SIZES[output.kind],
        ),
        label,
        num_operations=num_operations,
        num_pieces=num_pieces(work_of(kernel.symbol), emit.isa, num_operations),
    )
