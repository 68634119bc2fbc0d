"""Regions of feature maps: where they lie, and whether they can be used."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.errors import LayerValidationError
from armpy.ops import RoiAlign, RoiPooling
from armpy.ops.operation import Array
from armpy_reference.boxes import check_batches, check_corners
from armpy_reference.quantization import Float32Array


def scaled_regions(
    operation: RoiAlign | RoiPooling,
    rois: Float32Array,
    batch_indices: Array,
    shape: Sequence[int],
    layer: str,
) -> Float32Array:
    """Corners in rows and columns of the feature maps, checked.

    Parameters
    ----------
    rois : ndarray, float32, shape (r, 4)
        Corners x1, y1, x2, y2.
    batch_indices : ndarray, int32, shape (r,)
    shape
        Shape of the feature maps (n, h, w, c).
    layer
        Name of the layer, for messages.

    Returns
    -------
    ndarray, float32, shape (r, 4)

    Raises
    ------
    LayerValidationError
        If a feature map is not there, or a region does not lie within it.
    """
    check_batches(batch_indices, shape[0], layer)
    check_corners(rois, layer)
    strides = np.array([operation.width_stride, operation.height_stride] * 2, np.float32)
    regions: Float32Array = rois * (np.float32(1) / strides)
    limits = np.array([shape[2], shape[1]] * 2, np.float32)
    wrong = ~np.all((regions >= 0) & (regions <= limits), axis=1)
    if wrong.any():
        raise LayerValidationError(
            "a region does not lie within its feature map",
            where=f"CpuRef / '{layer}'",
            expected=f"x of 0 to {shape[2]} and y of 0 to {shape[1]} when divided by the strides",
            actual=f"{regions[wrong][0].tolist()} in row {int(wrong.argmax())}",
        )
    return regions
