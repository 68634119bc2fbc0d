"""Lowers convolutions whose filters see some of the channels only."""

from __future__ import annotations

from dataclasses import replace

from armpy.graph import Layer
from armpy.ops import Convolution2d
from armpy_numba_acc.lowering.emitter import Emitter
from armpy_numba_acc.lowering.patches import constant_of, input_of, patches_of_images
from armpy_numba_acc.lowering.products import emit_product, fill_byte_of, readable


def lower_grouped(emit: Emitter, layer: Layer) -> None:
    """One convolution per group: from some channels of the input to some of the output."""
    operation, source = layer.operation, input_of(layer, 0).info
    assert isinstance(operation, Convolution2d)
    weights = constant_of(layer, 1)
    assert weights is not None
    filters, _, width, depth = weights.shape
    channels, element = source.known_shape[3], source.data_type.size_bytes
    size = filters // (channels // depth)
    whole = patches_of_images(emit, layer, element, fill_byte_of(layer))
    taps = whole.taps
    if operation.dilation[1] == 1:  # whole rows of elements, which groups are not
        taps = tuple(tap + x * channels * element for tap in taps for x in range(width))
    whole = readable(emit, layer, replace(whole, taps=taps, depth=depth))
    target = emit.target(layer.outputs[0])
    for group in range(channels // depth):
        first = group * size
        start = group * depth * element
        part = whole.source.part(start, whole.source.size_bytes - start)
        chosen = slice(first, first + size)
        emit_product(
            emit,
            layer,
            replace(whole, source=part),
            weights[chosen].reshape(size, -1, depth),
            target.at(first * element),
            filters,
            chosen,
        )
