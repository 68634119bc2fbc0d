"""Sizes and attributes of each operation, made of chance: what goes together."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from armpy import ops
from armpy.ops import (
    ActivationFunction,
    Operation,
    Padding,
    PaddingMode,
    ResizeMethod,
)
from armpy.types import DataLayout, DataType
from armpy_conformance.comparison.seeded_values import anything, below, exactly
from armpy_conformance.sampling.case_template import CaseTemplate, is_hybrid
from armpy_conformance.sampling.draw import Draw, Shape

Rule: TypeAlias = Callable[[Draw, CaseTemplate], CaseTemplate]
"""Gives a line other sizes and attributes of the same kind."""

PRESCRIBING = (ops.Softmax, ops.LogSoftmax, ops.L2Normalization)
"""Operations that say the quantisation of their output."""


def _changed(
    template: CaseTemplate, *shapes: Shape | None, **attributes: Any
) -> CaseTemplate:  # Any: by name
    """The line with these shapes and attributes."""
    operation = template.operation.with_attributes(**attributes)
    return replace(template, shapes=shapes, operation=operation)


# One or several tensors of which each element counts by itself


def _any_shape(draw: Draw, template: CaseTemplate) -> CaseTemplate:
    if template.label.startswith("per-axis"):  # a scale per index
        return template
    slope = {}
    if template.operation.attributes().get("function") is ActivationFunction.LEAKY_RELU:
        slope = {"a": draw.number(-1, 1)}
    return _changed(template, draw.shape(draw.pick((None,) * 8 + (0, 5)), 7), **slope)


def _broadcasting(draw: Draw, template: CaseTemplate) -> CaseTemplate:
    shapes = draw.broadcast_shapes(len(template.shapes))
    return _changed(template, *(shapes[:1] * len(shapes) if draw.chance(0.4) else shapes))


def _prelu(draw: Draw, template: CaseTemplate) -> CaseTemplate:
    shape = draw.shape()
    return _changed(template, shape, tuple(1 if draw.chance() else dim for dim in shape))


def _rows(draw: Draw, template: CaseTemplate) -> CaseTemplate:
    shape = draw.shape()
    if template.operation.attributes()["axis"] != -1:
        return _changed(template, shape, axis=draw.axis(len(shape)))
    factor = {"beta": draw.number(0.2, 2)} if isinstance(template.operation, ops.Softmax) else {}
    return _changed(template, (*shape[1:], draw.size(150)), **factor)


def _reduce(draw: Draw, template: CaseTemplate) -> CaseTemplate:
    shape = draw.shape(None, 6)
    axes = tuple(draw.axis(len(shape)) for _ in shape[: draw.size(3)])
    return _changed(template, shape, axes=None if draw.chance(0.1) else axes)


def _position(draw: Draw, template: CaseTemplate) -> CaseTemplate:
    shape = draw.shape(None, 9)
    return _changed(template, shape, axis=draw.axis(len(shape)))


# Windows and products


def _extents(draw: Draw, operation: Any) -> tuple[Shape, dict[str, Any]]:  # Any: of windows
    """Height and width of a kernel, and attributes that go with it."""
    kernel = (1, 1) if draw.chance(0.2) else draw.shape(2)
    attributes: dict[str, Any] = {"stride": draw.shape(2, 3)}
    if hasattr(operation, "dilation"):
        attributes["dilation"] = (1, 1)
        if draw.chance():
            attributes = {"stride": (1, 1), "dilation": draw.shape(2, 3)}
    if not isinstance(operation.padding, Padding):
        attributes["padding"] = draw.pairs(2, min(_reach(kernel, attributes)) - 1)
    return kernel, attributes


def _image(draw: Draw, operation: Any, channels: int, least: Shape) -> Shape:  # Any: of windows
    """An image that is not smaller than a window."""
    height, width = (draw.size(size + 7, size) for size in least)
    if operation.data_layout is DataLayout.NCHW:
        return (draw.size(2), channels, height, width)
    return (draw.size(2), height, width, channels)


def _reach(kernel: Shape, attributes: dict[str, Any]) -> Shape:  # Any: by name
    """Height and width of a dilated kernel."""
    dilation = attributes.get("dilation", (1, 1))
    return tuple((k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True))


def _weighted(draw: Draw, template: CaseTemplate) -> CaseTemplate:
    operation: Any = template.operation  # Any: of windows
    image, weights, bias = template.shapes
    assert image is not None
    assert weights is not None
    kernel, attributes = _extents(draw, operation)
    before = image[1] if operation.data_layout is DataLayout.NCHW else image[3]
    depth, channels = draw.size(8), draw.size(8)
    if isinstance(operation, ops.DepthwiseConvolution2d):
        channels = depth * draw.size(3)
        bias = bias if draw.chance(0.7) else None
        filters: Shape = (1, *kernel, channels)
    else:
        groups = before // weights[3]
        channels *= groups
        filters = (channels, *kernel, depth)
        depth *= groups
    picture = _image(draw, operation, depth, _reach(kernel, attributes))
    return _changed(template, picture, filters, bias and (channels,), **attributes)


def _transposed(draw: Draw, template: CaseTemplate) -> CaseTemplate:
    operation: Any = template.operation  # Any: of windows
    _, weights, bias = template.shapes
    assert weights is not None
    if not isinstance(operation.padding, Padding) or operation.output_shape is not None:
        return template
    kernel, attributes = _extents(draw, operation)
    depth, channels = draw.size(8), draw.size(8)
    picture = _image(draw, operation, depth, (1, 1))
    return _changed(
        template, picture, (channels, *kernel, depth), bias and (channels,), **attributes
    )


def _pool(draw: Draw, template: CaseTemplate) -> CaseTemplate:
    operation: Any = template.operation  # Any: of windows
    kernel, attributes = _extents(draw, operation)
    picture = _image(draw, operation, draw.size(8), kernel)
    return _changed(template, picture, pool_size=kernel, **attributes)


def _dense(draw: Draw, template: CaseTemplate) -> CaseTemplate:
    image, weights, bias = template.shapes
    bias = bias if draw.chance(0.7) else None
    assert image is not None
    assert weights is not None
    depth, units = draw.size(40), draw.size(30)
    if image[-1] != weights[1]:
        depth = draw.size(3)
        image = (draw.size(3), draw.size(3), depth)
        return _changed(template, image, (units, image[1] * depth), bias and (units,))
    # Elements of floats beside integers are made so that each item of a batch has its limits.
    outer = draw.shape(1 if template.types is is_hybrid else draw.size(3), 3)
    return _changed(template, (*outer, depth), (units, depth), bias and (units,))


def _product(draw: Draw, template: CaseTemplate) -> CaseTemplate:
    transposes = draw.chance(), draw.chance()
    rows, depth, columns = draw.shape(3, 12)
    batches = draw.shape(draw.size(2, 0), 3)
    x = (depth, rows) if transposes[0] else (rows, depth)
    y = (columns, depth) if transposes[1] else (depth, columns)
    outer = tuple(dim if draw.chance(2 / 3) else 1 for dim in batches)
    flags = dict(zip(("transpose_x", "transpose_y"), transposes, strict=True))
    return _changed(template, (*batches, *x), (*outer, *y), **flags)


def _resize(draw: Draw, template: CaseTemplate) -> CaseTemplate:
    shape = _image(draw, template.operation, draw.size(4), (1, 1))
    is_nearest = template.operation.attributes()["method"] is ResizeMethod.NEAREST_NEIGHBOR
    turns = ((False, False), (True, False), (False, True), (True, True))[: 3 + is_nearest]
    flags = dict(zip(("align_corners", "half_pixel_centers"), draw.pick(turns), strict=True))
    return _changed(template, shape, size=draw.shape(2, 20), **flags)


def _local_response(draw: Draw, template: CaseTemplate) -> CaseTemplate:
    return _changed(template, draw.shape(4, 8), radius=draw.size(5, 0))


# Elements in other places


def _joined(draw: Draw, template: CaseTemplate) -> CaseTemplate:
    shape, count = draw.shape(), draw.size(4)
    along = draw.size(len(shape) - 1, 0)
    parts = [(*shape[:along], draw.size(5), *shape[along + 1 :]) for _ in range(count)]
    return _changed(template, *parts, axis=along - draw.pick((0, len(shape))))


def _stacked(draw: Draw, template: CaseTemplate) -> CaseTemplate:
    shape = draw.shape(draw.size(3, 0))
    return _changed(template, *[shape] * draw.size(4), axis=draw.axis(len(shape) + 1))


def _unstacked(draw: Draw, template: CaseTemplate) -> CaseTemplate:
    shape = draw.shape()
    axis = draw.axis(len(shape))
    return _changed(template, shape, num=shape[axis], axis=axis)


def _split(draw: Draw, template: CaseTemplate) -> CaseTemplate:
    shape, count = [*draw.shape()], draw.size(3)
    axis = draw.axis(len(shape))
    if template.operation.attributes()["sizes"] is None:
        shape[axis] *= count
        return _changed(template, tuple(shape), num_splits=count, axis=axis)
    sizes = [*draw.shape(count)]
    shape[axis] = sum(sizes)
    if draw.chance():
        sizes[draw.size(count - 1, 0)] = -1
    return _changed(template, tuple(shape), num_splits=count, axis=axis, sizes=tuple(sizes))


def _reshape(draw: Draw, template: CaseTemplate) -> CaseTemplate:
    shape = draw.shape()
    target = [shape[i] for i in draw.permutation(len(shape))]
    target[draw.size(len(target) - 1, 0)] = -1
    return _changed(template, shape, target_shape=tuple(target))


def _expanded(draw: Draw, template: CaseTemplate) -> CaseTemplate:
    shape = draw.shape()
    return _changed(template, shape, axis=draw.axis(len(shape) + 1))


def _squeezed(draw: Draw, template: CaseTemplate) -> CaseTemplate:
    shape = draw.shape(None, 2)
    ones = [axis for axis, dim in enumerate(shape) if dim == 1 and draw.chance()]
    return _changed(template, shape, axes=tuple(ones) or None)


def _permuted(draw: Draw, template: CaseTemplate) -> CaseTemplate:
    shape = draw.shape()
    return _changed(template, shape, perm=tuple(draw.permutation(len(shape))))


def _tiled(draw: Draw, template: CaseTemplate) -> CaseTemplate:
    shape = draw.shape()
    return _changed(template, shape, multiples=draw.shape(len(shape), 3))


def _broadcast(draw: Draw, template: CaseTemplate) -> CaseTemplate:
    target = draw.shape()
    shape = tuple(dim if draw.chance() else 1 for dim in target)[draw.size(len(target) - 1, 0) :]
    return _changed(template, shape, broadcast_to_shape=target)


def _reversed(draw: Draw, template: CaseTemplate) -> CaseTemplate:
    shape, count = draw.shape(), len(template.operation.attributes()["axes"])
    return _changed(template, shape, axes=tuple(draw.permutation(len(shape))[:count]))


def _padded(draw: Draw, template: CaseTemplate) -> CaseTemplate:
    is_plain = template.operation.attributes()["padding_mode"] is PaddingMode.CONSTANT
    shape = draw.shape(None, 6, 1 if is_plain else 3)
    pads = draw.pairs(len(shape), 3 if is_plain else 2)
    return _changed(template, shape, *template.shapes[1:], pad_list=pads)


def _slice(draw: Draw, template: CaseTemplate) -> CaseTemplate:
    shape = draw.shape()
    begin = tuple(draw.size(dim - 1, 0) for dim in shape)
    sizes = zip(shape, begin, strict=True)
    size = tuple(draw.size(dim - b) if draw.chance(2 / 3) else -1 for dim, b in sizes)
    return _changed(template, shape, begin=begin, size=size)


def _strided(draw: Draw, template: CaseTemplate) -> CaseTemplate:
    attributes = template.operation.attributes()
    if attributes["ellipsis_mask"] or attributes["new_axis_mask"] or attributes["end_is_offset"]:
        return _strided_elsewhere(draw, template)
    shape = draw.shape(None, 7)
    count = draw.size(len(shape))
    begin, end = ([draw.size(8, -8) for _ in range(count)] for _ in range(2))
    stride = [draw.pick((-2, -1, 1, 1, 2, 3)) for _ in range(count)]
    shrink = draw.size((1 << count) - 1, 0) if draw.chance(1 / 3) else 0
    for entry in range(count):
        if shrink >> entry & 1:
            begin[entry], stride[entry] = draw.size(shape[entry] - 1, 0), 1
    masks = {name: draw.size((1 << count) - 1, 0) for name in ("begin_mask", "end_mask")}
    places = {"begin": tuple(begin), "end": tuple(end), "stride": tuple(stride)}
    return _changed(template, shape, **places, **masks, shrink_axis_mask=shrink)


def _strided_elsewhere(draw: Draw, template: CaseTemplate) -> CaseTemplate:
    """Build a slice with an ellipsis, with new axes, or with ends that count from the begin."""
    if template.operation.attributes()["end_is_offset"]:
        places = {"begin": draw.shape(2, 2, 0), "end": draw.shape(2, 3), "stride": draw.shape(2, 2)}
        return _changed(template, draw.shape(2, 9, 6), **places)
    count = draw.size(3)
    masks = {"ellipsis_mask": (1 << draw.size(count - 1, 0)) * draw.chance(2 / 3)}
    masks["new_axis_mask"] = draw.size((1 << count) - 1, 0)
    places = {"begin": draw.shape(count, 1, 0), "end": draw.shape(count, 4, 2)}
    return _changed(template, draw.shape(3), **places, stride=(1,) * count, **masks)


def _gathered(draw: Draw, template: CaseTemplate) -> CaseTemplate:
    shape = draw.shape()
    axis = draw.size(len(shape) - 1, 0)
    batch = draw.size(axis, 0)
    indices_shape = (*shape[:batch], *draw.shape(draw.size(2, 0)))
    template = replace(template, values=(template.values[0], below(shape[axis])))
    return _changed(template, shape, indices_shape, axis=axis, batch_dims=batch)


def _gathered_at_places(draw: Draw, template: CaseTemplate) -> CaseTemplate:
    shape = draw.shape()
    depth = draw.size(len(shape))
    indices_shape = (*draw.shape(draw.size(2)), depth)
    limit = min(shape[:depth])
    return _changed(
        replace(template, values=(template.values[0], below(limit))), shape, indices_shape
    )


def _depth_to_space(draw: Draw, template: CaseTemplate) -> CaseTemplate:
    block = draw.size(3)
    n, h, w, c = draw.shape(4, 3)
    is_first = template.operation.attributes()["data_layout"] is DataLayout.NCHW
    shape = (n, c * block**2, h, w) if is_first else (n, h, w, c * block**2)
    return _changed(template, shape, block_size=block)


def _space_to_depth(draw: Draw, template: CaseTemplate) -> CaseTemplate:
    block = draw.size(3)
    n, h, w, c = draw.shape(4, 3)
    is_first = template.operation.attributes()["data_layout"] is DataLayout.NCHW
    shape = (n, c, h * block, w * block) if is_first else (n, h * block, w * block, c)
    return _changed(template, shape, block_size=block)


def _space_to_batch(draw: Draw, template: CaseTemplate) -> CaseTemplate:
    if template.operation.attributes()["data_layout"] is DataLayout.NCHW:
        return template
    shape = draw.shape(draw.pick((3, 4)))
    block = draw.shape(len(shape) - 2, 3)
    pads = [
        (before, after + -(dim + before + after) % size)
        for dim, size, (before, after) in zip(
            shape[1:-1], block, draw.pairs(len(block)), strict=True
        )
    ]
    return _changed(template, shape, block_shape=block, pad_list=tuple(pads))


def _batch_to_space(draw: Draw, template: CaseTemplate) -> CaseTemplate:
    if template.operation.attributes()["data_layout"] is DataLayout.NCHW:
        return template
    n, *rest = draw.shape(draw.pick((3, 4)), 4, 2)
    block = draw.shape(len(rest) - 1, 3)
    crops = tuple((draw.size(b - 1, 0), draw.size(b - 1, 0)) for b in block)
    return _changed(template, (n * math.prod(block), *rest), block_shape=block, crops=crops)


# Elements that are made, found or ordered


def _filled(draw: Draw, template: CaseTemplate) -> CaseTemplate:
    return _changed(template, *template.shapes, shape=draw.shape(draw.size(4, 0)))


def _range(draw: Draw, template: CaseTemplate) -> CaseTemplate:
    """A range of one element or more."""
    is_float = template.operation.attributes()["output_type"] is DataType.FLOAT32
    start, count = draw.size(20, -20), draw.size(12)
    delta = draw.pick((-3, -2, -1, 1, 2, 3)) / (4 if is_float else 1)
    limit = start + delta * count - (delta / 2 if is_float else np.sign(delta) * 0)
    numbers = [float(n) if is_float else int(n) for n in (start, limit, delta)]
    return _changed(template, start=numbers[0], limit=numbers[1], delta=numbers[2])


def _one_hot(draw: Draw, template: CaseTemplate) -> CaseTemplate:
    shape = draw.shape(draw.size(3))
    axis = draw.size(len(shape), -1)
    template = replace(template, values=(below(5), anything, anything))
    return _changed(template, shape, (), (), depth=draw.size(6), axis=axis)


def _topk(draw: Draw, template: CaseTemplate) -> CaseTemplate:
    shape = draw.shape(None, 6)
    return _changed(template, shape, k=draw.size(shape[-1]))


def _looked_up(draw: Draw, template: CaseTemplate) -> CaseTemplate:
    keys = np.unique(draw.rng.integers(-9, 9, 8))
    lookups = draw.rng.integers(-10, 10, draw.size(6))
    values = (exactly(lookups), exactly(keys), template.values[-1])
    return _changed(replace(template, values=values), lookups.shape, keys.shape, (len(keys), 3))


RULES: dict[type[Operation], Rule] = {
    **dict.fromkeys((ops.ElementwiseUnary, ops.Activation, ops.Cast), _any_shape),
    **dict.fromkeys((ops.Quantize, ops.Dequantize, ops.Shape, ops.Rank), _any_shape),
    **dict.fromkeys((ops.ElementwiseBinary, ops.Comparison), _broadcasting),
    **dict.fromkeys((ops.LogicalBinary, ops.Select), _broadcasting),
    ops.Prelu: _prelu,
    **dict.fromkeys(PRESCRIBING, _rows),
    ops.Reduce: _reduce,
    ops.ArgMinMax: _position,
    **dict.fromkeys((ops.Convolution2d, ops.DepthwiseConvolution2d), _weighted),
    ops.TransposeConvolution2d: _transposed,
    ops.Pooling2d: _pool,
    ops.FullyConnected: _dense,
    ops.BatchMatMul: _product,
    ops.Resize: _resize,
    ops.Normalization: _local_response,
    ops.Concat: _joined,
    ops.Stack: _stacked,
    ops.Unstack: _unstacked,
    ops.Splitter: _split,
    ops.Reshape: _reshape,
    ops.ExpandDims: _expanded,
    ops.Squeeze: _squeezed,
    ops.Transpose: _permuted,
    ops.Tile: _tiled,
    ops.BroadcastTo: _broadcast,
    ops.ReverseV2: _reversed,
    ops.Pad: _padded,
    ops.Slice: _slice,
    ops.StridedSlice: _strided,
    ops.Gather: _gathered,
    ops.GatherNd: _gathered_at_places,
    ops.DepthToSpace: _depth_to_space,
    ops.SpaceToDepth: _space_to_depth,
    ops.SpaceToBatchNd: _space_to_batch,
    ops.BatchToSpaceNd: _batch_to_space,
    ops.Fill: _filled,
    ops.Range: _range,
    ops.OneHot: _one_hot,
    ops.TopkV2: _topk,
    ops.HashtableLookup: _looked_up,
}
"""What draws the sizes and attributes of each operation; others keep those of their lines."""
