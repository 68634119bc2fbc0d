"""Wrong values of convolutions, pooling, resizing, and blocks of images."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from armpy.ops import (
    Convolution2d,
    DepthToSpace,
    DepthwiseConvolution2d,
    FusedActivation,
    Padding,
    Pooling2d,
    Resize,
    SpaceToBatchNd,
    TransposeConvolution2d,
)
from armpy.ops.operation import Operation
from armpy.ops.pooling import PoolingAlgorithm
from armpy.ops.shapes import resolve_padding
from armpy.types import DataLayout

from .planting import Planted
from .shapes import Call, Fused
from .wrong_values import (
    Answer,
    Condition,
    attribute,
    has_bias,
    has_channels_first,
    image_axes,
    info_of,
    is_activated,
    is_dilated,
    is_explicitly_padded,
    is_float,
    recomputed,
    replace_results,
    shape_of,
    source,
    wrong,
    wrong_forms,
)

# --- Convolutions


def pads_with_zero(operation: Convolution2d, call: Call) -> Answer:
    """Quantised images are padded with the byte 0."""
    info = info_of(call)
    if info.quantization is None or operation.padding is Padding.VALID:
        return None
    pads = [(0, 0)] * 4
    sizes: list[int] = list(info.known_shape)
    for axis, at in enumerate(image_axes(operation.data_layout)):
        kernel = source(call, 1).shape[1 + axis]
        steps = operation.stride[axis], operation.dilation[axis]
        pads[at] = resolve_padding(operation.padding, sizes[at], kernel, *steps, axis)
        sizes[at] += sum(pads[at])
    padded = np.pad(source(call), pads)
    infos = (replace(info, shape=tuple(sizes)), *call.infos[1:])
    wider = replace(operation, padding=Padding.VALID)
    return recomputed(call, wider, (padded, *call.inputs[1:]), infos)


def first_scale(operation: Operation, call: Call) -> Answer:
    """Of per-channel scales the first one is used for all channels."""
    info = info_of(call, 1)
    if info.quantization is None or info.quantization.axis is None:
        return None
    count = len(info.quantization.scales)
    scales = (info.quantization.scales[0],) * count
    weights = replace(info, quantization=replace(info.quantization, scales=scales))
    return recomputed(call, infos=(call.infos[0], weights, *call.infos[2:]))


def multiplier_order(operation: DepthwiseConvolution2d, call: Call) -> Answer:
    """The results of a channel multiplier lie multiplier by multiplier."""
    axis = -1 if operation.data_layout is DataLayout.NHWC else 1
    output = np.moveaxis(call.outputs[0], axis, -1)
    channels = source(call).shape[axis]
    parts = output.reshape(*output.shape[:-1], channels, -1)
    turned = np.swapaxes(parts, -1, -2).reshape(output.shape)
    return [np.moveaxis(turned, -1, axis)]


def bias_of_first_group(operation: Convolution2d, call: Call) -> Answer:
    """Every group of a grouped convolution gets the first group's bias."""
    channels = source(call).shape[-1 if operation.data_layout is DataLayout.NHWC else 1]
    depth = source(call, 1).shape[-1]
    if len(call.inputs) < 3 or call.inputs[2] is None or not 0 < depth < channels:
        return None
    groups = channels // depth
    bias = source(call, 2)
    return recomputed(call, inputs=(*call.inputs[:2], np.tile(bias[: len(bias) // groups], groups)))


def swapped_crops(operation: TransposeConvolution2d, call: Call) -> Answer:
    """The explicit padding before and after is swapped."""
    if isinstance(operation.padding, Padding):
        return None
    pairs = tuple((after, before) for before, after in operation.padding)
    return recomputed(call, replace(operation, padding=pairs))


# --- Pooling


def counts_padding(operation: Pooling2d, call: Call) -> Answer:
    """The average over a window at the edge is divided by the whole window's size."""
    if operation.algorithm is not PoolingAlgorithm.AVERAGE or not is_float(call):
        return None
    if operation.activation is not FusedActivation.NONE:
        return None
    sizes = source(call).shape
    output = call.outputs[0].copy()
    for axis, at in enumerate(image_axes(operation.data_layout)):
        size, kernel, stride = sizes[at], operation.pool_size[axis], operation.stride[axis]
        before, _ = resolve_padding(operation.padding, size, kernel, stride, 1, axis)
        starts = np.arange(output.shape[at]) * stride - before
        counts = np.minimum(starts + kernel, size) - np.maximum(starts, 0)
        shape = [1] * 4
        shape[at] = -1
        output *= (counts / kernel).reshape(shape).astype(np.float32)
    return [output]


# --- Resizing and blocks


def only_first_image(operation: Resize, call: Call) -> Answer:
    """All images of a batch become the first."""
    output = call.outputs[0]
    return [np.broadcast_to(output[:1], output.shape).copy()]


def columns_first(operation: DepthToSpace, call: Call) -> Answer:
    """In layout NCHW the block's offsets are the inner part of the channels."""
    if operation.data_layout is not DataLayout.NCHW:
        return None
    n, c, h, w = source(call).shape
    size = operation.block_size
    parts = source(call).reshape(n, c // size**2, size, size, h, w)
    return [parts.transpose(0, 1, 4, 2, 5, 3).reshape(call.outputs[0].shape)]


def blocks_of_zero(operation: SpaceToBatchNd, call: Call) -> Answer:
    """Quantised images are padded with the byte 0."""
    info = info_of(call)
    if info.quantization is None or not any(map(any, operation.pad_list or ())):
        return None
    plain = replace(info, quantization=replace(info.quantization, zero_points=(0,)))
    results = tuple(replace(i, quantization=plain.quantization) for i in call.results)
    return recomputed(replace_results(call, results), infos=(plain, *call.infos[1:]))


# --- Forms


_WINDOWS: Mapping[str, tuple[str, Condition]] = {
    "conv-uneven-padding-strided": (
        "Convolution2d",
        lambda c: is_explicitly_padded(c) and max(attribute(c, "stride")) > 1,
    ),
    "depthwise-dilation-channels-first": (
        "DepthwiseConvolution2d",
        lambda c: is_dilated(c) and has_channels_first(c),
    ),
    "transposed-uneven-padding-first": (
        "TransposeConvolution2d",
        lambda c: is_explicitly_padded(c) and has_channels_first(c),
    ),
    "transposed-stride-beyond-kernel": (
        "TransposeConvolution2d",
        lambda c: attribute(c, "stride")[1] > shape_of(c, 1)[2] and not has_bias(c),
    ),
    "conv3d-depth-stride-first": (
        "Convolution3d",
        lambda c: attribute(c, "stride")[0] > 1 and has_channels_first(c),
    ),
    "conv3d-dilation-clamped": ("Convolution3d", lambda c: is_dilated(c) and is_activated(c)),
    "average-same-channels-first": (
        "Pooling2d",
        lambda c: (
            attribute(c, "padding") is Padding.SAME
            and has_channels_first(c)
            and attribute(c, "algorithm").name == "AVERAGE"
            and min(attribute(c, "stride")) == 1 < max(attribute(c, "stride"))
        ),
    ),
    "l2-pool-channels-first": (
        "Pooling2d",
        lambda c: (
            attribute(c, "algorithm").name == "L2"
            and has_channels_first(c)
            and is_explicitly_padded(c)
        ),
    ),
    "pool3d-dilated-strided": (
        "Pooling3d",
        lambda c: is_dilated(c) and max(attribute(c, "stride")) > 1,
    ),
    "pool-with-indices-dilated-batch": (
        "MaxPoolWithIndices",
        lambda c: is_dilated(c) and shape_of(c)[0] > 1,
    ),
    "resize-half-pixels-channels-first": (
        "Resize",
        lambda c: attribute(c, "half_pixel_centers") and has_channels_first(c),
    ),
    "space-to-batch-uneven-block-first": (
        "SpaceToBatchNd",
        lambda c: len(set(attribute(c, "block_shape"))) > 1 and has_channels_first(c),
    ),
    "batch-to-space-crop-uneven-block": (
        "BatchToSpaceNd",
        lambda c: len(set(attribute(c, "block_shape"))) > 1 and np.any(attribute(c, "crops")),
    ),
    "depth-to-space-3-first": (
        "DepthToSpace",
        lambda c: attribute(c, "block_size") == 3 and has_channels_first(c),
    ),
}


WINDOW_FAULTS: dict[str, Planted] = {
    "blind-window/zero-point": wrong(Convolution2d, pads_with_zero),
    "blind-window/scales": wrong(DepthwiseConvolution2d, first_scale),
    "blind-window/multiplier": wrong(DepthwiseConvolution2d, multiplier_order, Fused),
    "blind-window/groups": wrong(Convolution2d, bias_of_first_group),
    "blind-window/crops": wrong(TransposeConvolution2d, swapped_crops),
    "blind-window/average": wrong(Pooling2d, counts_padding),
    "blind-move/first-image": wrong(Resize, only_first_image),
    "blind-move/depth-to-space": wrong(DepthToSpace, columns_first),
    "blind-move/blocks": wrong(SpaceToBatchNd, blocks_of_zero),
    **wrong_forms(_WINDOWS, "windows"),
}
"""By class and name."""
