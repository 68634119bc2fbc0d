"""Lowers products of floats with quantised weights: floats are quantised by their range.

Notes
-----
Integers are those of CpuRef, and sums of their products exact: what differs are the roundings of
float32 after them. Depthwise and transposed convolutions multiply the floats that the integers
stand for.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from armpy.graph import Layer, Value
from armpy.ops import FullyConnected
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_numba_acc.lowering.matrix_unit import plan_of
from armpy_numba_acc.lowering.operands import elements_of
from armpy_numba_acc.lowering.patches import Patches, patches_of
from armpy_numba_acc.lowering.products import Weights, emit_product
from armpy_numba_acc.lowering.tiles import DYNAMIC, DYNAMIC_MATRIX, tile_of
from armpy_numba_acc.machine import calls
from armpy_numba_acc.machine.memory import Buffer
from armpy_numba_acc.packing.weights_dynamic import pack_weights_dynamic
from armpy_numba_acc.program.emitter import Emitter
from armpy_numba_acc.program.fusion import float_bounds

_RANGE_BYTES = 8


def scales_of(info: TensorInfo, channels: int) -> Array:
    """The scale of each channel of some weights."""
    scales = info.quantization.scales if info.quantization is not None else (1.0,)
    return np.broadcast_to(np.array(scales, np.float32), channels)


def lower_dynamic(emit: Emitter, layer: Layer) -> None:
    """Quantise the input, then multiply."""
    operation, scales = layer.operation, layer["weights"].info.quantization
    # Borders of 0 change no range, and become zero points.
    patches = patches_of(emit, layer, 4)
    if isinstance(operation, FullyConnected):
        is_asymmetric, rows = operation.asymmetric_quantize_inputs, patches.width
        length = patches.depth
    else:
        is_asymmetric = scales is not None and len(set(scales.scales)) > 1
        rows, length = patches.images, patches.image_pitch // 4
    shape = rows, length
    source, ranges = quantized_rows(emit, layer, patches.source, shape, "u8", is_asymmetric)
    patches = replace(
        patches,
        source=source,
        image_pitch=patches.image_pitch // 4,
        row_pitch=patches.row_pitch // 4,
        pixel_pitch=patches.pixel_pitch // 4,
        taps=tuple(tap // 4 for tap in patches.taps),
    )
    _emit_product(emit, layer, patches, ranges, patches.num_pixels // rows)


def quantized_rows(
    emit: Emitter,
    layer: Layer,
    source: Buffer,
    shape: tuple[int, int],
    written: str,
    is_asymmetric: bool,
) -> tuple[Buffer, Buffer]:
    """Rows of floats as bytes, or as the floats that these stand for; and their ranges."""
    rows, length = shape
    target = emit.scratch(rows * length * (1 if written == "u8" else 4))
    ranges = emit.scratch(rows * _RANGE_BYTES)
    call = calls.QuantizeRows(
        source=source,
        target=target,
        ranges=ranges,
        rows=rows,
        length=length,
        written=written,
        is_asymmetric=int(is_asymmetric),
    )
    emit(call, f"quantize {layer.name}", part="quantize")
    return target, ranges


def _emit_product(
    emit: Emitter, layer: Layer, patches: Patches, ranges: Buffer, pixels_per_range: int
) -> None:
    """Add the command that multiplies patches of bytes."""
    weights = elements_of(layer, "weights")
    columns = len(weights)
    plan = plan_of(emit, DYNAMIC_MATRIX, DYNAMIC, patches, columns)
    if plan is None:
        kind, tile = DYNAMIC, tile_of(emit.choices, DYNAMIC, patches, columns)
    else:
        kind, tile = DYNAMIC_MATRIX, plan.tile(emit.isa)
    packed = pack_weights_dynamic(
        emit.isa,
        weights.reshape(columns, len(patches.taps), patches.depth),
        scales_of(layer["weights"].info, columns),
        layer.constant("bias"),
        tile.width(emit.isa),
        *([] if plan is None else [plan.arranged]),
    )
    low, high = float_bounds(layer.operation.activation.bounds)  # type: ignore[attr-defined]
    record = partial(
        calls.ConvolutionDynamic,
        ranges=ranges,
        pixels_per_range=pixels_per_range,
        low=low,
        high=high,
    )
    in_memory = Weights(kind, emit.packed(packed), packed.pitch, columns, tile, plan)
    emit_product(
        emit, patches, in_memory, record, emit.target(layer.output), columns * 4, layer.name
    )


# Depthwise and transposed convolutions


def with_real_operands(emit: Emitter, layer: Layer) -> Layer:
    """A transposed convolution of float32 with the same result as the layer."""
    value = layer["input"]
    rounded = Value(value.id, value.info, f"rounded {value.name}")
    emit.place(rounded, rounded_input(emit, layer, is_asymmetric=False))
    layer = with_real_weights(layer, 0)
    return replace(layer, inputs=(rounded, *layer.inputs[1:]))


def rounded_input(emit: Emitter, layer: Layer, *, is_asymmetric: bool = True) -> Buffer:
    """The first input of a layer as the floats that its quantised integers stand for."""
    value = layer["input"]
    rows = value.info.known_shape[0]
    shape = (rows, value.info.num_elements // rows)
    return quantized_rows(emit, layer, emit.source(value), shape, "f32", is_asymmetric)[0]


def with_real_weights(layer: Layer, axis: int = 3) -> Layer:
    """The layer with weights, whose channels are an axis, as float32."""
    value, weights = layer["weights"], elements_of(layer, "weights")
    scales = scales_of(value.info, weights.shape[axis])
    real = np.moveaxis(np.moveaxis(weights, axis, -1) * scales, -1, axis)
    info = TensorInfo(value.info.shape, DataType.FLOAT32)
    replaced = Value(value.id, info, value.name, np.ascontiguousarray(real, np.float32))
    return replace(layer, inputs=(layer.inputs[0], replaced, *layer.inputs[2:]))
