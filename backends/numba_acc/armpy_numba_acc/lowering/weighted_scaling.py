"""Scaling of sums of 8-bit products to elements, and addition of another tensor's."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from armpy.core.dataclass import dataclass
from armpy.errors import UnimplementedError
from armpy.graph import Layer
from armpy.ops import Convolution2d, DepthwiseConvolution2d, FullyConnected
from armpy.ops.operation import Array
from armpy.types import DataType
from armpy_numba_acc.lowering.fixed_elementwise import byte_sum_numbers
from armpy_numba_acc.lowering.windows import readable_past
from armpy_numba_acc.machine.memory import Buffer
from armpy_numba_acc.packing.factors import Factors
from armpy_numba_acc.packing.quantized import (
    scale_of,
    stored_bounds,
    zero_point_of,
)
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
class Scaling:
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
    def of(cls, layer: Layer, weights: Array, chosen: slice) -> Scaling:
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
