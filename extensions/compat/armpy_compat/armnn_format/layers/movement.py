"""Layers that rearrange, repeat and resample the elements of one tensor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from armpy import DataLayout, DataType, TensorInfo, ops
from armpy.graph import Value
from armpy.ops import PaddingMode, ResizeMethod
from armpy_compat.armnn_format.layer import ArmnnLayer, Converter, LayerTable, pairs

_PADDING_MODES: Mapping[int, PaddingMode] = {
    0: PaddingMode.CONSTANT,
    1: PaddingMode.REFLECT,
    2: PaddingMode.SYMMETRIC,
}
_RESIZE_METHODS: Mapping[int, ResizeMethod] = {
    0: ResizeMethod.NEAREST_NEIGHBOR,
    1: ResizeMethod.BILINEAR,
}
"""Methods by the format's numbers, which are not those of Arm NN."""

_FOLLOWS = (1 << 32) - 1
"""A size of a target shape that follows from the others."""


def _reshape(layer: ArmnnLayer) -> Sequence[Value]:
    layer.expect_inputs(1)
    sizes: list[int] = layer.descriptor.numbers("targetShape")
    shape = tuple(-1 if size == _FOLLOWS else size for size in sizes)
    return (layer.add(ops.Reshape(shape), layer.inputs[0]),)


def _transpose(layer: ArmnnLayer) -> Sequence[Value]:
    layer.expect_inputs(1)
    return (layer.add(ops.Transpose(tuple(_mappings(layer))), layer.inputs[0]),)


def _permute(layer: ArmnnLayer) -> Sequence[Value]:
    """Move axis i to place mappings[i], which is the inverse of what Transpose does."""
    layer.expect_inputs(1)
    order = tuple(int(axis) for axis in np.argsort(_mappings(layer)))
    return (layer.add(ops.Transpose(order), layer.inputs[0]),)


def _mappings(layer: ArmnnLayer) -> list[int]:
    """The axes of a permutation."""
    mappings: list[int] = layer.descriptor.numbers("dimMappings")
    if sorted(mappings) != list(range(len(mappings))):
        raise layer.error(
            "dimMappings is not a permutation",
            expected=f"each of 0 to {len(mappings) - 1} once",
            actual=mappings,
        )
    return mappings


def _pad(layer: ArmnnLayer) -> Sequence[Value]:
    """Add elements; the value of quantised ones is a stored number."""
    layer.expect_inputs(1)
    descriptor, value = layer.descriptor, layer.inputs[0]
    around = pairs(descriptor.numbers("padList"), layer)
    mode = descriptor.choice("paddingMode", _PADDING_MODES, "PaddingMode")
    number = descriptor.real("padValue")
    if mode is not PaddingMode.CONSTANT or not value.info.data_type.is_quantized:
        return (layer.add(ops.Pad(around, number, mode), value),)
    low, high = value.info.data_type.integer_range
    stored = np.array(min(max(round(number), low), high), value.info.data_type.dtype)
    return (layer.add(ops.Pad(around), value, layer.constant(stored, value.info)),)


def _tile(layer: ArmnnLayer) -> Sequence[Value]:
    layer.expect_inputs(1)
    multiples = tuple(layer.descriptor.numbers("m_Multiples"))
    return (layer.add(ops.Tile(multiples), layer.inputs[0]),)


def _reverse_v2(layer: ArmnnLayer) -> Sequence[Value]:
    layer.expect_inputs(2)
    return (layer.add(ops.ReverseV2(), *layer.inputs),)


def _channel_shuffle(layer: ArmnnLayer) -> Sequence[Value]:
    layer.expect_inputs(1)
    descriptor = layer.descriptor
    operation = ops.ChannelShuffle(descriptor.integer("numGroups"), descriptor.integer("axis"))
    return (layer.add(operation, layer.inputs[0]),)


def _depth_to_space(layer: ArmnnLayer) -> Sequence[Value]:
    layer.expect_inputs(1)
    operation = ops.DepthToSpace(layer.descriptor.integer("blockSize"), layer.layout())
    return (layer.add(operation, layer.inputs[0]),)


