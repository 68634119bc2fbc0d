"""Pass that folds padding: convolutions and pooling pad their inputs themselves."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from armpy.compiler.passes.context import PassContext
from armpy.compiler.passes.matching import FusedLayer, fuse
from armpy.core import numerics
from armpy.graph import Graph, Layer, Value
from armpy.graph.rewriter import only_reader
from armpy.ops.convolution import Convolution2d, DepthwiseConvolution2d
from armpy.ops.movement import Pad, PaddingMode
from armpy.ops.operation import Operation
from armpy.ops.pooling import Pooling2d, PoolingAlgorithm
from armpy.ops.shapes import Padding, resolve_padding

_Windows = Convolution2d | DepthwiseConvolution2d | Pooling2d


def fold_pad(graph: Graph, context: PassContext) -> Graph:
    """Let convolutions and pooling read what padding in front of them reads, and pad it.

    The padding element must equal their own: zeros for convolutions, which pad with
    zeros, and for maximum pooling, which leaves padding out, nothing above any element. Averages
    count what a layer adds, but not their own padding. The layer stays on its backend: one that
    takes no explicit padding keeps both layers.

    References
    ----------
    Arm NN FoldPadIntoConvolution2d, FoldPadIntoDepthwiseConvolution2d, FoldPadIntoPooling2d.
    """
    folded_pads: dict[Layer, FusedLayer] = {}
    for layer in graph.layers:
        folded = _folded(graph, layer)
        if folded is not None and context.stays(layer, folded.operation, folded.inputs):
            folded_pads[layer] = folded
    return fuse(graph, folded_pads)


def _folded(graph: Graph, layer: Layer) -> FusedLayer | None:
    """A layer together with the padding that it reads; None if there is none that can go."""
    operation = layer.operation
    if not isinstance(operation, _Windows):
        return None
    value = layer["input"]
    pad = graph.producers.get(value)
    # With other readers the padding would stay, and be done twice.
    if pad is None or not isinstance(pad.operation, Pad) or only_reader(graph, value) is None:
        return None
    pads = pad.operation.pad_list
    is_constant = pad.operation.padding_mode is PaddingMode.CONSTANT
    if pads is None or not is_constant or pad["input"].info.quantization != value.info.quantization:
        return None
    axes = operation.data_layout.spatial_axes
    # Windows pad along height and width alone.
    if any(any(pair) for axis, pair in enumerate(pads) if axis not in axes):
        return None
    if not _is_neutral(graph, pad, operation):
        return None
    around = tuple(pads[axis] for axis in axes)
    inputs = (pad["input"], *layer.inputs[1:])
    return FusedLayer(_padded(operation, layer, pad, around), inputs, (layer, pad))


def _is_neutral(graph: Graph, pad: Layer, operation: _Windows) -> bool:
    """Return whether the padding element equals the operation's own."""
    element, info = _element(pad), pad.output.info
    if element is None:
        return False
    if not isinstance(operation, Pooling2d):
        if info.data_type.is_quantized:
            return int(element) == info.zero_point
        # A negative zero can come out as one, which a layer's own padding never does.
        return element == 0 and not np.signbit(element)
    if operation.algorithm is not PoolingAlgorithm.MAX:
        return False
    if info.data_type.is_quantized:
        return int(element) <= _least_stored(graph, pad["input"])
    # Elements may be -infinity themselves, and then any number that is added would be the maximum.
    return bool(element == -np.inf)


def _element(pad: Layer) -> np.generic | None:
    """Return the padding element; None if only an execution determines it."""
    operation, info = pad.operation, pad.output.info
    assert isinstance(operation, Pad)
    if pad.operand("pad_value") is not None:
        element = pad.constant("pad_value")
        return None if element is None else element.dtype.type(element.item())
    if not info.data_type.is_quantized:
        if not info.data_type.is_float:
            return None
        return np.float64(operation.pad_value)
    if math.isnan(operation.pad_value):
        return None
    stored = info.zero_point + float(numerics.round_half_away(operation.pad_value / info.scale))
    low, high = info.data_type.integer_range
    # Clamped, as Pad itself stores it.
    return np.int64(min(max(stored, low), high))


def _least_stored(graph: Graph, value: Value) -> int:
    """A bound below which no stored element of a value lies."""
    info = value.info
    producer = graph.producers.get(value)
    activation = getattr(producer.operation, "activation", None) if producer is not None else None
    low, _ = info.data_type.integer_range
    if activation is not None and activation.bounds[0] == 0:  # clamped to what stands for 0
        return max(low, info.zero_point)
    return low


def _padded(
    operation: _Windows, layer: Layer, pad: Layer, around: tuple[tuple[int, int], ...]
) -> Operation:
    """An operation that pads as both layers do, by SAME if that is as much."""
    before, after = layer["input"].info.known_shape, pad["input"].info.known_shape
    axes = operation.data_layout.spatial_axes
    if isinstance(operation, Pooling2d):
        kernel, dilations = operation.pool_size, (1, 1)
    else:
        weights = layer["weights"].info.known_shape
        kernel, dilations = (weights[1], weights[2]), operation.dilation
    total, same = [], []
    for a, axis in enumerate(axes):
        numbers = kernel[a], operation.stride[a], dilations[a], a
        own = resolve_padding(operation.padding, before[axis], *numbers)
        total.append((around[a][0] + own[0], around[a][1] + own[1]))
        same.append(resolve_padding(Padding.SAME, after[axis], *numbers))
    # Backends may take SAME and refuse amounts.
    padding = Padding.SAME if total == same else tuple(total)
    return replace(operation, padding=padding)
