"""Operators that move elements: pads, permutations, joins, blocks, resizing."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.frontends.tflite.composed import moving
from armpy.frontends.tflite.node import (
    BoundOperator,
    Converter,
    ConverterTable,
    direct,
    require_no_activation,
)
from armpy.graph import Value
from armpy.ops.blocks import BatchToSpaceNd, DepthToSpace, SpaceToBatchNd, SpaceToDepth
from armpy.ops.joining import Concat, Stack
from armpy.ops.movement import BroadcastTo, Pad, PaddingMode, ReverseV2, Tile, Transpose
from armpy.ops.quantizing import Cast
from armpy.ops.resizing import Resize, ResizeMethod
from armpy.tensor import TensorInfo
from armpy.types import DataType

_MIRROR_MODES = {0: PaddingMode.REFLECT, 1: PaddingMode.SYMMETRIC}


def positions(node: BoundOperator, index: int) -> Value | None:
    """An input that says where, as 32-bit integers if it is of smaller ones."""
    value = node.input(index)
    if value is None or value.info.data_type not in (DataType.SIGNED8, DataType.SIGNED16):
        return value
    info = TensorInfo(value.info.shape, DataType.SIGNED32)
    layer = node.network.add_layer(Cast(), [value], name=f"{node.name}:in_{index}", outputs=[info])
    return layer.outputs[0]


def _pad(node: BoundOperator) -> Sequence[Value]:
    return node.layer(Pad(), node.input(0), None, positions(node, 1))


def _pad_with_value(node: BoundOperator) -> Sequence[Value]:
    return node.layer(Pad(), node.input(0), node.input(2), positions(node, 1))


def _mirror_pad(node: BoundOperator) -> Sequence[Value]:
    mode = node.options("MirrorPadOptions").choice("Mode", _MIRROR_MODES, "MirrorPadMode")
    return node.layer(Pad(padding_mode=mode), node.input(0), None, node.input(1))


def _concatenation(node: BoundOperator) -> Concat:
    options = node.options("ConcatenationOptions")
    require_no_activation(options)
    return Concat(options.integer("Axis"))


def _pack(node: BoundOperator) -> Stack:
    options = node.options("PackOptions")
    count = options.integer("ValuesCount")
    if count != len(node.inputs):
        raise node.error(
            "the number of inputs is wrong", expected=str(count), actual=str(len(node.inputs))
        )
    return Stack(options.integer("Axis"))


def _blocks(operation: type[DepthToSpace | SpaceToDepth]) -> Converter:
    """Converter of an operator that moves elements between blocks and channels."""
    name = f"{operation.__name__}Options"
    return direct(lambda node: operation(node.options(name).integer("BlockSize")))


def _resize(method: ResizeMethod, options_name: str) -> Converter:
    """Converter of a resizing operator."""

    def make(node: BoundOperator) -> Resize:
        options = node.options(options_name)
        return Resize(
            method=method,
            align_corners=options.flag("AlignCorners"),
            half_pixel_centers=options.flag("HalfPixelCenters"),
        )

    return moving(direct(make), has_scale=True)


CONVERTERS: ConverterTable = {
    "BATCH_TO_SPACE_ND": direct(BatchToSpaceNd()),
    "BROADCAST_TO": direct(BroadcastTo()),
    "CONCATENATION": direct(_concatenation),
    "DEPTH_TO_SPACE": moving(_blocks(DepthToSpace)),
    "MIRROR_PAD": _mirror_pad,
    "PACK": direct(_pack),
    "PAD": _pad,
    "PADV2": _pad_with_value,
    "RESIZE_BILINEAR": _resize(ResizeMethod.BILINEAR, "ResizeBilinearOptions"),
    "RESIZE_NEAREST_NEIGHBOR": _resize(
        ResizeMethod.NEAREST_NEIGHBOR, "ResizeNearestNeighborOptions"
    ),
    "REVERSE_V2": moving(direct(ReverseV2())),
    "SPACE_TO_BATCH_ND": direct(SpaceToBatchNd()),
    "SPACE_TO_DEPTH": moving(_blocks(SpaceToDepth)),
    "TILE": moving(direct(Tile())),
    "TRANSPOSE": moving(direct(Transpose())),
}
