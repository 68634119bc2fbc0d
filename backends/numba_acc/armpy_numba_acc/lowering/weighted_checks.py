"""Checks which convolutions and matrix products can be lowered, by their operands' types.

Notes
-----
Apart from how they are lowered: a start from kept programs asks this alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import numpy.typing as npt

from armpy.ops import Convolution3d, DepthwiseConvolution2d
from armpy.ops.operands import Operands
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import DataLayout, DataType
from armpy_numba_acc.packing.quantized import QUANTIZED_TYPES, scale_of
from armpy_numba_acc.program.fusion import CONVOLUTIONS
from armpy_numba_acc.program.limits import MOST_PARTS, MOST_TAPS

WIDE = DataType.QSYMM_S16

LARGEST_FACTOR = 2.0**14
"""Of sums; larger ones leave no bits to round."""

_BYTE_WEIGHTS = (DataType.QASYMM_U8, DataType.QASYMM_S8, DataType.QSYMM_S8)
_SIGNED_WEIGHTS = (DataType.QASYMM_S8, DataType.QSYMM_S8)
_OF_IMAGES = (*CONVOLUTIONS, DepthwiseConvolution2d)
_WITH_TAPS = (Convolution3d, DepthwiseConvolution2d)
"""Which have a list of a window's elements, or of its rows."""

_CHANNELS_LAST = (DataLayout.NHWC, DataLayout.NDHWC)


def check_weighted(
    operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
) -> str:
    """float32 or 8 bits, or float32 or 16 bits with int8 weights; NHWC."""
    operands = Operands(operation, inputs)
    source, weights = operands["input"], operands["weights"]
    if isinstance(operation, _OF_IMAGES) and operation.data_layout not in _CHANNELS_LAST:
        return f"the layout {operation.data_layout.name} is not supported"
    refusal = _too_many(operation, source, weights)
    if refusal:
        return refusal
    if has_computed_weights(inputs):
        return check_computed(operation, inputs)
    depths = source.known_shape[-1], weights.known_shape[-1]
    if isinstance(operation, CONVOLUTIONS) and is_dynamic(inputs) and depths[0] != depths[1]:
        return "groups of filters are not supported with FLOAT32 input and quantised weights"
    axis = 3 if isinstance(operation, DepthwiseConvolution2d) else 0
    return check_types(operands, outputs, axis)


def check_types(
    operands: Operands[TensorInfo], outputs: Sequence[TensorInfo], filters_axis: int = 0
) -> str:
    """float32 or 8 bits, or float32 or 16 bits with int8 weights.

    Parameters
    ----------
    filters_axis
        Of the weights: the one along which they are those of different filters.
    """
    source = operands["input"]
    if source.data_type is WIDE:
        return check_i16(operands, outputs)
    if source.data_type in QUANTIZED_TYPES:
        return check_u8(operands, outputs, filters_axis)
    if is_dynamic((source, operands["weights"])):
        return check_dynamic(operands, outputs[0])
    for info in (source, operands["weights"], operands.get("bias"), *outputs):
        if info is not None and info.data_type is not DataType.FLOAT32:
            return f"{info.data_type.name} is not supported with {source.data_type.name} input"
    return ""


def _too_many(operation: Operation, source: TensorInfo, weights: TensorInfo) -> str:
    """Why a layer would be cut into too many parts, or has too many taps; empty if not."""
    _, *window, depth = weights.known_shape
    if isinstance(operation, _WITH_TAPS) and prod(window) > MOST_TAPS:
        return f"windows of more than {MOST_TAPS} elements are not supported"
    if isinstance(operation, CONVOLUTIONS) and source.known_shape[-1] > MOST_PARTS * depth:
        return f"more than {MOST_PARTS} groups of filters are not supported"
    return ""


def has_computed_weights(inputs: OperandInfos) -> bool:
    """Return whether weights or bias are not constants."""
    return any(info is not None and not info.is_constant for info in inputs[1:])


def check_computed(operation: Operation, inputs: OperandInfos) -> str:
    """float32, filters that see all channels."""
    operands = Operands(operation, inputs)
    source, weights = operands["input"], operands["weights"]
    if isinstance(operation, DepthwiseConvolution2d):
        return "the weights are not constant"
    if any(info is not None and info.data_type is not DataType.FLOAT32 for info in inputs):
        return "weights that are not constant are supported in FLOAT32 only"
    is_convolution = isinstance(operation, CONVOLUTIONS)
    if is_convolution and source.known_shape[-1] != weights.known_shape[-1]:
        return "groups of filters that are not constant are not supported"
    return ""


