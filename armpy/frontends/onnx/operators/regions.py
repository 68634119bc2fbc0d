"""Operators that look at places and regions of images."""

from __future__ import annotations

from collections.abc import Mapping

from armpy.frontends.onnx.images import channels_first, channels_last
from armpy.frontends.onnx.node import Node, Operator, OperatorTable
from armpy.graph import Value
from armpy.ops.grid_sampling import GridPadding, GridSample, SampleMode
from armpy.ops.linear_algebra import Determinant
from armpy.ops.suppression import NonMaxSuppression
from armpy.types import DataType

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
            "image and grid do not fit", expected="rank 4 or 5 of both", actual=node.shape(1)
        )
    mode = node.choice("mode", "linear", _SAMPLE_MODES)
    padding = node.choice("padding_mode", "zeros", _GRID_PADDINGS)
    operation = GridSample(mode, padding, node.flag("align_corners"))
    grid = node.cast(grid, image.info.data_type)
    return channels_first(node, node.layer(operation, channels_last(node, image), grid), rank - 2)


def _non_max_suppression(node: Node) -> Value:
    operation = NonMaxSuppression(
        int(_number(node, 2, 0)),
        float(_number(node, 3, 0)),
        float(_number(node, 4, 0)) if node.has(4) else None,
        node.flag("center_point_box"),
    )
    return node.layer(operation, node.value(0), node.value(1))


def _number(node: Node, index: int, default: float) -> float:
    """The element of an input that decides, and has one."""
    if not node.has(index):
        return default
    array = node.array(index)
    if array.size != 1:
        raise node.error(f"input {index} is not one number", actual=array.shape)
    return float(array.reshape(-1)[0])


def _determinant(node: Node) -> Value:
    return node.layer(Determinant(), node.value(0))


OPERATORS: OperatorTable = {
    "Det": Operator(_determinant),
    "GridSample": Operator(_grid_sample),
    "NonMaxSuppression": Operator(
        _non_max_suppression, decides=(2, 3, 4), types=(DataType.SIGNED64,)
    ),
}