def _space_to_depth(layer: ArmnnLayer) -> Sequence[Value]:
    layer.expect_inputs(1)
    operation = ops.SpaceToDepth(layer.descriptor.integer("blockSize"), layer.layout())
    return (layer.add(operation, layer.inputs[0]),)


def _space_to_batch_nd(layer: ArmnnLayer) -> Sequence[Value]:
    layer.expect_inputs(1)
    descriptor = layer.descriptor
    block = tuple(descriptor.numbers("blockShape"))
    around = pairs(descriptor.numbers("padList"), layer)
    return (layer.add(ops.SpaceToBatchNd(block, around, layer.layout()), layer.inputs[0]),)


def _batch_to_space_nd(layer: ArmnnLayer) -> Sequence[Value]:
    layer.expect_inputs(1)
    descriptor = layer.descriptor
    block = tuple(descriptor.numbers("blockShape"))
    crops = pairs(descriptor.numbers("crops"), layer)
    return (layer.add(ops.BatchToSpaceNd(block, crops, layer.layout()), layer.inputs[0]),)


def _resize(layer: ArmnnLayer) -> Sequence[Value]:
    descriptor = layer.descriptor
    method = descriptor.choice("method", _RESIZE_METHODS, "ResizeMethod")
    return _resized(layer, descriptor, method, layer.layout())


def _resize_bilinear(layer: ArmnnLayer) -> Sequence[Value]:
    return _resized(layer, layer.descriptor, ResizeMethod.BILINEAR, layer.layout())


def _resized(
    layer: ArmnnLayer, descriptor: LayerTable, method: ResizeMethod, layout: DataLayout
) -> Sequence[Value]:
    layer.expect_inputs(1)
    operation = ops.Resize(
        (descriptor.integer("targetHeight"), descriptor.integer("targetWidth")),
        method,
        descriptor.flag("alignCorners"),
        descriptor.flag("halfPixelCenters"),
        layout,
    )
    return (layer.add(operation, layer.inputs[0]),)


def _gather(layer: ArmnnLayer) -> Sequence[Value]:
    layer.expect_inputs(2)
    operation = ops.Gather(layer.descriptor.integer("axis"), wraps_negative=True)
    return (layer.add(operation, *layer.inputs),)


def _gather_nd(layer: ArmnnLayer) -> Sequence[Value]:
    layer.expect_inputs(2)
    return (layer.add(ops.GatherNd(), *layer.inputs),)


def _fill(layer: ArmnnLayer) -> Sequence[Value]:
    layer.expect_inputs(1)
    layer.expect_outputs(1)
    info = layer.output(TensorInfo(None, DataType.FLOAT32))
    number = layer.descriptor.real("value")
    if info.data_type.dtype.kind in "iu":
        low, high = info.data_type.integer_range
        number = min(max(int(number), low), high)
    with np.errstate(over="ignore"):
        value = layer.constant(np.array(number, info.data_type.dtype), info)
    return (layer.add(ops.Fill(), value, layer.inputs[0]),)


def _shape(layer: ArmnnLayer) -> Sequence[Value]:
    layer.expect_inputs(1)
    layer.expect_outputs(1)
    operation = ops.Shape(layer.output(TensorInfo(None, DataType.SIGNED32)).data_type)
    return (layer.add(operation, layer.inputs[0]),)


def _rank(layer: ArmnnLayer) -> Sequence[Value]:
    layer.expect_inputs(1)
    return (layer.add(ops.Rank(), layer.inputs[0], output=TensorInfo(None, DataType.SIGNED32)),)


CONVERTERS: Mapping[str, Converter] = {
    "BatchToSpaceNd": _batch_to_space_nd,
    "ChannelShuffle": _channel_shuffle,
    "DepthToSpace": _depth_to_space,
    "Fill": _fill,
    "Gather": _gather,
    "GatherNd": _gather_nd,
    "Pad": _pad,
    "Permute": _permute,
    "Rank": _rank,
    "Reshape": _reshape,
    "Resize": _resize,
    "ResizeBilinear": _resize_bilinear,
    "ReverseV2": _reverse_v2,
    "Shape": _shape,
    "SpaceToBatchNd": _space_to_batch_nd,
    "SpaceToDepth": _space_to_depth,
    "Tile": _tile,
    "Transpose": _transpose,
}
