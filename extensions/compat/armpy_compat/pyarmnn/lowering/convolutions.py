"""Layers with weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from armpy import ops
from armpy.graph import Value
from armpy.types import DataLayout, DataType
from armpy_compat.pyarmnn.lowering.lowered_layer import LoweredLayer, Lowering

_TO_CHANNELS_LAST = (0, 2, 3, 1)
_TO_HWC_FIRST = (2, 3, 1, 0)


def _weights_and_bias(lowered: LoweredLayer) -> tuple[Value, Value | None]:
    """Weights and bias, which are part of the layer, or connected to its inputs 1 and 2."""
    weights = lowered.tensor("weights")
    if weights is None:
        has_bias = lowered.descriptor.m_BiasEnabled
        return lowered.inputs[1], lowered.inputs[2] if has_bias else None
    return weights, lowered.tensor("biases") if lowered.descriptor.m_BiasEnabled else None


def _padding(descriptor: object) -> tuple[tuple[int, int], tuple[int, int]]:
    sides = {
        side: getattr(descriptor, f"m_Pad{side}") for side in ("Top", "Bottom", "Left", "Right")
    }
    return (sides["Top"], sides["Bottom"]), (sides["Left"], sides["Right"])


def _rounds_once(lowered: LoweredLayer) -> bool:
    """True if sums are rounded once, as Arm NN's are, which only those of 8 bits can be."""
    return lowered.inputs[0].info.data_type in (DataType.QASYMM_U8, DataType.QASYMM_S8)


def _convolution2d(lowered: LoweredLayer) -> Sequence[Value]:
    d = lowered.descriptor
    layout = DataLayout(d.m_DataLayout)
    weights, bias = _weights_and_bias(lowered)
    if layout is DataLayout.NCHW:
        weights = lowered.permuted(weights, _TO_CHANNELS_LAST)
    operation = ops.Convolution2d(
        stride=(d.m_StrideY, d.m_StrideX),
        dilation=(d.m_DilationY, d.m_DilationX),
        padding=_padding(d),
        data_layout=layout,
        rounds_once=_rounds_once(lowered),
    )
    return lowered.result(operation, lowered.inputs[0], weights, bias)


def _depthwise_convolution2d(lowered: LoweredLayer) -> Sequence[Value]:
    d = lowered.descriptor
    layout = DataLayout(d.m_DataLayout)
    weights, bias = _weights_and_bias(lowered)
    channels = lowered.inputs[0].info.known_shape[layout.channel_axis]
    multiplier, depth, height, width = weights.info.known_shape
    if "weights" in lowered.layer.tensors and depth == channels:
        # [M, I, H, W], as an argument was up to 20.11: output channel i * M + m.
        weights = lowered.permuted(weights, _TO_HWC_FIRST)
        shape = (1, height, width, depth * multiplier)
        weights = _reshaped(lowered, weights, shape)
    operation = ops.DepthwiseConvolution2d(
        stride=(d.m_StrideY, d.m_StrideX),
        dilation=(d.m_DilationY, d.m_DilationX),
        padding=_padding(d),
        data_layout=layout,
        rounds_once=_rounds_once(lowered),
    )
    return lowered.result(operation, lowered.inputs[0], weights, bias)


def _reshaped(lowered: LoweredLayer, constant: Value, shape: tuple[int, ...]) -> Value:
    """A constant of another shape."""
    assert constant.data is not None
    return lowered.network.constant(
        constant.data.reshape(shape),
        data_type=constant.info.data_type,
        quantization=constant.info.quantization,
        name=constant.name,
    )


def _convolution3d(lowered: LoweredLayer) -> Sequence[Value]:
    d = lowered.descriptor
    weights, bias = _weights_and_bias(lowered)
    operation = ops.Convolution3d(
        stride=(d.m_StrideZ, d.m_StrideY, d.m_StrideX),
        dilation=(d.m_DilationZ, d.m_DilationY, d.m_DilationX),
        padding=((d.m_PadFront, d.m_PadBack), *_padding(d)),
        data_layout=DataLayout(d.m_DataLayout),
    )
    # Arm NN's are [D, H, W, I, O], armpy's [O, D, H, W, I].
    weights = lowered.permuted(weights, (4, 0, 1, 2, 3))
    return lowered.result(operation, lowered.inputs[0], weights, bias)


def _transpose_convolution2d(lowered: LoweredLayer) -> Sequence[Value]:
    d = lowered.descriptor
    layout = DataLayout(d.m_DataLayout)
    weights, bias = _weights_and_bias(lowered)
    if layout is DataLayout.NCHW:
        weights = lowered.permuted(weights, _TO_CHANNELS_LAST)
    operation = ops.TransposeConvolution2d(
        stride=(d.m_StrideY, d.m_StrideX),
        padding=_padding(d),
        data_layout=layout,
        output_shape=tuple(d.m_OutputShape) if d.m_OutputShapeEnabled else None,
    )
    return lowered.result(operation, lowered.inputs[0], weights, bias)


def _fully_connected(lowered: LoweredLayer) -> Sequence[Value]:
    weights, bias = _weights_and_bias(lowered)
    if not lowered.descriptor.m_TransposeWeightMatrix:
        weights = lowered.permuted(weights, (1, 0))
    output = lowered.outputs[0]
    keeps = output is not None and len(output.known_shape) > 2
    return lowered.result(ops.FullyConnected(keep_num_dims=keeps), lowered.inputs[0], weights, bias)


def _batch_mat_mul(lowered: LoweredLayer) -> Sequence[Value]:
    d = lowered.descriptor
    operation = ops.BatchMatMul(
        transpose_x=d.m_TransposeX or d.m_AdjointX, transpose_y=d.m_TransposeY or d.m_AdjointY
    )
    return lowered.result(operation, *lowered.inputs)


CONVOLUTIONS: Mapping[str, Lowering] = {
    "BatchMatMul": _batch_mat_mul,
    "Convolution2d": _convolution2d,
    "Convolution3d": _convolution3d,
    "DepthwiseConvolution2d": _depthwise_convolution2d,
    "FullyConnected": _fully_connected,
    "TransposeConvolution2d": _transpose_convolution2d,
}
"""How layers with weights are made, by kind."""
