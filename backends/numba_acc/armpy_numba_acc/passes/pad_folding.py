"""Lets convolutions pad what layers in front of them would only put into a frame."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from armpy.graph import Layer, SubgraphView, Value
from armpy.ops import Convolution2d, DepthwiseConvolution2d, Pad
from armpy.ops.shapes import resolve_padding
from armpy.types import DataLayout
from armpy_numba_acc.lowering.dynamic_range import is_dynamic
from armpy_numba_acc.lowering.padding import frames_with_zeros
from armpy_numba_acc.lowering.patches import input_of


def without_frames(view: SubgraphView) -> SubgraphView:
    """A region whose convolutions read what is inside of the frames.

    Notes
    -----
    A depthwise convolution needs no padded copy of its input, and another one makes it itself.
    """
    readers = Counter(value for layer in view.layers for value in layer.inputs)
    outside = set(view.outputs)
    frames = {
        layer.outputs[0]: layer
        for layer in view.layers
        if isinstance(layer.operation, Pad)
        and readers[layer.outputs[0]] == 1
        and layer.outputs[0] not in outside
        and _is_frame(layer)
    }
    joined = {layer: found for layer in view.layers if (found := _joined(layer, frames))}
    if not joined:
        return view
    gone = {frames[input_of(layer, 0)] for layer in joined}
    layers = (joined.get(layer, layer) for layer in view.layers if layer not in gone)
    return replace(view, layers=tuple(layers))


def _is_frame(layer: Layer) -> bool:
    """Whether zeros are added around images."""
    pads, info = layer.operation.pad_list, layer.outputs[0].info  # type: ignore[attr-defined]
    is_image = len(info.known_shape) == 4 and not any((*pads[0], *pads[3]))
    if layer.input_infos[0] is None or layer.input_infos[0].quantization != info.quantization:
        return False
    return is_image and any((*pads[1], *pads[2])) and frames_with_zeros(layer)


def _joined(layer: Layer, frames: Mapping[Value, Layer]) -> Layer | None:
    """A convolution together with the frame that it reads; None if it is or reads none."""
    operation = layer.operation
    if not isinstance(operation, Convolution2d | DepthwiseConvolution2d):
        return None
    value, weights = input_of(layer, 0), input_of(layer, 1)
    is_plain = operation.data_layout is DataLayout.NHWC and not is_dynamic(layer.input_infos)
    if value not in frames or not is_plain:
        return None
    frame, padding = frames[value], []
    sizes, kernel = value.info.known_shape[1:3], weights.info.known_shape[1:3]
    strides, dilations = operation.stride, operation.dilation
    added = frame.operation.pad_list[1:3]  # type: ignore[attr-defined]
    for a in range(2):
        own = resolve_padding(operation.padding, sizes[a], kernel[a], strides[a], dilations[a], a)
        padding.append((added[a][0] + own[0], added[a][1] + own[1]))
    return replace(
        layer,
        name=f"{frame.name} + {layer.name}",
        operation=replace(operation, padding=tuple(padding)),
        inputs=(frame.inputs[0], *layer.inputs[1:]),
    )
