"""Lowers convolutions and matrix products of 8-bit tensors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from armpy.core.symbolic import is_traced
from armpy.errors import UnimplementedError
from armpy.graph import Layer
from armpy.ops import Convolution2d, DepthwiseConvolution2d, FullyConnected
from armpy.ops.operation import Array
from armpy.types import DataType
from armpy_numba_acc.lowering.depthwise_f32 import fusion_of
from armpy_numba_acc.lowering.fixed_elementwise import byte_sum_numbers
from armpy_numba_acc.lowering.matrix_unit import plan_of
from armpy_numba_acc.lowering.operands import elements_of
from armpy_numba_acc.lowering.patches import Patches, patches_of
from armpy_numba_acc.lowering.products import Weights, emit_product, with_room
from armpy_numba_acc.lowering.tiles import U8, U8_MATRIX, U8_PAIRED, U8_SORTED, tile_of
from armpy_numba_acc.lowering.windows import readable_past
from armpy_numba_acc.machine import calls
from armpy_numba_acc.machine.memory import Address, Buffer
from armpy_numba_acc.packing.factors import Factors
from armpy_numba_acc.packing.origins import Part
from armpy_numba_acc.packing.quantized import (
    scale_of,
    stored_bounds,
    zero_point_of,
)
from armpy_numba_acc.packing.sorted_steps import sorted_lines
from armpy_numba_acc.packing.weights_u8 import pack_weights_u8
from armpy_numba_acc.program.emitter import Emitter
from armpy_numba_acc.program.fusion import Fusion

LARGEST_STEP = float(1 << 30)
"""Scaled sums stay below it, as conversions to int32 have no defined result above 2**31."""

_SUMS_END = float(1 << 31)


def output_factors(layer: Layer, columns: int) -> Factors:
    """Return the factor of each column's sums for the output.

    TFLite's convolutions of uint8 multiply the two scales in float32, all others in float64;
    fully connected layers round once, all others twice unless they say so.
    """
    source, kind, output = layer["input"].info, layer["weights"].info, layer.output.info
    operation = layer.operation
    rounds_once = isinstance(operation, FullyConnected) or (
        isinstance(operation, Convolution2d | DepthwiseConvolution2d) and operation.rounds_once
    )
    scales = kind.quantization.scales if kind.quantization is not None else (1.0,)
    is_float = not rounds_once and source.data_type is DataType.QASYMM_U8
    if kind.has_per_axis_quantization:
        is_float = False
    else:
        scales = scales[:1]
    dtype = np.float32 if is_float else np.float64
    product = np.multiply(scale_of(source), np.array(scales, np.float32), dtype=dtype)
    real = product.astype(np.float64) / np.float64(scale_of(output))
    return Factors.of(np.broadcast_to(real, columns), not rounds_once)


def largest_sums(layer: Layer, weights: Array, chosen: slice) -> npt.NDArray[np.float64]:
    """Magnitudes that no sum exceeds.

    Parameters
    ----------
    weights : ndarray, int8 or uint8, shape (products, columns)
    chosen
        Which of the layer's channels the columns are.

    Raises
    ------
    UnimplementedError
        If they need more than 32 bits, because of the bias: another backend gets the layer.
    """
    bias = layer.constant("bias")
    centred = weights.astype(np.float64) - layer["weights"].info.zero_point
    most: npt.NDArray[np.float64] = 255.0 * np.abs(centred).sum(axis=0)
    if bias is None:
        return most
    most = most + np.abs(bias[chosen].astype(np.float64))
    if most.max(initial=0.0) >= _SUMS_END:
        raise UnimplementedError(
            "sums may not fit 32 bits",
            where=f"NumbaAcc / {layer.operation.name} '{layer.name}'",
            expected="a bias and products below 2**31 together",
            actual=f"a bias of up to {np.abs(bias.astype(np.int64)).max()}",
            fix="The layer runs on another backend",
        )
    return most


@dataclass(frozen=True, slots=True)
class Residual:
    """Elements of another tensor that are added to those of a product."""

    source: Buffer  # laid out as the output
    # Zero points of the product, of the tensor and of the sum, the sum's bounds, and float32 of
    # `byte_sum_numbers`, each of 4 bytes.
    parameters: Buffer
    has_bounds: bool  # whether the sum's bounds matter

    @classmethod
    def of(cls, emit: Emitter, layer: Layer, fusion: Fusion) -> Residual | None:
        """Return the additions of a layer's fusion; None if there are none."""
        if fusion.residual is None:
            return None
        product, other, output = layer.output.info, fusion.residual.info, fusion.output.info
        low, high = stored_bounds(fusion.bounds, output)
        infos = product, other, output
        bits = np.array(byte_sum_numbers(infos), np.float32).view(np.int32)
        numbers = np.array([*map(zero_point_of, infos), low, high, *bits], np.int32)
        source = readable_past(emit, emit.source(fusion.residual), other.size_bytes, layer.name)
        has_bounds = low > 0 or high < 255
        return cls(source, emit.constant(numbers), has_bounds)


