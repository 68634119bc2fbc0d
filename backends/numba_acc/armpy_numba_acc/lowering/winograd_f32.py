"""Winograd's algorithm: 3x3 convolutions of float32 with fewer multiplications."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from armpy.graph import Layer
from armpy.ops import Convolution2d
from armpy.ops.operation import Array
from armpy.ops.shapes import resolve_padding
from armpy_numba_acc.lowering.operands import expect
from armpy_numba_acc.lowering.tiles import F32, Tile, product_ns, tiles_that_fit
from armpy_numba_acc.machine import calls
from armpy_numba_acc.packing.winograd import PAIRS, pack_winograd_f32
from armpy_numba_acc.program.choices import Choices
from armpy_numba_acc.program.emitter import Emitter
from armpy_numba_acc.program.estimate import num_pieces
from armpy_numba_acc.program.fusion import float_bounds

_LEAST_CHANNELS = 16
"""With fewer, the transforms cost as much as the multiplications save."""

_MOST_WEIGHT_BYTES = 12 << 20
"""Weights grow to up to four times their size, and have to be kept."""

_BATCH_BYTES = 1 << 16
"""Values and products of the tiles that are computed at once, at least."""

_ROWS = (8, 7, 14, 9, 12, 6, 4)
"""Tiles that are multiplied at once."""

_MOST_TRIED = 6
"""Tiles that a measurement tries: a kernel is compiled for each."""

_TRANSFORM_STEPS = 14
"""Cost of transforming a register of values and storing it, in multiplications of one."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """Plan of computing an image."""

    down: int  # half the pixels of a tile in each direction
    right: int
    num_tiles: int  # of an image
    depth: int  # channels of the input and of the output
    columns: int

    @property
    def num_positions(self) -> int:
        """Multiplications for each tile and pair of channels."""
        return (2 * self.down + 2) * (2 * self.right + 2)

    @property
    def num_products(self) -> int:
        """Multiplications for each pair of channels."""
        return self.num_tiles * self.num_positions

    @property
    def weight_bytes(self) -> int:
        """Size of all weights, transformed."""
        return 4 * self.num_positions * self.depth * self.columns

    def batch(self, rows: int) -> int:
        """Tiles that are computed at once, a multiple of `rows`."""
        tile_bytes = 4 * self.num_positions * (self.depth + self.columns)
        return -(-min(max(_BATCH_BYTES // tile_bytes, 1), self.num_tiles) // rows) * rows

    def transforms_ns(self, choices: Choices) -> float:
        """About how long it takes to transform inputs and outputs."""
        registers = self.num_products * (self.depth + self.columns) / choices.isa.lanes
        return _TRANSFORM_STEPS * registers * choices.model.products("f32", choices.isa).step_ns

    def products_ns(self, choices: Choices, tile: Tile) -> float:
        """About how long it takes to multiply.

        Each batch reads all weights, which may come no faster than from where they are: at first
        from after those of other layers, which are taken for several times as many.
        """
        step_ns, finish_ns = F32.cost(choices.model, choices.isa, tile)
        batch = self.batch(tile.rows)
        whole, rest = divmod(self.num_tiles, batch)
        calls = whole * (batch // tile.rows) + -(-rest // tile.rows)
        panels = -(-self.columns // tile.width(choices.isa))
        multiply_ns = self.num_positions * calls * panels * (self.depth * step_ns + finish_ns)
        size, model = self.weight_bytes, choices.model
        again = -(-self.num_tiles // batch) - 1
        read_ns = model.read_ns(size, 4 * size) + again * model.read_ns(size, 2 * size)
        return max(multiply_ns, read_ns)


def is_winograd(emit: Emitter, layer: Layer) -> bool:
    """Return whether a layer is computed faster this way.

    Sums depend on it in their last bits: it is decided by the size of one image, however many
    there are, and by nothing that may change from call to call.
    """
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
    plan, choices = _plan_for(emit, layer), emit.choices
    if plan.weight_bytes > _MOST_WEIGHT_BYTES:
        return False
    shape = 1, output[1] * output[2], columns, 9 * depth
    costs = {
        (1,): _fastest_ns(choices, plan),
        (0,): min(product_ns(choices, F32, tile, shape) for tile in F32.tiles(emit.isa)),
    }
    key = (*output[1:], depth)
    return choices.choose("winograd_f32 or not", key, [*costs], costs.__getitem__) == (1,)


def _fastest_ns(choices: Choices, plan: _Plan) -> float:
    """About how long an image takes with the best of the product's tiles."""
    products_ns = min(plan.products_ns(choices, tile) for tile in _tiles(choices))
    return plan.transforms_ns(choices) + products_ns


def _plan_for(emit: Emitter, layer: Layer) -> _Plan:
    """The tiles that an image takes least time with.

    Errors are relative to the largest sum. Where a clamp cuts sums off, which may be large for
    among the rest, tiles are preferred that are as precise as single products.
    """
    _, height, width, columns = layer.output.info.known_shape
    depth = layer["weights"].info.known_shape[3]
    is_cut = None not in emit.arrangement.fusions[layer].bounds
    plans = {
        (down, right): _Plan(
            down, right, -(-height // (2 * down)) * -(-width // (2 * right)), depth, columns
        )
        for down in PAIRS
        for right in PAIRS
        if down * right < 4 or not is_cut
    }
    chosen = emit.choices.choose(
        "winograd_f32 pixels",
        (height, width, columns, depth, int(is_cut)),
        [*plans],
        lambda option: _fastest_ns(emit.choices, plans[option]),
    )
    return plans[chosen]


def _tiles(choices: Choices) -> list[Tile]:
    """Tiles of the product that fit the registers."""
    return tiles_that_fit(choices.isa, _ROWS)


def _tile_of(choices: Choices, plan: _Plan) -> Tile:
    """The tile of the product that takes the least time."""
    key = (plan.num_tiles, plan.num_positions, plan.columns, plan.depth)
    costs = {tile: plan.products_ns(choices, tile) for tile in _tiles(choices)}
    best = sorted(costs, key=costs.__getitem__)[:_MOST_TRIED]
    return choices.choose("winograd_f32 tile", key, best, costs.__getitem__)


def lower_winograd_f32(emit: Emitter, layer: Layer, weights: Array) -> None:
    """Add the command of a convolution that `is_winograd`, and of its fused layers.

    Sums are two to three times less precise than those of multiplications one by one: they differ
    by some millionths of the largest output. An infinity in the input makes NaN of more pixels.
    """
    padding = expect(layer.operation, Convolution2d).padding
    value, fusion = layer["input"], emit.arrangement.fusions[layer]
    images, in_height, in_width, depth = value.info.known_shape
    _, out_height, out_width, columns = layer.output.info.known_shape
    plan = _plan_for(emit, layer)
    tile = _tile_of(emit.choices, plan)
    width = tile.width(emit.isa)
    padded = -(-columns // width) * width
    tile_bytes = 4 * plan.num_positions * (depth + padded)
    between_bytes = 2 * plan.num_positions * 64
    batch = plan.batch(tile.rows)
    scratch_bytes = -(-(1024 + 4 * padded + batch * tile_bytes + between_bytes) // 64) * 64
    num_operations = 2 * images * plan.num_products * depth * columns
    pieces = num_pieces(calls.WinogradF32.work, emit.choices, num_operations)
    bias = layer.constant("bias")
    low, high = float_bounds(fusion.bounds)
    call = calls.WinogradF32(
        down=plan.down,
        right=plan.right,
        product_rows=tile.rows,
        vectors=tile.vectors,
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
