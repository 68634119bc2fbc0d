"""Lowers depthwise convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from armpy.graph import Layer
from armpy.ops import DepthwiseConvolution2d
from armpy.ops.operation import Array, OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import DataLayout, DataType
from armpy_numba_acc.lowering.depthwise_f32 import lower_f32
from armpy_numba_acc.lowering.depthwise_u8 import check_u8, lower_u8
from armpy_numba_acc.lowering.emitter import Emitter
from armpy_numba_acc.lowering.memory import Buffer
from armpy_numba_acc.lowering.moves import Side, emit_move, stand_in
from armpy_numba_acc.lowering.patches import input_of
from armpy_numba_acc.lowering.quantized import QUANTIZED_TYPES
from armpy_numba_acc.lowering.registry import Lowering
from armpy_numba_acc.lowering.windows import Windows


def check(operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
    """float32 or 8 bits throughout, constant weights, NHWC."""
    assert isinstance(operation, DepthwiseConvolution2d)
    source = inputs[0]
    assert source is not None
    for info, name in zip(inputs[1:], ("weights", "bias"), strict=False):
        if info is not None and not info.is_constant:
            return f"the {name} are not constant"
    if operation.data_layout is not DataLayout.NHWC:
        return "the layout NCHW is not supported"
    if source.data_type in QUANTIZED_TYPES:
        return check_u8(inputs, outputs)
    for info in (*inputs, *outputs):
        if info is not None and info.data_type is not DataType.FLOAT32:
            return f"{info.data_type.name} is not supported with {source.data_type.name} input"
    return ""


def lower(emit: Emitter, layer: Layer) -> None:
    """Add the command; where several channels are made of each, repeat these before."""
    operation = layer.operation
    assert isinstance(operation, DepthwiseConvolution2d)
    value, out_shape = input_of(layer, 0), layer.outputs[0].info.known_shape
    windows = Windows.of(
        value.info.known_shape,
        out_shape,
        input_of(layer, 1).info.known_shape[1:3],
        operation.stride,
        operation.padding,
        operation.dilation,
    )
    source = emit.source(value)
    channels, out_channels = windows.shape[3], out_shape[3]
    if 1 < channels < out_channels:
        source = _repeated(emit, layer, source, out_channels // channels)
        windows = replace(windows, shape=(*windows.shape[:3], out_channels))
    is_float = value.info.data_type is DataType.FLOAT32
    (lower_f32 if is_float else lower_u8)(emit, layer, source, windows)


def _repeated(emit: Emitter, layer: Layer, source: Buffer, times: int) -> Buffer:
    """The input with each channel several times in succession."""
    value = input_of(layer, 0)
    given = stand_in(value.info).reshape(-1, 1)
    repeated: Array = np.empty((len(given), times), given.dtype)
    target = emit.scratch(value.info.size_bytes * times)
    part = np.broadcast_to(given, repeated.shape)
    emit_move(emit, Side(source, given, part), Side(target, repeated, repeated), layer.name)
    return target


LOWERINGS = {DepthwiseConvolution2d: Lowering(check, lower)}
