"""CpuRef's GridSample."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from armpy.ops import GridPadding, GridSample, SampleMode
from armpy.ops.operation import Array
from armpy_reference.workload import ReferenceWorkload

_SHARPNESS = -0.75


class GridSampleWorkload(ReferenceWorkload[GridSample]):
    """Gather the elements around all samples of an image, one neighbour at a time."""

    steps_over_nothing = True

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Sample image by image."""
        for image, grid, out in zip(inputs[0], inputs[1], outputs[0], strict=True):
            axes = [
                self._neighbours(grid[..., -1 - axis], size)
                for axis, size in enumerate(image.shape[:-1])
            ]
            total = np.zeros(out.shape)
            for taps in itertools.product(*axes):
                weights = np.ones(())
                for _, weight in taps:
                    weights = weights * weight
                total += weights[..., None] * image[tuple(places for places, _ in taps)]
            out[...] = total

    def _neighbours(self, grid: Array, size: int) -> list[tuple[Array, Array]]:
        """Places along an axis that samples are made of, and their weights."""
        operation = self.operation
        where = _positions(grid, size, operation.align_corners)
        if operation.mode is SampleMode.NEAREST:
            where = np.rint(where)
        # Further away all is as there; reflected positions come back in the end.
        if operation.padding is not GridPadding.REFLECTION:
            where = np.clip(where, -4, size + 4)
        if operation.mode is SampleMode.NEAREST:
            return [self._tap(where, np.ones(()), size)]
        lower = np.floor(where)
        share = (where - lower).astype(np.float64)
        if operation.mode is SampleMode.LINEAR:
            weights = [1 - share, share]
        else:
            weights = [_far(1 + share), _near(share), _near(1 - share), _far(2 - share)]
        first = 1 - len(weights) // 2
        return [
            self._tap(lower + first + number, weight, size) for number, weight in enumerate(weights)
        ]

    def _tap(self, where: Array, weight: Array, size: int) -> tuple[Array, Array]:
        """Whole positions as indices, and their weights; others follow the padding mode."""
        if self.operation.padding is GridPadding.ZEROS:
            # NaN is not a place, but stays in the weight.
            weight = np.where((where < 0) | (where >= size), 0.0, weight)
        elif self.operation.padding is GridPadding.REFLECTION:
            where = _reflected(where, size, self.operation.align_corners)
        places = np.nan_to_num(np.clip(where, 0, size - 1)).astype(np.int64)
        return places, np.where(np.isnan(where), np.nan, weight)


def _positions(grid: Array, size: int, align_corners: bool) -> Array:
    """Coordinates of -1 to 1 as positions of elements.

    Notes
    -----
    In the type of the coordinates; float16 in float32, as a position of some hundred would be
    rounded to a quarter of an element.
    """
    if grid.dtype == np.float16:
        grid = grid.astype(np.float32)
    number = grid.dtype.type
    if align_corners:
        return np.asarray((grid + number(1)) / number(2) * number(size - 1))
    return np.asarray(((grid + number(1)) * number(size) - number(1)) / number(2))


def _reflected(where: Array, size: int, align_corners: bool) -> Array:
    """Whole positions reflected at both edges until they are in between."""
    low, high = (0, size - 1) if align_corners else (-0.5, size - 0.5)
    span = high - low
    if span == 0:
        return np.asarray(where * 0)
    distance = np.abs(where - low) % (2 * span)
    return np.asarray(np.minimum(distance, 2 * span - distance) + low)


def _near(distance: Array) -> Array:
    """Weight of cubic convolution up to a distance of 1."""
    a = _SHARPNESS
    return np.asarray(((a + 2) * distance - (a + 3)) * distance * distance + 1)


def _far(distance: Array) -> Array:
    """Weight of cubic convolution from a distance of 1 to 2."""
    a = _SHARPNESS
    return np.asarray(((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a)
