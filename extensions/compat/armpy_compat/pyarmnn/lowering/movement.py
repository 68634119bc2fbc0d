"""Layers that move elements, or change shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from armpy import ops
from armpy.graph import Value
from armpy.types import DataLayout
from armpy_compat.pyarmnn.lowering.lowered_layer import LoweredLayer, Lowering


def _batch_to_space_nd(lowered: LoweredLayer) -> Sequence[Value]:
    d = lowered.descriptor
    operation = ops.BatchToSpaceNd(
        tuple(d.m_BlockShape), tuple(d.m_Crops), DataLayout(d.m_DataLayout)
    )
    return lowered.result(operation, *lowered.inputs)


def _space_to_batch_nd(lowered: LoweredLayer) -> Sequence[Value]:
    d = lowered.descriptor
    operation = ops.SpaceToBatchNd(
        tuple(d.m_BlockShape), tuple(d.m_PadList), DataLayout(d.m_DataLayout)
    )
    return lowered.result(operation, *lowered.inputs)


def _depth_to_space(lowered: LoweredLayer) -> Sequence[Value]:
    d = lowered.descriptor
    operation = ops.DepthToSpace(d.m_BlockSize, data_layout=DataLayout(d.m_DataLayout))
    return lowered.result(operation, *lowered.inputs)


def _space_to_depth(lowered: LoweredLayer) -> Sequence[Value]:
    d = lowered.descriptor
    operation = ops.SpaceToDepth(d.m_BlockSize, data_layout=DataLayout(d.m_DataLayout))
    return lowered.result(operation, *lowered.inputs)


def _channel_shuffle(lowered: LoweredLayer) -> Sequence[Value]:
    d = lowered.descriptor
    return lowered.result(ops.ChannelShuffle(d.m_NumGroups, d.m_Axis), *lowered.inputs)


def _concat(lowered: LoweredLayer) -> Sequence[Value]:
    return lowered.result(ops.Concat(lowered.descriptor.GetConcatAxis()), *lowered.inputs)


def _stack(lowered: LoweredLayer) -> Sequence[Value]:
    return lowered.result(ops.Stack(lowered.descriptor.m_Axis), *lowered.inputs)


def _splitter(lowered: LoweredLayer) -> Sequence[Value]:
    """Each output as a part of its own: views may lie anywhere."""
    d = lowered.descriptor
    source = lowered.inputs[0]
    return [
        lowered.network.add(
            ops.Slice(tuple(begin), tuple(size)),
            source,
            name=f"{lowered.layer.name}:{index}" if lowered.layer.name else "",
            output=lowered.inferred(index),
        )
        for index, (begin, size) in enumerate(zip(d.whole_origins(), d.whole_sizes(), strict=True))
    ]


def _gather(lowered: LoweredLayer) -> Sequence[Value]:
    return lowered.result(ops.Gather(lowered.descriptor.m_Axis), *lowered.inputs)


def _gather_nd(lowered: LoweredLayer) -> Sequence[Value]:
    return lowered.result(ops.GatherNd(), *lowered.inputs)


def _fill(lowered: LoweredLayer) -> Sequence[Value]:
    value = lowered.network.constant(np.float32(lowered.descriptor.m_Value))
    output = lowered.outputs[0]
    if output is None:
        return lowered.result(ops.Fill(), value, lowered.inputs[0])
    if output.data_type is not value.info.data_type:
        value = lowered.network.add(ops.Cast(), value, output=lowered.inferred())
    return lowered.result(ops.Fill(output.known_shape), value)


def _pad(lowered: LoweredLayer) -> Sequence[Value]:
    d = lowered.descriptor
    mode = ops.PaddingMode(d.m_PaddingMode)
    value, quantization = d.m_PadValue, lowered.inputs[0].info.quantization
    if quantization is not None:
        # Arm NN's is the stored integer, armpy's the real number.
        value = quantization.scale * (round(value) - quantization.zero_point)
    return lowered.result(ops.Pad(tuple(d.m_PadList), value, mode), *lowered.inputs)


def _permute(lowered: LoweredLayer) -> Sequence[Value]:
    goes_to = tuple(lowered.descriptor.m_DimMappings)
    comes_from = tuple(sorted(range(len(goes_to)), key=goes_to.__getitem__))
    return lowered.result(ops.Transpose(comes_from), *lowered.inputs)


def _transpose(lowered: LoweredLayer) -> Sequence[Value]:
    return lowered.result(ops.Transpose(tuple(lowered.descriptor.m_DimMappings)), *lowered.inputs)


def _reshape(lowered: LoweredLayer) -> Sequence[Value]:
    return lowered.result(ops.Reshape(tuple(lowered.descriptor.m_TargetShape)), *lowered.inputs)


def _resize(lowered: LoweredLayer) -> Sequence[Value]:
    d = lowered.descriptor
    operation = ops.Resize(
        (d.m_TargetHeight, d.m_TargetWidth),
        ops.ResizeMethod(d.m_Method),
        d.m_AlignCorners,
        d.m_HalfPixelCenters,
        DataLayout(d.m_DataLayout),
    )
    return lowered.result(operation, *lowered.inputs)


def _reverse_v2(lowered: LoweredLayer) -> Sequence[Value]:
    return lowered.result(ops.ReverseV2(), *lowered.inputs)


def _shape(lowered: LoweredLayer) -> Sequence[Value]:
    return lowered.result(ops.Shape(), *lowered.inputs)


def _rank(lowered: LoweredLayer) -> Sequence[Value]:
    return lowered.result(ops.Rank(), *lowered.inputs)


def _slice(lowered: LoweredLayer) -> Sequence[Value]:
    d = lowered.descriptor
    return lowered.result(ops.Slice(tuple(d.m_Begin), tuple(d.m_Size)), *lowered.inputs)


def _strided_slice(lowered: LoweredLayer) -> Sequence[Value]:
    d = lowered.descriptor
    operation = ops.StridedSlice(
        tuple(d.m_Begin),
        tuple(d.m_End),
        tuple(d.m_Stride),
        d.m_BeginMask,
        d.m_EndMask,
        d.m_ShrinkAxisMask,
        d.m_EllipsisMask,
        d.m_NewAxisMask,
    )
    return lowered.result(operation, *lowered.inputs)


def _tile(lowered: LoweredLayer) -> Sequence[Value]:
    return lowered.result(ops.Tile(tuple(lowered.descriptor.m_Multiples)), *lowered.inputs)


MOVEMENT: Mapping[str, Lowering] = {
    "BatchToSpaceNd": _batch_to_space_nd,
    "ChannelShuffle": _channel_shuffle,
    "Concat": _concat,
    "DepthToSpace": _depth_to_space,
    "Fill": _fill,
    "Gather": _gather,
    "GatherNd": _gather_nd,
    "Pad": _pad,
    "Permute": _permute,
    "Rank": _rank,
    "Reshape": _reshape,
    "Resize": _resize,
    "ReverseV2": _reverse_v2,
    "Shape": _shape,
    "Slice": _slice,
    "SpaceToBatchNd": _space_to_batch_nd,
    "SpaceToDepth": _space_to_depth,
    "Splitter": _splitter,
    "Stack": _stack,
    "StridedSlice": _strided_slice,
    "Tile": _tile,
    "Transpose": _transpose,
}
"""How layers that move elements are made, by kind."""
