"""Which layers and values two right backends compute alike in every element."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.graph import Layer, Value
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


def after_floats(layers: Sequence[Layer]) -> set[Value]:
    """Values that layers compute in floating point from floats, and all that depends on them.

    Notes
    -----
    Two right backends may round them differently. A layer that moves floats, or quantises,
    dequantises or compares them, computes nothing of the kind.
    """
    inexact: set[Value] = set()
    for layer in layers:
        read = [value for value in layer.inputs if value is not None]
        is_real = any(value.info.data_type.is_float for value in read) and not is_move(layer)
        for value in layer.outputs:
            if not inexact.isdisjoint(read) or (is_real and value.info.data_type.is_float):
                inexact.add(value)
    return inexact