@dataclass(frozen=True, slots=True)
class _Scaling:
    """Scaling of sums to elements: the packed factors, and the kernel's arguments."""

    factors: Factors
    zero_point: int
    low: int
    high: int
    has_negatives: bool  # see `armpy_numba_acc.tiles.finish.exact_scaling`
    has_bounds: bool
    has_large_scales: bool
    is_imprecise: bool

    @classmethod
    def of(cls, layer: Layer, weights: Array, chosen: slice) -> _Scaling:
        """That of some of a layer's filters, of which weights are (columns, taps, depth)."""
        output, operation = layer.output.info, layer.operation
        zero_point = zero_point_of(output)
        low, high = stored_bounds(operation.activation.bounds, output)  # type: ignore[attr-defined]
        factors = output_factors(layer, output.known_shape[-1]).chosen(chosen)
        largest = largest_sums(layer, weights.reshape(len(weights), -1).T, chosen)
        factors, rounding = factors.rounded(zero_point, low < zero_point, largest)
        return cls(
            factors,
            zero_point,
            low,
            high,
            rounding.has_negatives,
            low > 0 or high < 255,
            bool((factors.scales * largest).max() >= LARGEST_STEP),
            rounding.is_imprecise,
        )


def lower_u8(emit: Emitter, layer: Layer) -> None:
    """Add the command of a convolution or a matrix product, and of its fused layers."""
    weights, fusion = elements_of(layer, "weights"), fusion_of(emit, layer)
    patches = patches_of(emit, layer, 1, zero_point_of(layer["input"].info))
    columns = len(weights)
    emit_filters_u8(
        emit,
        layer,
        with_room(emit, layer, patches, U8),
        weights.reshape(columns, len(patches.taps), patches.depth),
        emit.target(fusion.output),
        columns,
        residual=Residual.of(emit, layer, fusion),
        label=fusion.label(layer),
    )


def emit_filters_u8(
    emit: Emitter,
    layer: Layer,
    patches: Patches,
    weights: Array,
    target: Buffer | Address,
    pitch: int,
    chosen: slice = slice(None),
    part: Part | None = None,
    *,
    residual: Residual | None = None,
    label: str = "",
) -> None:
    """`filters.emit_filters` of 8 bits; its parameters are described there, but for these.

    Results are exactly those of TFLite's arithmetic: see `ExactScaling`.

    Parameters
    ----------
    patches
        See `with_room`.
    weights : ndarray, int8 or uint8, shape (columns, taps, depth)
    residual
        The addend of the layer's output.
    label
        The layer's name if left out.
    """
    columns, bias = len(weights), layer.constant("bias")
    plan = plan_of(emit, U8_MATRIX, U8, patches, columns)
    if plan is None and emit.isa.has_paired_products and patches.num_pixels > 1:
        kind, patches = U8_PAIRED, with_room(emit, layer, patches, U8_PAIRED)
        tile = tile_of(emit.choices, kind, patches, columns)
    elif plan is None:
        kind, tile = U8, tile_of(emit.choices, U8, patches, columns)
    else:
        kind, tile = U8_MATRIX, plan.tile(emit.isa)
    zero_point, lines = layer["weights"].info.zero_point, None
    if kind is U8 and emit.isa.has_saturating_bytes and not is_traced(*patches.taps):
        values = weights.astype(np.int32) - zero_point
        lines = sorted_lines(emit.isa, values, tile.width(emit.isa), patches.taps)
        kind = U8 if lines is None else U8_SORTED
    scaling = _Scaling.of(layer, weights, chosen)
    pack = pack_weights_u8 if plan is None else partial(pack_weights_u8, arranged=plan.arranged)
    packed = pack(
        emit.isa,
        weights,
        zero_point,
        None if bias is None else bias[chosen],
        scaling.factors,
        zero_point_of(layer["input"].info),
        tile.width(emit.isa),
        group=kind.group,
        lines=lines,
    )
    record = partial(
        calls.ConvolutionU8,
        depth=patches.depth,
        correction=packed.correction,
        zero_point=scaling.zero_point,
        low=scaling.low,
        high=scaling.high,
        residual=0 if residual is None else residual.source,
        sum=0 if residual is None else residual.parameters,
        has_corrections=int(packed.correction != 0),
        has_negatives=int(scaling.has_negatives),
        has_bounds=int(scaling.has_bounds if residual is None else residual.has_bounds),
        has_large_scales=int(scaling.has_large_scales),
        is_imprecise=int(scaling.is_imprecise),
        has_residual=int(residual is not None),
    )
    memory = emit.packed(packed.packed.of(part)), packed.packed.pitch
    in_memory = Weights(kind, *memory, columns, tile, plan)
    emit_product(emit, patches, in_memory, record, target, pitch, label or layer.name)
