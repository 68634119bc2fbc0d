"""CpuRef's HeatmapMaxKeypoint."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.ops import HeatmapMaxKeypoint
from armpy.ops.operation import Array
from armpy.types import DataLayout, DataType
from armpy_reference.boxes import check_corners
from armpy_reference.quantization import Float32Array
from armpy_reference.reals import from_real, to_real
from armpy_reference.workload import ReferenceWorkload

_LARGEST_STEP = np.float32(1.5)


class HeatmapMaxKeypointWorkload(ReferenceWorkload[HeatmapMaxKeypoint]):
    """Refine the highest elements of all heat maps together."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Compute in float32.

        Raises
        ------
        LayerValidationError
            If the corners of a region are the wrong way round.
        """
        heatmap, stored = inputs
        check_corners(stored, self.info.name)
        if self.operation.data_layout is DataLayout.NHWC:
            heatmap = heatmap.transpose(0, 3, 1, 2)
        maps = to_real(heatmap, self.input_infos[0])
        rois = to_real(stored, self.input_infos[1])[:, None, :]
        side = maps.shape[-1]
        highest = maps.reshape(*maps.shape[:2], side * side).argmax(axis=-1)
        peak = np.stack([highest % side, highest // side], axis=-1)
        is_half = self.input_infos[0].data_type is DataType.FLOAT16
        step, scores = refine(_surroundings(maps, peak), np.float32(1e-3 if is_half else 1e-5))
        position = peak.astype(np.float32) + step + np.float32(0.5)
        sizes = rois[..., 2:] - rois[..., :2]
        keypoints = position * (sizes / np.float32(side)) + rois[..., :2]
        outputs[0][...] = from_real(scores, self.info.outputs[0])
        outputs[1][...] = from_real(keypoints, self.info.outputs[1])


def _surroundings(maps: Float32Array, peak: Array) -> Float32Array:
    """The 3 x 3 elements around the peaks (r, k, y, x), mirrored at the edges."""
    last = maps.shape[-1] - 1
    around = np.abs(peak[..., None] + np.arange(-1, 2))
    around = last - np.abs(last - around)
    columns, rows = around[..., 0, None, :], around[..., 1, :, None]
    regions, keypoints = np.ogrid[: maps.shape[0], : maps.shape[1]]
    regions_around: Float32Array = maps[
        regions[..., None, None], keypoints[..., None, None], rows, columns
    ]
    return regions_around


def refine(grid: Float32Array, tolerance: np.float32) -> tuple[Float32Array, Float32Array]:
    """The peak of the parabola through 3 x 3 elements.

    Parameters
    ----------
    grid : ndarray, float32, shape (..., 3, 3)
        Rows y, columns x.
    tolerance
        Determinant of the second derivatives, absolute and in parts of the product of its
        diagonal, below which there is no determined peak.

    Returns
    -------
    step : ndarray, float32, shape (..., 2)
        x and y from the centre to the peak.
    height : ndarray, float32, shape (...)
    """
    two = np.float32(2)
    centre = grid[..., 1, 1]
    dx = (grid[..., 1, 2] - grid[..., 1, 0]) / two
    dy = (grid[..., 2, 1] - grid[..., 0, 1]) / two
    dxx = grid[..., 1, 0] - two * centre + grid[..., 1, 2]
    dyy = grid[..., 0, 1] - two * centre + grid[..., 2, 1]
    corners = grid[..., 2, 2] - grid[..., 2, 0] - grid[..., 0, 2] + grid[..., 0, 0]
    dxy = corners / np.float32(4)
    diagonal = dxx * dyy
    determinant = diagonal - dxy * dxy
    is_determined = np.abs(determinant) >= tolerance + tolerance * diagonal
    x = np.where(is_determined, (dxy * dy - dyy * dx) / determinant, np.float32(0))
    y = np.where(is_determined, (dxy * dx - dxx * dy) / determinant, np.float32(0))
    largest = np.maximum(np.abs(x), np.abs(y))
    factor = np.where(largest > _LARGEST_STEP, _LARGEST_STEP / largest, np.float32(1))
    x, y = x * factor, y * factor
    curved = (dxx * x + dxy * y) * x + (dxy * x + dyy * y) * y
    return np.stack([x, y], axis=-1), centre + dx * x + dy * y + curved / two
