"""Layers that multiply and accumulate: convolutions and products of matrices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from armpy import DataLayout, Quantization, TensorInfo, ops
from armpy.graph import Value
from armpy.ops.shapes import PaddingSpec
from armpy_compat.armnn_format.layer import (
    IMAGE_LAYOUTS,
    VOLUME_LAYOUTS,
    ArmnnLayer,
    Converter,
    LayerTable,
    permuted_quantization,
)

_CHANNELS_LAST = (0, 1, 2, 3)
_FROM_OIHW = (0, 2, 3, 1)
_FROM_DHWIO = (4, 0, 1, 2, 3)
_FROM_MIHW = (2, 3, 1, 0)
_MATRIX_LAYOUTS: Mapping[int, DataLayout] = {**IMAGE_LAYOUTS, **VOLUME_LAYOUTS}


def image_pads(descriptor: LayerTable) -> tuple[tuple[int, int], tuple[int, int]]:
    """((top, bottom), (left, right))."""
    return (
        (descriptor.integer("padTop"), descriptor.integer("padBottom")),
        (descriptor.integer("padLeft"), descriptor.integer("padRight")),
    )


def volume_pads(descriptor: LayerTable) -> tuple[tuple[int, int], ...]:
    """((front, back), (top, bottom), (left, right))."""
    return (
        (descriptor.integer("padFront"), descriptor.integer("padBack")),
        *image_pads(descriptor),
    )


def axes(descriptor: LayerTable, *fields: str) -> tuple[int, ...]:
    """Several fields, one for each spatial axis, outermost first."""
    return tuple(descriptor.integer(field) for field in fields)


def _weights_and_bias(layer: ArmnnLayer, *, has_bias: bool) -> tuple[Value, Value | None]:
    """Weights and bias: inputs in files of newer versions, fields of the layer in older ones."""
    if len(layer.inputs) > 1:
        layer.expect_inputs(2 + has_bias)
        return layer.inputs[1], layer.inputs[2] if has_bias else None
    layer.expect_inputs(1)
    return layer.stored("weights"), layer.stored("biases") if has_bias else None


def _convolution2d(layer: ArmnnLayer) -> Sequence[Value]:
    descriptor, layout = layer.descriptor, layer.layout()
    weights, bias = _weights_and_bias(layer, has_bias=descriptor.flag("biasEnabled"))
    order = _FROM_OIHW if layout is DataLayout.NCHW else _CHANNELS_LAST
    padding: PaddingSpec = image_pads(descriptor)
    stride, dilation = _steps(descriptor)
    operation = ops.Convolution2d(
        stride, dilation, padding, data_layout=layout, rounds_once=layer.rounds_once
    )
    return (layer.add(operation, layer.inputs[0], layer.in_order(weights, order), bias),)


def _steps(descriptor: LayerTable) -> tuple[tuple[int, int], tuple[int, int]]:
    """Stride and dilation, vertical and horizontal."""
    return (
        (descriptor.integer("strideY"), descriptor.integer("strideX")),
        (descriptor.integer("dilationY"), descriptor.integer("dilationX")),
    )


def _depthwise_convolution2d(layer: ArmnnLayer) -> Sequence[Value]:
    descriptor, layout = layer.descriptor, layer.layout()
    weights, bias = _weights_and_bias(layer, has_bias=descriptor.flag("biasEnabled"))
    if layer.has_old_weights:
        weights = _from_old_layout(layer, weights)
    stride, dilation = _steps(descriptor)
    operation = ops.DepthwiseConvolution2d(
        stride,
        dilation,
        image_pads(descriptor),
        data_layout=layout,
        rounds_once=layer.rounds_once,
    )
    return (layer.add(operation, layer.inputs[0], weights, bias),)


def _from_old_layout(layer: ArmnnLayer, weights: Value) -> Value:
    """Weights (M, I, H, W) as (1, H, W, I * M), their scales along the last axis."""
    info = weights.info
    if not info.is_fully_shaped or info.rank != 4:
        raise layer.error("the weights have the wrong rank", expected="4", actual=info)
    multiplier, channels, height, width = info.known_shape
    ordered = layer.in_order(weights, _FROM_MIHW)
    shape = (1, height, width, channels * multiplier)
    quantization = info.quantization
    if quantization is not None and quantization.axis is not None:
        quantization = Quantization(quantization.scales, quantization.zero_points, 3)
    if ordered.data is not None:
        return layer.constant(
            ordered.data.reshape(shape), TensorInfo(shape, info.data_type, quantization)
        )
    declared = TensorInfo(None, info.data_type, quantization)
    return layer.helper(ops.Reshape(shape), ordered, output=declared)


def _convolution3d(layer: ArmnnLayer) -> Sequence[Value]:
    descriptor, layout = layer.descriptor, layer.layout(VOLUME_LAYOUTS)
    weights, bias = _weights_and_bias(layer, has_bias=descriptor.flag("biasEnabled"))
    z, y, x = axes(descriptor, "strideZ", "strideY", "strideX")
    dz, dy, dx = axes(descriptor, "dilationZ", "dilationY", "dilationX")
    operation = ops.Convolution3d(
        (z, y, x), (dz, dy, dx), volume_pads(descriptor), data_layout=layout
    )
    return (layer.add(operation, layer.inputs[0], layer.in_order(weights, _FROM_DHWIO), bias),)


def _transpose_convolution2d(layer: ArmnnLayer) -> Sequence[Value]:
    layer.expect_inputs(1)
    descriptor, layout = layer.descriptor, layer.layout()
    weights = layer.stored("weights")
    bias = layer.stored("biases") if descriptor.flag("biasEnabled") else None
    order = _FROM_OIHW if layout is DataLayout.NCHW else _CHANNELS_LAST
    operation = ops.TransposeConvolution2d(
        (descriptor.integer("strideY"), descriptor.integer("strideX")),
        image_pads(descriptor),
        data_layout=layout,
        output_shape=layer.output_shape,
    )
    return (layer.add(operation, layer.inputs[0], layer.in_order(weights, order), bias),)


def _fully_connected(layer: ArmnnLayer) -> Sequence[Value]:
    descriptor = layer.descriptor
    weights, bias = _weights_and_bias(layer, has_bias=descriptor.flag("biasEnabled"))
    if not descriptor.flag("transposeWeightsMatrix"):
        weights = layer.in_order(weights, (1, 0))
    operation = ops.FullyConnected(keep_num_dims=layer.keeps_dimensions)
    return (layer.add(operation, layer.inputs[0], weights, bias),)


def _batch_mat_mul(layer: ArmnnLayer) -> Sequence[Value]:
    """Multiply the matrices at the spatial axes; with channels last, these are not the last two."""
    layer.expect_inputs(2)
    descriptor = layer.descriptor
    if descriptor.flag("adjointX") or descriptor.flag("adjointY"):
        raise layer.error("adjoint matrices are not supported", expected="transposeX or transposeY")
    operation = ops.BatchMatMul(descriptor.flag("transposeX"), descriptor.flag("transposeY"))
    x, y = layer.inputs
    is_last = [
        descriptor.choice(field, _MATRIX_LAYOUTS, "DataLayout").channel_axis != 1
        for field in ("dataLayoutX", "dataLayoutY")
    ]
    if is_last[0] is not is_last[1]:
        raise layer.error("one matrix has channels first, the other has channels last")
    if not is_last[0]:
        return (layer.add(operation, x, y),)
    product = layer.add(operation, _channels_ahead(layer, x), _channels_ahead(layer, y))
    return (layer.helper(ops.Transpose(_channels_back(product)), product),)


def _channels_ahead(layer: ArmnnLayer, value: Value) -> Value:
    """The axes of a value with the last one in front of the two ahead of it."""
    rank = value.info.rank or 0
    if rank < 3:
        raise layer.error("matrices with channels last need rank 3", actual=value.info)
    order = (*range(rank - 3), rank - 1, rank - 3, rank - 2)
    info = TensorInfo(
        None, value.info.data_type, permuted_quantization(value.info.quantization, order)
    )
    return layer.helper(ops.Transpose(order), value, output=info)


def _channels_back(value: Value) -> tuple[int, ...]:
    """The order of axes that undoes `_channels_ahead`."""
    rank = value.info.rank or 0
    return (*range(rank - 3), rank - 2, rank - 1, rank - 3)


CONVERTERS: Mapping[str, Converter] = {
    "BatchMatMul": _batch_mat_mul,
    "Convolution2d": _convolution2d,
    "Convolution3d": _convolution3d,
    "DepthwiseConvolution2d": _depthwise_convolution2d,
    "FullyConnected": _fully_connected,
    "TransposeConvolution2d": _transpose_convolution2d,
}
