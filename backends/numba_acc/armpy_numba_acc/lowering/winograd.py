"""Winograd's algorithm: 3x3 convolutions with fewer multiplications, of whatever elements.

Notes
-----
A convolution with gaps is one of several images, which have every second or third pixel each.
Windows of several slices of a volume are windows of one slice of as many times the channels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from armpy.core.dataclass import dataclass
from armpy.core.symbolic import computed
from armpy.graph import Layer
from armpy.ops import Convolution2d, Convolution3d
from armpy.ops.operation import Array
from armpy.ops.shapes import resolve_padding
from armpy_numba_acc.lowering.depthwise_f32 import fusion_of
from armpy_numba_acc.lowering.tiles import F32, I16, Tile, figures_of
from armpy_numba_acc.machine import calls
from armpy_numba_acc.machine.call import Pointer
from armpy_numba_acc.program.choices import Choices
from armpy_numba_acc.program.emitter import Emitter

_LEAST_CHANNELS = 16
"""With fewer, the transforms cost as much as the multiplications save."""

MOST_WEIGHT_BYTES = 12 << 20
"""Weights grow to up to four times their size, and have to be kept."""

_BATCH_BYTES = 1 << 16
"""Values and products of the tiles that are computed at once, at least."""

_TILES_OF_LARGE_WEIGHTS = 32
"""Tiles that are computed at once, at least, with weights beyond `MOST_WEIGHT_BYTES`: each time all
of them are read from memory."""

_MOST_TRIED = 6
"""Tiles that a measurement tries: a kernel is compiled for each."""

_TRANSFORM_STEPS = {4: 14, 2: 10}
"""Cost of transforming a register of values and storing it, in multiplications of float32, by the
bytes of a value; as measured on Zen 4."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Plan of computing an image."""

    down: int  # half the pixels of a tile in each direction
    right: int
    num_tiles: int  # of an image
    depth: int  # channels that a window sees of the input, in all slices, and of the output
    columns: int
    value_bytes: int  # of a transformed element: 4 for float32, 2 for bytes
    steps: tuple[int, int] = (1, 1)  # from a row or a column of a window to the next one

    @classmethod
    def of(cls, layer: Layer, down: int, right: int, value_bytes: int) -> Plan:
        """Return the plan of a layer for tiles of a size."""
        *_, height, width, columns = layer.output.info.known_shape
        plan = cls(down, right, 0, depth_of(layer), columns, value_bytes, steps_of(layer))
        return plan.for_size(height, width)

    def for_size(self, height: int, width: int) -> Plan:
        """The plan of another image."""
        y, x = self.steps
        tiles_down = y * -(-height // (2 * self.down * y))
        return replace(self, num_tiles=tiles_down * x * -(-width // (2 * self.right * x)))

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
        return self.value_bytes * self.num_positions * self.depth * self.columns

    def tile_bytes(self, columns: int) -> int:
        """Size of a tile's values, and of its products for so many columns."""
        return self.num_positions * (self.value_bytes * self.depth + 4 * columns)

    def batch(self, rows: int) -> int:
        """Tiles that are computed at once, a multiple of `rows`."""
        least = 1 if self.weight_bytes <= MOST_WEIGHT_BYTES else _TILES_OF_LARGE_WEIGHTS
        at_once = max(_BATCH_BYTES // self.tile_bytes(self.columns), least)
        return -(-computed(min, at_once, self.num_tiles) // rows) * rows

    def transforms_ns(self, choices: Choices) -> float:
        """About how long it takes to transform inputs and outputs."""
        channels = self.depth * self.value_bytes / 4 + self.columns
        registers = self.num_products * channels / choices.isa.lanes
        step_ns = choices.model.products("f32", choices.isa).step_ns
        return _TRANSFORM_STEPS[self.value_bytes] * registers * step_ns

    def products_ns(self, choices: Choices, tiles: Sequence[Tile]) -> dict[Tile, float]:
        """About how long it takes to multiply with each of some tiles.

        Each batch reads all weights, which may come no faster than from where they are: at first
        from after those of other layers, which are taken for several times as many.
        """
        size, model = self.weight_bytes, choices.model
        first_ns, again_ns = model.read_ns(size, 4 * size), model.read_ns(size, 2 * size)
        steps, num_positions = self.depth * self.value_bytes // 4, self.num_positions
        most = self.batch(1)
        costs: dict[Tile, float] = {}
        for tile in tiles:
            figures = figures_of(choices, F32, tile)
            step_ns, finish_ns, rows = figures.step_ns, figures.finish_ns, tile.rows
            if self.value_bytes == 2:
                step_ns = figures_of(choices, I16, tile).step_ns
            batch = -(-most // rows) * rows
            whole, rest = divmod(self.num_tiles, batch)
            calls = whole * (batch // rows) + -(-rest // rows)
            panels = -(-self.columns // figures.width)
            multiply_ns = num_positions * calls * panels * (steps * step_ns + finish_ns)
            again = -(-self.num_tiles // batch) - 1
            costs[tile] = max(multiply_ns, first_ns + again * again_ns)
        return costs

    def fastest_ns(self, choices: Choices, tiles: Sequence[Tile]) -> float:
        """About how long an image takes with the best of the product's tiles."""
        return self.transforms_ns(choices) + min(self.products_ns(choices, tiles).values())

    def tile_of(self, choices: Choices, tiles: Sequence[Tile], name: str) -> Tile:
        """The tile of the product that takes the least time."""
        key = (self.num_tiles, self.num_positions, self.columns, self.depth)
        costs = self.products_ns(choices, tiles)
        best = sorted(costs, key=costs.__getitem__)[:_MOST_TRIED]
        return choices.choose(f"{name} tile", key, best, costs.__getitem__)


def may_be_winograd(layer: Layer) -> bool:
    """Return whether a layer is a 3x3 convolution of many channels for every pixel."""
    operation = layer.operation
    if not isinstance(operation, Convolution2d | Convolution3d):
        return False
    columns, *window, depth = layer["weights"].info.known_shape
    is_simple = window[-2:] == [3, 3] and operation.stride[-2:] == (1, 1)
    return is_simple and min(columns, depth) >= _LEAST_CHANNELS


def depth_of(layer: Layer) -> int:
    """Channels that a window sees, in all slices."""
    _, *slices, _, _, depth = layer["weights"].info.known_shape
    return prod(slices) * depth


def steps_of(layer: Layer) -> tuple[int, int]:
    """Pixels from a row of a window to the next one, and from a column."""
    operation = layer.operation
    assert isinstance(operation, Convolution2d | Convolution3d)  # as it `may_be_winograd`
    return operation.dilation[-2], operation.dilation[-1]


def tiles_of(
    emit: Emitter,
    layer: Layer,
    plan: Plan,
    tile: Tile,
    weights: Array,
    padding: Array,
    residual: Pointer,
) -> calls.WinogradTiles:
    """Return what the kernels' records begin with.

    Parameters
    ----------
    weights : ndarray
        In panels of the tile.
    padding : ndarray
        An element of it, in memory for as many channels as the input and the output have.
    residual
        The output's addend; 0 for none.
    """
    value, operation, width = layer["input"], layer.operation, tile.width(emit.isa)
    assert isinstance(operation, Convolution2d | Convolution3d)  # as it `may_be_winograd`
    kernel = layer["weights"].info.known_shape[1:-1]
    _, *sizes, depth = value.info.known_shape
    _, *out_sizes, columns = layer.output.info.known_shape
    stride: tuple[int, ...] = operation.stride
    dilation: tuple[int, ...] = operation.dilation
    pads = [
        resolve_padding(operation.padding, size, kernel[a], stride[a], dilation[a], a)[0]
        for a, size in enumerate(sizes)
    ]
    if isinstance(operation, Convolution2d):  # volumes of one slice
        kernel, stride, dilation = (1, *kernel), (1, *stride), (1, *dilation)
        sizes, out_sizes, pads = [1, *sizes], [1, *out_sizes], [0, *pads]
    padded, batch = -(-columns // width) * width, plan.batch(tile.rows)
    between_bytes = 2 * plan.num_positions * 64
    used_bytes = 1024 + 4 * padded + batch * plan.tile_bytes(padded) + between_bytes
    scratch_bytes = -(-used_bytes // 64) * 64
    return calls.WinogradTiles(
        source=emit.source(value),
        target=emit.target(fusion_of(emit, layer).output),
        residual=residual,
        weights=emit.constant(weights),
        padding=emit.constant(np.repeat(padding, max(depth, columns))),
        scratch=emit.scratch(scratch_bytes * emit.num_threads),
        scratch_bytes=scratch_bytes,
        images=num_images(layer),
        in_slices=sizes[0],
        out_slices=out_sizes[0],
        window_slices=kernel[0],
        slice_stride=stride[0],
        slice_step=dilation[0],
        in_height=sizes[1],
        in_width=sizes[2],
        out_height=out_sizes[1],
        out_width=out_sizes[2],
        step_down=dilation[1],
        step_right=dilation[2],
        front=pads[0],
        top=pads[1],
        left=pads[2],
        depth=depth,
        columns=columns,
        batch=batch,
    )


def operations_of(layer: Layer, plan: Plan) -> int:
    """Return the multiplications and additions of all images' products."""
    return 2 * num_images(layer) * plan.num_products * plan.depth * plan.columns


def num_images(layer: Layer) -> int:
    """Images of the output, or slices of all of its volumes."""
    return prod(layer.output.info.known_shape[:-3])
