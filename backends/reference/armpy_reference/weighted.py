"""Weights made ready for products, for every combination of types in `WEIGHTED_RULES`.

Notes
-----
A quantised sum is ``sum((x - zx) * (w - zw)) + bias``. Weights are packed as ``w - zw``; the input
stays as stored, so that ``-zx * sum(w - zw)`` joins the bias and a padding element is ``zx``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from armpy.backend import WorkloadInfo
from armpy.core.dataclass import dataclass
from armpy.core.numerics.fixed_point import Multiplier
from armpy.core.numerics.rounding import Int64Array
from armpy.ops.activations import FusedActivation
from armpy.ops.operation import Operation
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_reference.quantization import activation_range
from armpy_reference.quantized.accumulate import exact_dtype
from armpy_reference.quantized.dynamic_range import DynamicRange
from armpy_reference.quantized.requantize import (
    FixedPointRescaling,
    FloatStage,
    OutputRescaling,
    OutputStage,
    QuantizedStage,
    RealRescaling,
    SumStage,
)
from armpy_reference.workload import ReferenceWorkload

Array = npt.NDArray[Any]  # Any: stored elements of any type
OperationT = TypeVar("OperationT", bound=Operation)


@dataclass(frozen=True, slots=True)
class PreparedWeights:
    """Weights as numbers of the type to compute in, and the scaling of the sums."""

    values: Array
    stage: OutputStage
    pad_value: float = 0.0  # what a padding element of the input is, as stored
    dynamic_range: DynamicRange | None = None
    """Quantisation of float inputs for quantised weights."""

    def per_image(self, images: Array) -> Iterator[tuple[Array, OutputStage]]:
        """Images, shape (n, h, w, c), one by one as they are multiplied, and their stages."""
        if self.dynamic_range is None or not isinstance(self.stage, FloatStage):
            yield from ((image, self.stage) for image in images)
            return
        for image in images:
            integers, factors = self.dynamic_range.quantized(image.reshape(1, -1))
            yield integers.reshape(image.shape), replace(self.stage, factors=factors)


def operand(info: WorkloadInfo, index: int) -> TensorInfo:
    """The info of an operand that is never left out."""
    return info.inputs[index]  # type: ignore[return-value]  # None only where optional


def has_several_scales(info: TensorInfo) -> bool:
    """Return whether a tensor has scales that are not all the same."""
    return info.quantization is not None and len(set(info.quantization.scales)) > 1


def pack_weights(
    info: WorkloadInfo,
    activation: FusedActivation,
    weights: Array,
    bias: Array | None,
    channel_axis: int,
    *,
    rounds_once: bool = False,
    is_centred: bool = False,
    has_asymmetric_range: bool = False,
) -> PreparedWeights:
    """Pack weights and bias of an operation with (input, weights, bias).

    Parameters
    ----------
    bias : ndarray or None, shape (channels,)
    channel_axis
        Axis of the output channels in the weights.
    rounds_once
        Whether sums are rescaled in float64, as TFLite does for fully connected layers.
    is_centred
        Whether the workload takes the zero point off the input itself.
    has_asymmetric_range
        Whether float inputs get a zero point when they are quantised for quantised weights.
    """
    source, kind = operand(info, 0), operand(info, 1)
    if source.data_type.is_float:
        real_bias = None if bias is None else bias.astype(np.float32)
        stage: OutputStage = FloatStage(real_bias, activation)
        if not kind.data_type.is_quantized:
            return PreparedWeights(weights.astype(np.float32, copy=False), stage)
        values, bound, _ = _integers(weights, kind, channel_axis)
        scales = np.array(kind.quantization.scales if kind.quantization else 1.0, np.float32)
        values = values.astype(exact_dtype(bound * 255), copy=False)
        return PreparedWeights(values, stage, 0.0, DynamicRange(scales, has_asymmetric_range))
    values, bound, totals = _integers(weights, kind, channel_axis)
    zero_point = source.zero_point
    largest = max(
        abs(limit - (zero_point if is_centred else 0)) for limit in source.data_type.integer_range
    )
    full_bias = np.zeros_like(totals) if bias is None else bias.astype(np.int64)
    if not is_centred:
        full_bias -= zero_point * totals
    values = values.astype(exact_dtype(bound * largest), copy=False)
    output = info.outputs[0]
    if output.data_type is DataType.SIGNED32:
        return PreparedWeights(values, SumStage(full_bias), float(zero_point))
    is_wide = source.data_type is DataType.QSYMM_S16 and (bias is None or bias.dtype == np.int64)
    rescaling = _rescaling(info, activation, full_bias, is_wide, rounds_once)
    stage = QuantizedStage(rescaling, output.zero_point, *activation_range(activation, output))
    return PreparedWeights(values, stage, float(zero_point))


def _integers(
    weights: Array, info: TensorInfo, channel_axis: int
) -> tuple[npt.NDArray[np.float32], float, Int64Array]:
    """Weights less their zero point, the largest sum of magnitudes, and the sums, per channel."""
    values = np.subtract(weights, np.float32(info.zero_point), dtype=np.float32)
    others = tuple(axis for axis in range(weights.ndim) if axis != channel_axis)
    magnitudes = np.abs(values).sum(axis=others, dtype=np.float64)
    totals = values.sum(axis=others, dtype=np.float64).astype(np.int64)
    return values, float(magnitudes.max(initial=0.0)), totals


def _rescaling(
    info: WorkloadInfo,
    activation: FusedActivation,
    bias: Int64Array,
    is_wide: bool,
    rounds_once: bool,
) -> OutputRescaling:
    """Requantisation in the arithmetic of the operation and its types."""
    source, kind, output = operand(info, 0), operand(info, 1), info.outputs[0]
    if rounds_once:
        return RealRescaling(real_factors(source, kind, output), bias)
    # uint8 kernels are older: they multiply the two scales in float32.
    in_float = source.data_type is DataType.QASYMM_U8 and not kind.has_per_axis_quantization
    multiplier = Multiplier.from_real(real_factors(source, kind, output, in_float))
    if is_wide:
        return FixedPointRescaling.rounding_once(multiplier, bias)
    lowest, _ = activation_range(activation, output)
    return FixedPointRescaling.rounding_twice(multiplier, bias, lowest < output.zero_point)


def real_factors(
    lhs: TensorInfo, rhs: TensorInfo, output: TensorInfo, in_float: bool = False
) -> npt.NDArray[np.float64]:
    """Effective output scales: products of two inputs' scales over the output's, by channel.

    Scales are float32 numbers, as file formats store them.

    Parameters
    ----------
    in_float
        Whether the product is rounded to float32 before it is divided in float64.
    """
    scales = rhs.quantization.scales if rhs.quantization is not None else (1.0,)
    weights = np.array(scales if rhs.has_per_axis_quantization else scales[0], np.float32)
    dtype = np.float32 if in_float else np.float64
    product = np.multiply(np.float32(lhs.scale), weights, dtype=dtype)
    return np.asarray(np.divide(product, np.float32(output.scale), dtype=np.float64))


class WeightedWorkload(ReferenceWorkload[OperationT]):
    """A workload with (input, weights, bias) that packs constant weights once."""

    packed: PreparedWeights | None

    def prepare(self) -> None:
        """Pack the weights, if they and the bias are constants."""
        self.packed = None
        infos, constants = self.info.inputs, self.info.constants
        if all(constants[i] is not None for i in range(1, len(infos)) if infos[i] is not None):
            self.packed = self._pack(constants)

    def packed_weights(self, inputs: Sequence[Array | None]) -> PreparedWeights:
        """The weights packed in advance, or else those given at run time."""
        return self.packed if self.packed is not None else self._pack(inputs)

    def _pack(self, inputs: Sequence[Array | None]) -> PreparedWeights:
        """Pack weights and bias given in the operands' places."""
        weights, bias = inputs[1], inputs[2] if len(inputs) > 2 else None
        return self.pack(weights, bias)  # type: ignore[arg-type]  # weights are never left out

    @abstractmethod
    def pack(self, weights: Array, bias: Array | None) -> PreparedWeights:
        """Pack the weights in the arrangement that the workload computes with."""
