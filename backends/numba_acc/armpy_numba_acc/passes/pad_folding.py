"""Folds padding: lets convolutions pad what layers in front of them would only put zeros around."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from armpy.graph import Layer, SubgraphView, Value
from armpy.ops.convolution import Convolution2d, DepthwiseConvolution2d
from armpy.ops.movement import Pad
from armpy.ops.shapes import resolve_padding
from armpy.types import DataLayout
from armpy_numba_acc.lowering.padding import pads_with_zeros
from armpy_numba_acc.lowering.weighted_checks import is_dynamic
from armpy_numba_acc.passes.consumers import only_consumer

Pads = tuple[tuple[int, int], ...]


def with_folded_padding(view: SubgraphView) -> SubgraphView:
    """A region whose convolutions read what padding layers read.

    A depthwise convolution needs no padded copy of its input, and another one makes it itself.
    """
    outside = set(view.outputs)
    padding = {
        layer.output: (layer, pads)
        for layer in view.layers
        if (pads := _pads_of_image(layer)) and only_consumer(view, layer.output, outside)
    }
    folded = {layer: padded for layer in view.layers if (padded := _folded(layer, padding))}
    if not folded:
        return view
    gone = {padding[layer["input"]][0] for layer in folded}
    layers = (folded.get(layer, layer) for layer in view.layers if layer not in gone)
    return replace(view, layers=tuple(layers))


def _pads_of_image(layer: Layer) -> Pads:
    """Return how much is added along the axes of images, if only zeros around them are."""
    pads = layer.operation.pad_list if isinstance(layer.operation, Pad) else None
    if pads is None or layer["input"].info.quantization != layer.output.info.quantization:
        return ()
    is_image = len(pads) == 4 and not any((*pads[0], *pads[3])) and any((*pads[1], *pads[2]))
    return pads if is_image and pads_with_zeros(layer) else ()


def _folded(layer: Layer, padding: Mapping[Value, tuple[Layer, Pads]]) -> Layer | None:
    """A convolution together with the padding that it reads; None if it is or reads none."""
    operation = layer.operation
    if not isinstance(operation, Convolution2d | DepthwiseConvolution2d):
        return None
    value, weights = layer["input"], layer["weights"]
    is_plain = operation.data_layout is DataLayout.NHWC and not is_dynamic(layer.input_infos)
    if value not in padding or not is_plain:
        return None
    pad, pads = padding[value]
    sizes, kernel = value.info.known_shape[1:3], weights.info.known_shape[1:3]
    strides, dilations = operation.stride, operation.dilation
    total = []
    for a, (before, after) in enumerate(pads[1:3]):
        own = resolve_padding(operation.padding, sizes[a], kernel[a], strides[a], dilations[a], a)
        total.append((before + own[0], after + own[1]))
    return replace(
        layer,
        name=f"{pad.name} + {layer.name}",
        operation=replace(operation, padding=tuple(total)),
        inputs=(pad["input"], *layer.inputs[1:]),
    )
