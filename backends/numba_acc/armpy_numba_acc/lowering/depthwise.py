"""DepthwiseConvolution2d: the choice among its lowerings, and that of 16-bit tensors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from armpy.graph import Layer
from armpy.ops import DepthwiseConvolution2d
from armpy.ops.operation import Array
from armpy.types import DataType
from armpy_numba_acc.lowering.depthwise_f32 import lower_f32
from armpy_numba_acc.lowering.depthwise_u8 import lower_u8
from armpy_numba_acc.lowering.dynamic_range import rounded_input, with_real_weights
from armpy_numba_acc.lowering.moves import Side, emit_move, stand_in
from armpy_numba_acc.lowering.operands import elements_of, expect
from armpy_numba_acc.lowering.patches import patches_of_images
from armpy_numba_acc.lowering.products import Weights, with_room
from armpy_numba_acc.lowering.tiles import I16, U8, Tile, rows_of_channels
from armpy_numba_acc.lowering.weighted_checks import WIDE, is_dynamic
from armpy_numba_acc.lowering.weighted_i16 import Finish, emit_filters_i16, emit_i16
from armpy_numba_acc.lowering.weighted_u8 import emit_filters_u8
from armpy_numba_acc.lowering.windows import Windows, readable_past
from armpy_numba_acc.machine.memory import Buffer
from armpy_numba_acc.packing.origins import Part
from armpy_numba_acc.packing.quantized import zero_point_of
from armpy_numba_acc.packing.weights_i16 import Pieces, pack_channels
from armpy_numba_acc.program.emitter import Emitter


def lower_depthwise(emit: Emitter, layer: Layer) -> None:
    """Add the command; where several channels are made of each of several, repeat these before."""
    operation, value = expect(layer.operation, DepthwiseConvolution2d), layer["input"]
    out_shape = layer.output.info.known_shape
    windows = Windows.of(
        value.info.known_shape,
        out_shape,
        layer["weights"].info.known_shape[1:3],
        operation.stride,
        operation.padding,
        operation.dilation,
    )
    channels, out_channels = windows.shape[3], out_shape[3]
    is_float = value.info.data_type is DataType.FLOAT32
    is_wide = value.info.data_type is WIDE
    if is_dynamic(layer.input_infos):
        source, layer = rounded_input(emit, layer), with_real_weights(layer)
    elif is_float and channels in (1, out_channels):
        lower_f32(emit, layer, emit.source_as_kept(value), windows, emit.kind_of(value))
        return
    elif channels == 1 and not is_float and not is_wide:
        _lower_products(emit, layer)
        return
    else:
        source = emit.source(value)
    if 1 < channels < out_channels:
        source = _repeated(emit, layer, source, out_channels // channels)
        windows = replace(windows, shape=(*windows.shape[:3], out_channels))
    if is_wide:
        _lower_i16(emit, layer, source)
        return
    (lower_f32 if is_float else lower_u8)(emit, layer, source, windows)


def _lower_products(emit: Emitter, layer: Layer) -> None:
    """As a convolution, which it is where there is one channel."""
    weights = elements_of(layer, "weights")
    filters = weights.shape[3]
    patches = patches_of_images(emit, layer, 1, zero_point_of(layer["input"].info))
    by_filter = np.ascontiguousarray(weights.reshape(-1, filters).T)
    values = by_filter.reshape(filters, len(patches.taps), patches.depth)
    patches = with_room(emit, layer, patches, U8)
    emit_filters_u8(emit, layer, patches, values, emit.target(layer.output), filters)


def _lower_i16(emit: Emitter, layer: Layer, source: Buffer) -> None:
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


def _repeated(emit: Emitter, layer: Layer, source: Buffer, times: int) -> Buffer:
    """The input with each channel several times in succession."""
    value = layer["input"]
    array = stand_in(value.info).reshape(-1, 1)
    repeated: Array = np.empty((len(array), times), array.dtype)
    target = emit.scratch(value.info.size_bytes * times)
    part = np.broadcast_to(array, repeated.shape)
    emit_move(emit, Side(source, array, part), Side(target, repeated, repeated), layer.name)
    return target
