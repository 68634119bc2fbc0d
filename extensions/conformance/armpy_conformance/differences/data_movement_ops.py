"""Layers that move elements and compute nothing: whose answers are exact for every type."""

from __future__ import annotations

from armpy.graph import Layer
from armpy.ops import (
    BatchToSpaceNd,
    BroadcastTo,
    ChannelShuffle,
    Concat,
    DepthToSpace,
    ExpandDims,
    FusedActivation,
    Gather,
    GatherNd,
    Operation,
    Pad,
    Pooling2d,
    PoolingAlgorithm,
    Reshape,
    ReverseV2,
    Select,
    Slice,
    SpaceToBatchNd,
    SpaceToDepth,
    Splitter,
    Squeeze,
    Stack,
    StridedSlice,
    Tile,
    Transpose,
    Unstack,
)

_MOVES: tuple[type[Operation], ...] = (
    BatchToSpaceNd,
    BroadcastTo,
    ChannelShuffle,
    Concat,
    DepthToSpace,
    ExpandDims,
    Gather,
    GatherNd,
    Pad,
    Reshape,
    ReverseV2,
    Select,
    Slice,
    SpaceToBatchNd,
    SpaceToDepth,
    Splitter,
    Squeeze,
    Stack,
    StridedSlice,
    Tile,
    Transpose,
    Unstack,
)


def is_move(layer: Layer) -> bool:
    """Return whether each element that a layer gives is one of those that it reads, unchanged."""
    operation = layer.operation
    if isinstance(operation, Pooling2d):
        largest = operation.algorithm is PoolingAlgorithm.MAX
        if not largest or operation.activation is not FusedActivation.NONE:
            return False
    elif not isinstance(operation, _MOVES):
        return False
    output = layer.output_infos[0]
    read = [info for info in layer.input_infos if info and info.data_type is output.data_type]
    return all(info.quantization == output.quantization for info in (*read, *layer.output_infos))
