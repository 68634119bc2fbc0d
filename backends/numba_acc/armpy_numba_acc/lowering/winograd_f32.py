"""Winograd's algorithm: 3x3 convolutions of float32 with fewer multiplications."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np

from armpy.core.dataclass import dataclass
from armpy.core.symbolic import computed, current, fixed
from armpy.graph import Layer
from armpy.ops.operation import Array
from armpy_numba_acc.lowering.depthwise_f32 import fusion_of
from armpy_numba_acc.lowering.tiles import F32, Tile, product_ns, tiles_that_fit
from armpy_numba_acc.lowering.winograd import (
    MOST_WEIGHT_BYTES,
    Plan,
    depth_of,
    may_be_winograd,
    operations_of,
    steps_of,
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


_MOST_GROWTH = 2.0
"""Times that weights larger than `MOST_WEIGHT_BYTES` may take the memory of those of products."""

_LEAST_READINGS = 8.0
"""Times that such weights could be read from memory, at least, while products are computed."""


def is_winograd(emit: Emitter, layer: Layer) -> bool:
    """Return whether a layer is computed faster this way."""
    return may_be_winograd(layer) and _plan_for(emit, layer) is not None


def _plan_for(emit: Emitter, layer: Layer) -> Plan | None:
    """The plan for an image about as large as the layer's; None where products are faster.

    Sums depend on it in their last bits: it is decided by the size of one image, however many
    there are, and by nothing that may change from call to call.
    """
    *_, rows, across, columns = layer.output.info.known_shape
    is_cut = None not in emit.arrangement.fusions[layer].bounds
    height, width = (computed(_typical, size) for size in (rows, across))
    decision = _Decision(emit.choices, columns, depth_of(layer), is_cut, steps_of(layer))
    number = fixed(computed(decision, height, width))
    if number < 0:
        return None
    plan = Plan.of(layer, *_PIXELS[number], 4)
    return plan.for_size(current(height), current(width))


def _typical(size: int) -> int:
    """The size by which images of some sizes are decided about: for most, the same is best."""
    return size if size <= 16 else min(1 << (size - 1).bit_length(), 256)


_PIXELS = tuple(product(PAIRS, PAIRS))
"""Half the pixels of tiles, in each direction."""


@dataclass(frozen=True, slots=True)
class _Decision:
    """The number among `_PIXELS` with which images take the least time; -1 without tiles.

    Errors are relative to the largest sum. Where a clamp cuts sums off, which may be large for
    among the rest, tiles are preferred that are as precise as single products.
    """

    choices: Choices
    columns: int
    depth: int
    is_cut: bool
    steps: tuple[int, int] = (1, 1)  # from a row or a column of a window to the next one

    def __call__(self, height: int, width: int) -> int:
        """As above."""
        known = self.choices.costs.setdefault(self._about, {})
        if (height, width) not in known:
            known[height, width] = self._decided(height, width)
        return int(known[height, width])

    @property
    def _about(self) -> tuple[int, ...]:
        gaps = self.steps if self.steps != (1, 1) else ()
        return (self.columns, self.depth, int(self.is_cut), *gaps)

    def _decided(self, height: int, width: int) -> int:
        choices, tiles = self.choices, _tiles(self.choices)
        plans = {
            option: Plan(*option, 0, self.depth, self.columns, 4, self.steps).for_size(
                height, width
            )
            for option in _PIXELS
            if prod(option) < 4 or not self.is_cut
        }
        shape = 1, height * width, self.columns, 9 * self.depth
        direct_ns = min(product_ns(choices, F32, tile, shape) for tile in F32.tiles(choices.isa))
        plans = {option: plan for option, plan in plans.items() if self._may_keep(plan, direct_ns)}
        if not plans:
            return -1
        costs_ns = {option: plan.fastest_ns(choices, tiles) for option, plan in plans.items()}
        chosen = choices.choose(
            "winograd_f32 pixels",
            (height, width, *self._about),
            [*plans],
            costs_ns.__getitem__,
        )
        costs = {(1,): costs_ns[chosen], (0,): direct_ns}
        columns, depth, _, *gaps = self._about
        key = (height, width, columns, depth, *gaps)
        is_faster = choices.choose("winograd_f32 or not", key, [*costs], costs.__getitem__) == (1,)
        return _PIXELS.index(chosen) if is_faster else -1

    def _may_keep(self, plan: Plan, direct_ns: float) -> bool:
        """Return whether a plan's weights are worth their memory."""
        size = plan.weight_bytes
        if size <= MOST_WEIGHT_BYTES:
            return True
        growth = size / (4 * 9 * self.depth * self.columns)
        readings = direct_ns / self.choices.model.read_ns(size, 4 * size)
        return growth <= _MOST_GROWTH and readings >= _LEAST_READINGS


def _tiles(choices: Choices) -> list[Tile]:
    """Tiles of the product that fit the registers."""
    return tiles_that_fit(choices.isa, _ROWS)


def lower_winograd_f32(emit: Emitter, layer: Layer, weights: Array) -> None:
    """Add the command of a convolution that `is_winograd`, and of its fused layers.

    Sums are two to three times less precise than those of multiplications one by one: they differ
    by some millionths of the largest output. An infinity in the input makes NaN of more pixels.
    """
    fusion, typical = fusion_of(emit, layer), _plan_for(emit, layer)
    assert typical is not None  # as it `is_winograd`
    tile = typical.tile_of(emit.choices, _tiles(emit.choices), "winograd_f32")
    plan = typical.for_size(*layer.output.info.known_shape[-3:-1])
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
