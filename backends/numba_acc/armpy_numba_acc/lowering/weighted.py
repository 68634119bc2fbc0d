"""Lowers convolutions and matrix products."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.graph import Layer
from armpy.ops import Convolution2d, FullyConnected
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import DataLayout, DataType
from armpy_numba_acc.lowering.emitter import Emitter
from armpy_numba_acc.lowering.grouped import lower_grouped
from armpy_numba_acc.lowering.patches import input_of
from armpy_numba_acc.lowering.quantized import QUANTIZED_TYPES
from armpy_numba_acc.lowering.registry import Lowering
from armpy_numba_acc.lowering.weighted_f32 import lower_f32
from armpy_numba_acc.lowering.weighted_u8 import check_u8, lower_u8


def check_weighted(
    operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
) -> str:
    """float32 or 8 bits throughout, constant weights, NHWC."""
    source, weights = inputs[0], inputs[1]
    assert source is not None
    assert weights is not None
    for info, name in zip(inputs[1:], ("weights", "bias"), strict=False):
        if info is not None and not info.is_constant:
            return f"the {name} are not constant"
    if isinstance(operation, Convolution2d) and operation.data_layout is not DataLayout.NHWC:
        return "the layout NCHW is not supported"
    if source.data_type in QUANTIZED_TYPES:
        return check_u8(inputs, outputs)
    for info in (*inputs, *outputs):
        if info is not None and info.data_type is not DataType.FLOAT32:
            return f"{info.data_type.name} is not supported with {source.data_type.name} input"
    return ""


def lower_weighted(emit: Emitter, layer: Layer) -> None:
    """By the input's type, and by whether filters see all channels."""
    source, weights = input_of(layer, 0).info, input_of(layer, 1).info
    is_convolution = isinstance(layer.operation, Convolution2d)
    if is_convolution and source.known_shape[3] != weights.known_shape[3]:
        lower_grouped(emit, layer)
        return
    is_float = input_of(layer, 0).info.data_type is DataType.FLOAT32
    (lower_f32 if is_float else lower_u8)(emit, layer)


LOWERINGS = {
    Convolution2d: Lowering(check_weighted, lower_weighted),
    FullyConnected: Lowering(check_weighted, lower_weighted),
}
