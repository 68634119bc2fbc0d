"""Lowers convolutions whose filters see some of the channels only."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from armpy.graph import Layer
from armpy.ops.operation import Array
from armpy_numba_acc.lowering.filters import (
    emit_filters,
    fill_byte_of,
    readable,
    source_of_products,
)
from armpy_numba_acc.lowering.operands import elements_of
from armpy_numba_acc.lowering.patches import patches_of_images
from armpy_numba_acc.packing.origins import Part
from armpy_numba_acc.program.emitter import Emitter
from armpy_numba_acc.program.fusion import CONVOLUTIONS


def lower_grouped(emit: Emitter, layer: Layer) -> None:
    """One convolution per group: from some channels of the input to some of the output."""
    operation, weights = layer.operation, elements_of(layer, "weights")
    assert isinstance(operation, CONVOLUTIONS)
    filters, *_, width, depth = weights.shape
    source, element = source_of_products(emit, layer)
    channels = layer["input"].info.known_shape[-1]
    size = filters // (channels // depth)
    whole = patches_of_images(emit, layer, element, fill_byte_of(layer), source)
    taps = whole.taps
    if operation.dilation[-1] == 1:  # whole rows of elements, which groups are not
        taps = tuple(tap + x * channels * element for tap in taps for x in range(width))
    whole = readable(emit, layer, replace(whole, taps=taps, depth=depth))
    output = layer.output
    target, out_element = emit.target(output), output.info.data_type.size_bytes
    for group in range(channels // depth):
        first = group * size
        start = group * depth * element
        part = whole.source.part(start, whole.source.size_bytes - start)
        chosen = slice(first, first + size)
        of_group = partial(_filters, chosen)
        emit_filters(
            emit,
            layer,
            replace(whole, source=part),
            of_group(weights),
            target.at(first * out_element),
            filters,
            chosen,
            Part(weights, of_group, layer),
        )


def _filters(chosen: slice, weights: Array) -> Array:
    """Some filters as (columns, taps, depth)."""
    some = weights[chosen]
    return some.reshape(len(some), -1, some.shape[-1])
