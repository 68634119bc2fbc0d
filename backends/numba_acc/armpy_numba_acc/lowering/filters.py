"""Adds products of patches with some of a layer's constant filters, of any type."""

from __future__ import annotations

from armpy.graph import Layer
from armpy.ops.operation import Array
from armpy.types import DataType
from armpy_numba_acc.lowering.patches import Patches
from armpy_numba_acc.lowering.products import with_room
from armpy_numba_acc.lowering.relaxing import is_faster_relaxed
from armpy_numba_acc.lowering.tiles import BF16, F32, I16, U8, ProductKind
from armpy_numba_acc.lowering.weighted_checks import WIDE
from armpy_numba_acc.lowering.weighted_i16 import emit_filters_i16
from armpy_numba_acc.lowering.weighted_real import Rows, emit_real, pack_real
from armpy_numba_acc.lowering.weighted_sums import emit_filters_sums
from armpy_numba_acc.lowering.weighted_u8 import emit_filters_u8
from armpy_numba_acc.machine.memory import Address, Buffer
from armpy_numba_acc.packing.origins import Part
from armpy_numba_acc.packing.quantized import zero_point_of
from armpy_numba_acc.program.emitter import Emitter


def kind_of(emit: Emitter, layer: Layer) -> ProductKind:
    """Return how a layer's products are computed."""
    data_type = layer["input"].info.data_type
    if data_type is not DataType.FLOAT32:
        return I16 if data_type is WIDE else U8
    depth = layer["weights"].info.known_shape[-1]
    return BF16 if depth > 1 and is_faster_relaxed(emit.choices, layer) else F32


def fill_byte_of(layer: Layer) -> int:
    """Byte of a real 0 in a layer's input."""
    info = layer["input"].info
    return 0 if info.data_type is DataType.FLOAT32 else zero_point_of(info)


def source_of_products(emit: Emitter, layer: Layer) -> tuple[Buffer, int]:
    """Return the source of a layer's products, and the size of an element."""
    value, kind = layer["input"], kind_of(emit, layer)
    source = emit.source_as_bfloat16(value) if kind is BF16 else emit.source(value)
    return source, kind.element_bytes


def readable(emit: Emitter, layer: Layer, patches: Patches) -> Patches:
    """Patches that the kernel may read with all that it reads after them."""
    kind = kind_of(emit, layer)
    return with_room(emit, layer, patches, kind) if kind in (U8, I16) else patches


def emit_filters(
    emit: Emitter,
    layer: Layer,
    patches: Patches,
    weights: Array,
    target: Buffer | Address,
    pitch: int,
    chosen: slice = slice(None),
    part: Part | None = None,
) -> None:
    """Add a command that multiplies patches of a layer's input with some of its filters.

    Parameters
    ----------
    patches
        Of `source_of_products`; see also `readable`.
    weights : ndarray, dtype of the layer's weights, shape (columns, taps, depth)
    target
        Where the first pixel's columns go.
    pitch
        Elements from there to the next pixel's.
    chosen
        Which of the layer's filters the weights are.
    part
        Which part of a constant the weights are; a constant themselves if left out.
    """
    kind = kind_of(emit, layer)
    if kind in (U8, I16):
        emit_integers = emit_filters_i16 if kind is I16 else emit_filters_u8
        if layer.output.info.data_type is DataType.SIGNED32:
            emit_integers = emit_filters_sums
        emit_integers(emit, layer, patches, weights, target, pitch, chosen, part)
        return
    bias = layer.constant("bias")
    added = None if bias is None else bias[chosen]
    packed = pack_real(emit, kind, patches, weights, added, part)
    bounds = layer.operation.activation.bounds  # type: ignore[attr-defined]
    emit_real(emit, patches, packed, Rows(target, pitch), bounds, layer.name)
