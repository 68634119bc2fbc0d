"""Adds products of patches with a part of a layer's constant weights, of any type."""

from __future__ import annotations

from armpy.graph import Layer
from armpy.ops.operation import Array
from armpy.types import DataType
from armpy_numba_acc.lowering.patches import Patches, constant_of, input_of
from armpy_numba_acc.lowering.relaxing import are_many
from armpy_numba_acc.lowering.weighted_bf16 import PackedBf16, Rows, emit_product_bf16
from armpy_numba_acc.lowering.weighted_f32 import PackedF32, bounds_of, emit_product_f32
from armpy_numba_acc.lowering.weighted_i16 import WIDE, emit_weighted_i16
from armpy_numba_acc.lowering.weighted_i16 import with_room as with_room_i16
from armpy_numba_acc.lowering.weighted_u8 import emit_product_u8, with_room
from armpy_numba_acc.machine.memory import Address, Buffer
from armpy_numba_acc.packing.quantized import zero_point_of
from armpy_numba_acc.program.emitter import Emitter

WHOLE = slice(None)


def fill_byte_of(layer: Layer) -> int:
    """Byte of a real 0 in a layer's input."""
    info = input_of(layer, 0).info
    return 0 if info.data_type is DataType.FLOAT32 else zero_point_of(info)


def source_of_products(emit: Emitter, layer: Layer) -> tuple[Buffer, int]:
    """What a layer's products are made from, and the size of an element."""
    value = input_of(layer, 0)
    if _are_relaxed(emit, layer):
        return emit.source_of_halves(value), 2
    return emit.source(value), value.info.data_type.size_bytes


def _are_relaxed(emit: Emitter, layer: Layer) -> bool:
    """Whether products are those of bfloat16: two at a time."""
    depth = input_of(layer, 1).info.known_shape[-1]
    is_float = input_of(layer, 0).info.data_type is DataType.FLOAT32
    return is_float and emit.isa.is_relaxed and depth > 1 and are_many(layer)


def readable(emit: Emitter, layer: Layer, patches: Patches) -> Patches:
    """Patches that the kernel may read with all that it reads behind them."""
    data_type = input_of(layer, 0).info.data_type
    if data_type is DataType.FLOAT32:
        return patches
    return (with_room_i16 if data_type is WIDE else with_room)(emit, layer, patches)


def emit_product(
    emit: Emitter,
    layer: Layer,
    patches: Patches,
    weights: Array,
    target: Buffer | Address,
    pitch: int,
    chosen: slice = WHOLE,
) -> None:
    """Add a command that multiplies patches of a layer's input with some of its weights.

    Parameters
    ----------
    patches : Patches
        Of `source_of_products`; see also `readable`.
    weights : ndarray, dtype of the layer's weights, shape (columns, taps, depth)
    target : Buffer or Address
        Where the first pixel's columns go.
    pitch : int
        Elements from there to the next pixel's.
    chosen : slice
        Which of the layer's filters the weights are.
    """
    data_type = input_of(layer, 0).info.data_type
    if data_type is WIDE:
        emit_weighted_i16(emit, layer, patches, weights, target, pitch, chosen)
        return
    if data_type is not DataType.FLOAT32:
        emit_product_u8(emit, layer, patches, weights, target, pitch, chosen)
        return
    bias = constant_of(layer, 2)
    bias = None if bias is None else bias[chosen]
    bounds = bounds_of(layer.operation.activation)  # type: ignore[attr-defined]
    if _are_relaxed(emit, layer):
        halves = PackedBf16.of(emit, patches, weights, bias)
        emit_product_bf16(emit, patches, halves, Rows(target, pitch), bounds, layer.name)
        return
    packed = PackedF32.of(emit, weights.reshape(len(weights), -1), bias, patches.num_pixels)
    emit_product_f32(emit, patches, packed, target, pitch * 4, bounds, layer.name)
