"""Axis-aligned boxes in float32: checks, transformation, overlap, non-maximum suppression."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from armpy.errors import LayerValidationError
from armpy.ops.operation import Array
from armpy_reference.quantization import Float32Array

Indices: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]


def check_corners(boxes: Array, layer: str) -> None:
    """Check that no box ends before it starts.

    Parameters
    ----------
    boxes : ndarray, any dtype, shape (n, 4)
        Corners x1, y1, x2, y2.
    layer
        Name of the layer, for the message.

    Raises
    ------
    LayerValidationError
        If one does.
    """
    wrong = ~np.all(boxes[:, :2] <= boxes[:, 2:], axis=1)
    if wrong.any():
        raise LayerValidationError(
            "the corners of a box are the wrong way round",
            where=f"CpuRef / '{layer}'",
            expected="x1 <= x2 and y1 <= y2",
            actual=f"{boxes[wrong][0].tolist()} in row {int(wrong.argmax())}",
        )


def check_batches(batch_indices: Array, num_batches: int, layer: str) -> None:
    """Check that the images that boxes belong to are there.

    Parameters
    ----------
    batch_indices : ndarray, int32, shape (n,)
    layer
        Name of the layer, for the message.

    Raises
    ------
    LayerValidationError
        If one is not.
    """
    wrong = (batch_indices < 0) | (batch_indices >= num_batches)
    if wrong.any():
        raise LayerValidationError(
            "a box belongs to an image that is not there",
            where=f"CpuRef / '{layer}'",
            expected=f"batch indices of 0 to {num_batches - 1}",
            actual=f"{batch_indices[wrong][0]} in row {int(wrong.argmax())}",
        )


def transform(boxes: Float32Array, deltas: Float32Array, limits: Float32Array) -> Float32Array:
    """Move and scale boxes, and clip them to their images.

    Parameters
    ----------
    boxes : ndarray, float32, shape (..., 4)
        Corners x1, y1, x2, y2.
    deltas : ndarray, float32, shape (..., 4)
        dx, dy in parts of the size; logarithms dw, dh.
    limits : ndarray, float32, shape (..., 2)
        Height and width of the image.

    Returns
    -------
    ndarray, float32, shape (..., 4)
        Corners.
    """
    starts, ends = boxes[..., :2], boxes[..., 2:]
    sizes = ends - starts
    centres = (starts + ends) / np.float32(2) + deltas[..., :2] * sizes
    halves = np.exp(deltas[..., 2:]) * sizes / np.float32(2)
    corners = np.concatenate([centres - halves, centres + halves], axis=-1)
    limits = limits[..., ::-1]
    clipped: Float32Array = np.clip(corners, 0, np.concatenate([limits, limits], axis=-1))
    return clipped


def overlaps(box: Float32Array, boxes: Float32Array) -> Float32Array:
    """Intersection over union of one box and each of several.

    Parameters
    ----------
    box : ndarray, float32, shape (4,)
        Corners, in any order of the two axes.
    boxes : ndarray, float32, shape (n, 4)

    Returns
    -------
    ndarray, float32, shape (n,)
        0 between boxes without area.
    """
    # Column by column, several times as fast as sums and products of rows of two.
    x1, y1, x2, y2 = boxes.T
    width = np.maximum(np.minimum(box[2], x2) - np.maximum(box[0], x1), 0)
    height = np.maximum(np.minimum(box[3], y2) - np.maximum(box[1], y1), 0)
    common = width * height
    union = (box[2] - box[0]) * (box[3] - box[1]) + (x2 - x1) * (y2 - y1) - common
    ratios: Float32Array = np.zeros_like(common)
    np.divide(common, union, out=ratios, where=union > 0)
    return ratios


def suppress(
    boxes: Float32Array,
    scores: Float32Array,
    limit: int,
    is_dropped: Callable[[Float32Array], Mask],
) -> Indices:
    """Choose boxes by falling score, dropping those that overlap one chosen before too much.

    Parameters
    ----------
    boxes : ndarray, float32, shape (n, 4)
    scores : ndarray, float32, shape (n,)
    limit
        Most boxes; negative for no limit.
    is_dropped : callable
        Decides from overlaps which boxes are dropped.

    Returns
    -------
    ndarray, int64, shape (m,)
        Indices of the chosen boxes. Of equal scores the first comes first.
    """
    remaining = falling(scores)
    chosen: list[int] = []
    while remaining.size and len(chosen) != limit:
        best, remaining = remaining[0], remaining[1:]
        chosen.append(int(best))
        remaining = remaining[~is_dropped(overlaps(boxes[best], boxes[remaining]))]
    return np.array(chosen, np.int64)


def falling(scores: Float32Array) -> Indices:
    """Indices that put scores in falling order, equal ones as they stand."""
    return np.argsort(-scores, kind="stable").astype(np.int64)
