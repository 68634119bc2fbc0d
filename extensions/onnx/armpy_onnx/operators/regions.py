"""Operators that look at places and regions of images."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from armpy.graph import Value
from armpy.ops.dense import BatchMatMul
from armpy.ops.grid_sampling import GridPadding, GridSample, SampleMode
from armpy.ops.linear_algebra import Determinant
from armpy.ops.pooling import PoolingAlgorithm
from armpy.ops.region_pooling import RoiAlign, RoiPooling
from armpy.ops.suppression import NonMaxSuppression
from armpy.types import DataType
from armpy_onnx.blocks import check_table, reshaped, taken, transposed
from armpy_onnx.images import channels_first, channels_last
from armpy_onnx.node import Node, Operator, OperatorTable

_SAMPLE_MODES: Mapping[str, SampleMode] = {
    "bicubic": SampleMode.CUBIC,
    "bilinear": SampleMode.LINEAR,
    "cubic": SampleMode.CUBIC,
    "linear": SampleMode.LINEAR,
    "nearest": SampleMode.NEAREST,
}
"""Modes by their names, the oldest ones among them."""

_GRID_PADDINGS: Mapping[str, GridPadding] = {
    "border": GridPadding.BORDER,
    "reflection": GridPadding.REFLECTION,
    "zeros": GridPadding.ZEROS,
}


def _grid_sample(node: Node) -> Value:
    image, grid = node.value(0), node.value(1)
    rank = node.rank(0)
    if rank not in (4, 5) or node.rank(1) != rank:
        raise node.error(
            "image or grid has the wrong rank",
            expected="rank 4 or 5 of both",
            actual=f"ranks {rank} and {node.rank(1)}",
        )
    mode = node.choice("mode", "linear", _SAMPLE_MODES)
    padding = node.choice("padding_mode", "zeros", _GRID_PADDINGS)
    operation = GridSample(mode, padding, node.flag("align_corners"))
    grid = node.cast(grid, image.info.data_type)
    return channels_first(node, node.layer(operation, channels_last(node, image), grid), rank - 2)


def _affine_grid(node: Node) -> Value:
    theta = node.value(0)
    size = node.ints(1)
    batch, sizes, rank = size[:1], size[2:], len(size) - 2
    if rank not in (2, 3) or node.shape(0) != (*batch, rank, rank + 1) or min(sizes) < 1:
        raise node.error(
            "matrices or size have the wrong shape",
            expected="(n, 2, 3) and 4 sizes, or (n, 3, 4) and 5",
            actual=f"{node.shape(0)} and {size}",
        )
    check_table(node, (rank + 1, *sizes))
    aligned = node.flag("align_corners")
    ends = [1.0 if aligned else 1 - 1 / count for count in sizes]
    along = [np.linspace(-end, end, count) for end, count in zip(ends, sizes, strict=True)]
    if aligned:  # one element lies at the first of both corners
        pairs = zip(sizes, along, strict=True)
        along = [np.full(1, -1.0) if count == 1 else line for count, line in pairs]
    places = np.meshgrid(*along, indexing="ij")
    columns = np.stack([*places[::-1], np.ones(sizes)]).reshape(1, rank + 1, -1)
    grid = node.layer(BatchMatMul(), theta, node.like(theta, columns))
    return reshaped(node, transposed(node, grid, (0, 2, 1)), (*batch, *sizes, rank))


def _non_max_suppression(node: Node) -> Value:
    most, overlap = (node.number(i) if node.has(i) else 0 for i in (2, 3))
    operation = NonMaxSuppression(
        int(most),
        float(overlap),
        float(node.number(4, is_finite=False)) if node.has(4) else None,
        node.flag("center_point_box"),
    )
    return node.layer(operation, node.value(0), node.value(1))


def _roi_align(node: Node) -> Value:
    ratio = node.integer("sampling_ratio", 0)
    stride = _stride(node)
    mode = node.choice("mode", "avg", _ROI_ALGORITHMS)
    # Before version 16 there was no half pixel, nor a name for that.
    half_pixel = node.version >= 16 and node.choice(
        "coordinate_transformation_mode",
        "half_pixel",
        {"half_pixel": True, "output_half_pixel": False},
    )
    operation = RoiAlign(
        (node.integer("output_height", 1), node.integer("output_width", 1)),
        height_stride=stride,
        width_stride=stride,
        height_samples=ratio,
        width_samples=ratio,
        algorithm=mode,
        half_pixel=half_pixel,
        is_free=True,
    )
    image, boxes = channels_last(node, node.value(0)), node.value(1)
    boxes = node.cast(boxes, image.info.data_type)
    batches = node.cast(node.value(2), DataType.SIGNED32)
    return channels_first(node, node.layer(operation, image, boxes, batches), 2)


_ROI_ALGORITHMS: Mapping[str, PoolingAlgorithm] = {
    "avg": PoolingAlgorithm.AVERAGE,
    "max": PoolingAlgorithm.MAX,
}


def _stride(node: Node) -> float:
    """The inverse of the attribute ``spatial_scale``."""
    scale = node.real("spatial_scale", 1.0)
    if not scale > 0 or node.rank(0) != 4:
        raise node.error(
            "regions of the input cannot be found",
            expected="an image, and 'spatial_scale' above 0",
            actual=f"{node.shape(0)}, {scale}",
        )
    return 1 / scale


def _max_roi_pool(node: Node) -> Value:
    size, stride, rows = node.integers("pooled_shape"), _stride(node), node.value(1)
    if len(size) != 2 or rows.info.known_shape[1:] != (5,):
        raise node.error(
            "regions or their sizes have the wrong form",
            expected="rows of 5 numbers, and 2 sizes",
            actual=f"{rows.info.known_shape}, {size}",
        )
    image = channels_last(node, node.value(0))
    first = taken(node, rows, 1, 0, 1)
    batches = node.cast(reshaped(node, first, rows.info.known_shape[:1]), DataType.SIGNED32)
    operation = RoiPooling((size[0], size[1]), stride, stride)
    return channels_first(
        node, node.layer(operation, image, taken(node, rows, 1, 1, 5), batches), 2
    )


def _determinant(node: Node) -> Value:
    return node.layer(Determinant(), node.value(0))


OPERATORS: OperatorTable = {
    "AffineGrid": Operator(_affine_grid, decides=(1,)),
    "Det": Operator(_determinant),
    "GridSample": Operator(_grid_sample),
    "MaxRoiPool": Operator(_max_roi_pool),
    "NonMaxSuppression": Operator(
        _non_max_suppression, decides=(2, 3, 4), types=(DataType.SIGNED64,)
    ),
    "RoiAlign": Operator(_roi_align),
}
