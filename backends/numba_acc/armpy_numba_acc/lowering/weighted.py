"""Lowers convolutions and matrix products."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.graph import Layer
from armpy.ops import Convolution2d, DepthwiseConvolution2d, FullyConnected
from armpy.ops.operands import Operands
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import DataLayout, DataType
from armpy_numba_acc.lowering.computed_weights import (
    check_computed,
    has_computed_weights,
    lower_computed,
)
from armpy_numba_acc.lowering.dynamic_range import check_dynamic, is_dynamic, lower_dynamic
from armpy_numba_acc.lowering.grouped import lower_grouped
from armpy_numba_acc.lowering.relaxing import is_bfloat16_product
from armpy_numba_acc.lowering.tiles import BF16, F32
from armpy_numba_acc.lowering.vector_matrix import lower_vector, multiplies_vector
from armpy_numba_acc.lowering.weighted_i16 import WIDE, check_i16, lower_i16
from armpy_numba_acc.lowering.weighted_real import lower_real
from armpy_numba_acc.lowering.weighted_u8 import check_u8, lower_u8
from armpy_numba_acc.packing.quantized import QUANTIZED_TYPES
from armpy_numba_acc.program.emitter import Emitter
from armpy_numba_acc.program.limits import MOST_PARTS, MOST_TAPS
from armpy_numba_acc.program.registry import Lowering

_OF_IMAGES = (Convolution2d, DepthwiseConvolution2d)


def check_weighted(
    operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
) -> str:
    """float32 or 8 bits, or float32 or 16 bits with int8 weights; NHWC."""
    operands = Operands(operation, inputs)
    source, weights = operands["input"], operands["weights"]
    if isinstance(operation, _OF_IMAGES) and operation.data_layout is not DataLayout.NHWC:
        return "the layout NCHW is not supported"
    refusal = _too_many(operation, source, weights)
    if refusal:
        return refusal
    if has_computed_weights(inputs):
        return check_computed(operation, inputs)
    depths = source.known_shape[3:], weights.known_shape[3:]
    if isinstance(operation, Convolution2d) and is_dynamic(inputs) and depths[0] != depths[1]:
        return "groups of filters are not supported with FLOAT32 input and quantised weights"
    axis = 3 if isinstance(operation, DepthwiseConvolution2d) else 0
    return check_types(operands, outputs, axis)


def check_types(
    operands: Operands[TensorInfo], outputs: Sequence[TensorInfo], filters_axis: int = 0
) -> str:
    """float32 or 8 bits, or float32 or 16 bits with int8 weights.

    Parameters
    ----------
    filters_axis : int
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
    _, height, width, depth = weights.known_shape if len(weights.known_shape) == 4 else (0,) * 4
    if isinstance(operation, DepthwiseConvolution2d) and height * width > MOST_TAPS:
        return f"windows of more than {MOST_TAPS} elements are not supported"
    if isinstance(operation, Convolution2d) and source.known_shape[3] > MOST_PARTS * depth:
        return f"more than {MOST_PARTS} groups of filters are not supported"
    return ""


def lower_weighted(emit: Emitter, layer: Layer) -> None:
    """By the input's type, by whether filters see all channels, and whether once only."""
    source, weights = layer["input"].info, layer["weights"].info
    is_convolution = isinstance(layer.operation, Convolution2d)
    if has_computed_weights(layer.input_infos):
        lower_computed(emit, layer)
    elif is_convolution and source.known_shape[3] != weights.known_shape[3]:
        lower_grouped(emit, layer)
    elif source.data_type is WIDE:
        lower_i16(emit, layer)
    elif is_dynamic(layer.input_infos):
        lower_dynamic(emit, layer)
    elif emit.isa.is_relaxed and is_bfloat16_product(layer):
        lower_real(emit, layer, BF16)
    elif multiplies_vector(layer):
        lower_vector(emit, layer)
    elif source.data_type is DataType.FLOAT32:
        lower_real(emit, layer, F32)
    else:
        lower_u8(emit, layer)


LOWERINGS = {
    Convolution2d: Lowering(check_weighted, lower_weighted),
    FullyConnected: Lowering(check_weighted, lower_weighted),
}
