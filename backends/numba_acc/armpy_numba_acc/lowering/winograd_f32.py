"""Winograd's algorithm: 3x3 convolutions of float32 with fewer multiplications."""

from __future__ import annotations

import numpy as np

from armpy.graph import Layer
from armpy.ops import Convolution2d
from armpy.ops.operation import Array
from armpy.ops.shapes import resolve_padding
from armpy.records import dataclass
from armpy_numba_acc.lowering.operands import expect
from armpy_numba_acc.machine import calls
from armpy_numba_acc.packing.winograd import PAIRS, pack_winograd_f32
from armpy_numba_acc.program.choices import Choices
from armpy_numba_acc.program.emitter import Emitter
from armpy_numba_acc.program.estimate import num_pieces
from armpy_numba_acc.program.fusion import float_bounds

_LEAST_CHANNELS = 16
"""With fewer the transforms cost what the multiplications save."""

_MOST_WEIGHT_BYTES = 5 << 19
"""Weights grow to up to four times their size, and have to come from the cache."""

_BATCH_BYTES = 1 << 16
"""Values and products of the tiles that are computed at once."""

_TILES = {64: ((8, 1), (4, 2)), 32: ((6, 2), (12, 1)), 16: ((4, 2), (8, 1))}
"""Rows and vectors of a product by the registers' width in bytes."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """How a layer is computed: half the pixels of a tile in each direction, and how many."""

    down: int
    right: int
    num_tiles: int

    @property
    def num_positions(self) -> int:
        """Multiplications for each tile and pair of channels."""
        return (2 * self.down + 2) * (2 * self.right + 2)

    @property
    def num_products(self) -> int:
        """Multiplications for each pair of channels."""
        return self.num_tiles * self.num_positions


def is_winograd(emit: Emitter, layer: Layer) -> bool:
    """Whether a layer is computed faster this way."""
    operation = layer.operation
    if not isinstance(operation, Convolution2d):
        return False
    weights, output = layer["weights"].info.known_shape, layer.output.info.known_shape
    is_simple = operation.stride == (1, 1) == operation.dilation
    columns, _, _, depth = weights
    if weights[1:3] != (3, 3) or not is_simple or min(columns, depth) < _LEAST_CHANNELS:
        return False
    if columns % emit.isa.lanes or depth % emit.isa.lanes:
        return False
    plan = _plan_for(emit, layer)
    num_products = output[0] * output[1] * output[2] * 9
    if 4 * plan.num_positions * columns * depth > _MOST_WEIGHT_BYTES:
        return False
    costs = {(1,): plan.num_products, (0,): 0.6 * num_products}
    shape = (*output, depth)
    return emit.choices.choose("winograd_f32 or not", shape, [*costs], costs.__getitem__) == (1,)


def _plan_for(emit: Emitter, layer: Layer) -> _Plan:
    """The tiles that take the fewest multiplications.

    Notes
    -----
    Errors are relative to the largest sum. Where a clamp cuts sums off, which may be large for
    what is left of them, tiles are preferred that are as precise as single products.
    """
    images, height, width, _ = layer.output.info.known_shape
    is_cut = None not in emit.fusions[layer].bounds
    plans = {
        (down, right): _Plan(
            down, right, images * -(-height // (2 * down)) * -(-width // (2 * right))
        )
        for down in PAIRS
        for right in PAIRS
        if down * right < 4 or not is_cut
    }
    shape = (*layer.output.info.known_shape, layer["weights"].info.known_shape[3])
    chosen = emit.choices.choose(
        "winograd_f32 pixels", shape, [*plans], lambda option: plans[option].num_products
    )
    return plans[chosen]


def _tile_of(choices: Choices, num_tiles: int, columns: int) -> tuple[int, int]:
    """Rows and vectors of the product that takes the fewest cycles."""

    def cycles(tile: tuple[int, int]) -> int:
        rows, vectors = tile
        panels = -(-columns // (vectors * choices.isa.lanes))
        return -(-num_tiles // rows) * panels * rows * vectors

    options = _TILES[choices.isa.vector_bytes]
    return choices.choose("winograd_f32 tile", (num_tiles, columns), options, cycles)


def lower_winograd_f32(emit: Emitter, layer: Layer, weights: Array) -> None:
    """Add the command of a convolution that `is_winograd`, and of what is fused with it.

    Notes
    -----
    Sums are two to three times less precise than those of multiplications one by one: they differ
    by some millionths of the largest output. An infinity in the input makes NaN of more pixels.
    """
    padding = expect(layer.operation, Convolution2d).padding
    value, fusion = layer["input"], emit.fusions[layer]
    images, in_height, in_width, depth = value.info.known_shape
    _, out_height, out_width, columns = layer.output.info.known_shape
    plan = _plan_for(emit, layer)
    rows, vectors = _tile_of(emit.choices, plan.num_tiles, columns)
    width = vectors * emit.isa.lanes
    padded = -(-columns // width) * width
    tile_bytes = 4 * plan.num_positions * (depth + padded)
    between_bytes = 2 * plan.num_positions * 64
    batch = min(max(_BATCH_BYTES // tile_bytes, 1), plan.num_tiles)
    batch = -(-batch // rows) * rows
    scratch_bytes = -(-(1024 + 4 * padded + batch * tile_bytes + between_bytes) // 64) * 64
    num_operations = 2 * plan.num_products * depth * columns
    pieces = num_pieces(calls.WinogradF32.work, emit.isa, num_operations)
    bias = layer.constant("bias")
    low, high = float_bounds(fusion.bounds)
    call = calls.WinogradF32(
        *(plan.down, plan.right, rows, vectors),
        source=emit.source(value),
        target=emit.target(fusion.output),
        residual=0 if fusion.residual is None else emit.source(fusion.residual),
        weights=emit.constant(pack_winograd_f32(weights, (plan.down, plan.right), width)),
        bias=emit.constant(np.zeros(columns, np.float32) if bias is None else bias),
        zeros=emit.constant(np.zeros(max(depth, columns), np.float32)),
        scratch=emit.scratch(scratch_bytes * emit.num_threads * pieces),
        scratch_bytes=scratch_bytes,
        images=images,
        in_height=in_height,
        in_width=in_width,
        out_height=out_height,
        out_width=out_width,
        top=resolve_padding(padding, in_height, 3, 1, 1, 0)[0],
        left=resolve_padding(padding, in_width, 3, 1, 1, 1)[0],
        depth=depth,
        columns=columns,
        batch=batch,
        low=low,
        high=high,
    )
    emit(call, fusion.label(layer), num_operations=num_operations, num_pieces=pieces)