def check_u8(
    operands: Operands[TensorInfo], outputs: Sequence[TensorInfo], filters_axis: int = 0
) -> str:
    """8-bit input, weights and output, a bias of 32 bits, sums that fit 32 bits.

    Parameters
    ----------
    filters_axis
        Of the weights: the one along which they are those of different filters.
    """
    weights, bias = operands["weights"], operands.get("bias")
    if weights.data_type not in _BYTE_WEIGHTS:
        return f"weights of {weights.data_type.name} are not supported with 8-bit input"
    if bias is not None and bias.data_type is not DataType.SIGNED32:
        return f"a bias of {bias.data_type.name} is not supported with 8-bit input"
    sums = () if isinstance(operands.operation, DepthwiseConvolution2d) else (DataType.SIGNED32,)
    if outputs[0].data_type not in (*QUANTIZED_TYPES, *sums):
        return f"output of {outputs[0].data_type.name} is not supported with 8-bit input"
    if any(
        info.quantization is None and info.data_type in QUANTIZED_TYPES
        for info in (operands["input"], *outputs)
    ):
        return "a quantisation is missing"
    products = weights.num_elements // weights.known_shape[filters_axis]
    largest = 128 if weights.data_type is DataType.QSYMM_S8 else 255
    if products * 255 * largest >= 1 << 31:
        return f"sums of {products} products may not fit 32 bits"
    return ""


def check_i16(operands: Operands[TensorInfo], outputs: Sequence[TensorInfo]) -> str:
    """16-bit input and output without zero points, constant weights of 8 bits without one."""
    source, weights, output = operands["input"], operands["weights"], outputs[0]
    bias = operands.get("bias")
    if weights.data_type not in _SIGNED_WEIGHTS or output.data_type is not WIDE:
        types = f"{weights.data_type.name} weights and {output.data_type.name} output"
        return f"{types} are not supported with {WIDE.name} input"
    if bias is not None and bias.data_type not in (DataType.SIGNED64, DataType.SIGNED32):
        return f"a bias of {bias.data_type.name} is not supported with {WIDE.name} input"
    if any(info is not None and info.quantization is None for info in (source, weights, output)):
        return "a quantisation is missing"
    if source.zero_point or weights.zero_point or output.zero_point:
        return f"zero points are not supported with {WIDE.name} input"
    if not (real_factors(source, weights, output) < LARGEST_FACTOR).all():
        return f"scales that make sums {LARGEST_FACTOR:.0f} times as large are not supported"
    return ""


def real_factors(
    source: TensorInfo, weights: TensorInfo, output: TensorInfo
) -> npt.NDArray[np.float64]:
    """Return the real factors of sums, for each channel or for all of them."""
    assert weights.quantization is not None
    scales = weights.quantization.scales[: None if weights.has_per_axis_quantization else 1]
    product = np.float64(scale_of(source)) * np.array(scales, np.float32).astype(np.float64)
    result: npt.NDArray[np.float64] = product / np.float64(scale_of(output))
    return result


def is_dynamic(inputs: OperandInfos) -> bool:
    """Return whether float32 is multiplied with quantised weights."""
    source, weights = inputs[:2]
    if source is None or weights is None:
        return False
    return source.data_type is DataType.FLOAT32 and weights.data_type.is_quantized


def check_dynamic(operands: Operands[TensorInfo], output: TensorInfo) -> str:
    """int8 weights without a zero point, all else float32, sums that fit 32 bits."""
    weights, bias = operands["weights"], operands.get("bias")
    if weights.data_type not in _SIGNED_WEIGHTS or weights.zero_point:
        return f"weights of {weights} are not supported with FLOAT32 input"
    for info in (bias, output):
        if info is not None and info.data_type is not DataType.FLOAT32:
            return f"{info.data_type.name} is not supported with {weights.data_type.name} weights"
    products = weights.num_elements // weights.known_shape[0]
    if products * 255 * 128 >= 1 << 31:
        return f"sums of {products} products may not fit 32 bits"
    return ""
