"""Depthwise convolutions of 16-bit tensors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from armpy.graph import Layer
from armpy_numba_acc.lowering.operands import elements_of
from armpy_numba_acc.lowering.patches import patches_of_images
from armpy_numba_acc.lowering.products import Weights, with_room
from armpy_numba_acc.lowering.tiles import I16, Tile, rows_of_channels
from armpy_numba_acc.lowering.weighted_i16 import Finish, emit_filters_i16, emit_i16
from armpy_numba_acc.lowering.windows import readable_past
from armpy_numba_acc.machine.memory import Buffer
from armpy_numba_acc.packing.origins import Part
from armpy_numba_acc.packing.weights_i16 import Pieces, pack_channels
from armpy_numba_acc.program.emitter import Emitter


def lower_i16(emit: Emitter, layer: Layer, source: Buffer) -> None:
    """Multiply each channel by its filter, or all pixels by all filters of a single channel.

    Parameters
    ----------
    source
        The input; with each channel as often as it is multiplied by a filter, unless there is one.
    """
    weights, info = elements_of(layer, "weights"), layer["input"].info
    filters = weights.shape[3]
    by_filter = np.ascontiguousarray(weights.reshape(-1, filters).T)
    target = emit.target(layer.output)
    if info.known_shape[3] == 1:  # a convolution that sees all channels
        patches = patches_of_images(emit, layer, 2, 0)
        values = by_filter.reshape(filters, len(patches.taps), patches.depth)
        patches = with_room(emit, layer, patches, I16)
        emit_filters_i16(emit, layer, patches, values, target, filters)
        return
    size_bytes = info.size_bytes // info.known_shape[3] * filters
    source = readable_past(emit, source, size_bytes, layer.name)
    patches = patches_of_images(emit, layer, 2, 0, source, channels=filters)
    taps = patches.taps
    if len(taps) < by_filter.shape[1]:  # whole rows of elements, which channels are not
        width = weights.shape[2]
        taps = tuple(tap + x * filters * 2 for tap in taps for x in range(width))
    patches = replace(patches, taps=taps, depth=1)
    pieces = Pieces.of(by_filter[:, :, None])
    tile = Tile(rows_of_channels(emit.isa, patches.layout[2]), 1)
    packed = pack_channels(by_filter, tile.width(emit.isa))
    panels = packed.after(Part(weights, lambda values: values.reshape(-1, filters).T))
    emit_i16(
        emit,
        patches,
        Weights(I16, emit.packed(panels), panels.pitch, filters, tile),
        Finish.of(layer, slice(None)),
        pieces.at_once,
        target,
        filters,
        layer.name,
        is_depthwise=True,
        at_once=len(panels.array),
    )
