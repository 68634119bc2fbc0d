"""Lowers convolutions and matrix products of 8-bit tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from armpy.graph import Layer
from armpy.ops import Convolution2d, FullyConnected
from armpy.ops.operation import Array, OperandInfos
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_numba_acc.kernels import Kernel
from armpy_numba_acc.lowering.emitter import Emitter
from armpy_numba_acc.lowering.estimate import num_pieces
from armpy_numba_acc.lowering.memory import Address, Buffer, Space
from armpy_numba_acc.lowering.patches import (
    Patches,
    constant_of,
    input_of,
    patches_of_images,
    patches_of_vectors,
)
from armpy_numba_acc.lowering.quantized import (
    QUANTIZED_TYPES,
    scale_of,
    stored_bounds,
    zero_point_of,
)
from armpy_numba_acc.lowering.tiles import tile_of_u8
from armpy_numba_acc.packing.factors import Factors
from armpy_numba_acc.packing.weights_u8 import GROUP, pack_weights_u8

_CACHED_BYTES = 256 << 10
"""Weights that are used for all pixels before the next ones."""

_WEIGHTS = (DataType.QASYMM_U8, DataType.QASYMM_S8, DataType.QSYMM_S8)


def check_u8(inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
    """8-bit input, weights and output, a bias of 32 bits, sums that fit 32 bits."""
    weights = inputs[1]
    assert weights is not None
    bias = inputs[2] if len(inputs) > 2 else None
    if weights.data_type not in _WEIGHTS:
        return f"weights of {weights.data_type.name} are not supported with 8-bit input"
    if bias is not None and bias.data_type is not DataType.SIGNED32:
        return f"a bias of {bias.data_type.name} is not supported with 8-bit input"
    if outputs[0].data_type not in QUANTIZED_TYPES:
        return f"output of {outputs[0].data_type.name} is not supported with 8-bit input"
    if any(info is not None and info.quantization is None for info in (inputs[0], *outputs)):
        return "a quantisation is missing"
    products = weights.num_elements // weights.known_shape[0]
    largest = 128 if weights.data_type is DataType.QSYMM_S8 else 255
    if products * 255 * largest >= 1 << 31:
        return f"sums of {products} products may not fit 32 bits"
    return ""


def output_factors(layer: Layer, columns: int) -> Factors:
    """What each column's sums are multiplied by for the output.

    Notes
    -----
    TFLite's convolutions of uint8 multiply the two scales in float32, all others in float64;
    fully connected layers round once, all others twice.
    """
    source, kind, output = input_of(layer, 0).info, input_of(layer, 1).info, layer.outputs[0].info
    rounds_twice = not isinstance(layer.operation, FullyConnected)
    scales = kind.quantization.scales if kind.quantization is not None else (1.0,)
    is_float = rounds_twice and source.data_type is DataType.QASYMM_U8
    if kind.has_per_axis_quantization:
        is_float = False
    else:
        scales = scales[:1]
    dtype = np.float32 if is_float else np.float64
    product = np.multiply(scale_of(source), np.array(scales, np.float32), dtype=dtype)
    real = product.astype(np.float64) / np.float64(scale_of(output))
    return Factors.of(np.broadcast_to(real, columns), rounds_twice)


def lower_u8(emit: Emitter, layer: Layer) -> None:
    """Add the command of a convolution or a matrix product."""
    weights = constant_of(layer, 1)
    assert weights is not None
    if isinstance(layer.operation, Convolution2d):
        patches = patches_of_images(emit, layer, 1, zero_point_of(input_of(layer, 0).info))
    else:
        patches = patches_of_vectors(emit, layer, 1)
    columns = weights.shape[0]
    emit_product_u8(
        emit,
        layer,
        with_room(emit, layer, patches),
        weights.reshape(columns, len(patches.taps), patches.depth),
        emit.target(layer.outputs[0]),
        columns,
        slice(None),
    )


def emit_product_u8(
    emit: Emitter,
    layer: Layer,
    patches: Patches,
    weights: Array,
    target: Buffer | Address,
    pitch: int,
    chosen: slice,
) -> None:
    """Add a command that multiplies patches of a layer's input with some of its filters.

    Parameters
    ----------
    patches : Patches
        See `with_room`.
    weights : ndarray, int8 or uint8, shape (columns, taps, depth)
    target : Buffer or Address
        Where the first pixel's columns go.
    pitch : int
        Bytes from there to the next pixel's.
    chosen : slice
        Which of the layer's filters the weights are.

    Notes
    -----
    Results are exactly those of TFLite's arithmetic: see `Requantizer`.
    """
    source, kind, output = input_of(layer, 0).info, input_of(layer, 1).info, layer.outputs[0].info
    columns = weights.shape[0]
    steps = len(patches.taps) * -(-patches.depth // GROUP)
    num_pixels, _, line, *_ = patches.layout
    tile = tile_of_u8(emit.isa, num_pixels // line, line, columns, steps)
    width = tile.vectors * emit.isa.lanes
    factors = output_factors(layer, kind.known_shape[0]).chosen(chosen)
    bias = constant_of(layer, 2)
    zero_point = zero_point_of(output)
    low, high = stored_bounds(layer.operation.activation.bounds, output)  # type: ignore[attr-defined]
    has_negatives = low < zero_point
    if not has_negatives:
        factors = replace(factors, nudges=factors.nudges + np.float32(zero_point))
    packed = pack_weights_u8(
        emit.isa,
        weights,
        kind.zero_point,
        None if bias is None else bias[chosen],
        factors,
        zero_point_of(source),
        width,
    )
    panel_bytes = packed.panels.shape[1]
    has_large_scales = factors.scales.max() >= 0.5  # sums are below 2**31
    has_bounds = low > 0 or high < 255
    flags = (tile.has_table, packed.correction != 0, has_negatives, has_bounds, has_large_scales)
    kernel = Kernel("convolution_u8", (tile.rows, tile.vectors, *map(int, flags)))
    num_operations = 2 * patches.num_pixels * weights.size
    emit.command(
        kernel,
        (
            patches.source,
            target,
            emit.constant(packed.panels),
            emit.constant(np.array(patches.taps, np.int64)),
            len(patches.taps),
            patches.depth,
            packed.steps,
            columns,
            *patches.layout,
            pitch,
            panel_bytes,
            max(_CACHED_BYTES // panel_bytes, 1),
            packed.correction,
            zero_point,
            low,
            high,
            tile.rows,
            width,
            int(tile.has_table),
        ),
        layer.name,
        num_operations=num_operations,
        num_pieces=num_pieces(num_operations, kernel.symbol, emit.isa),
    )


def with_room(emit: Emitter, layer: Layer, patches: Patches) -> Patches:
    """The same with a copy of the caller's tensor if elements behind it would be read."""
    if patches.source.space is not Space.TENSORS or patches.depth % GROUP == 0:
        return patches
    size = input_of(layer, 0).info.size_bytes
    copy = emit.scratch(size)
    emit.command(Kernel("copy"), (patches.source, copy, size), f"copy {layer.name}")
    return replace(patches, source=copy)
