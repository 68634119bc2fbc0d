"""Operators that work on windows of images."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.core.flatbuffers.reader import TableReader
from armpy.frontends.tflite.composed import moving
from armpy.frontends.tflite.node import (
    BoundOperator,
    Converter,
    ConverterTable,
    direct,
    flat_bias,
    fused_activation,
)
from armpy.graph import Value
from armpy.ops.activations import FusedActivation
from armpy.ops.convolution import Convolution2d, DepthwiseConvolution2d
from armpy.ops.pooling import Pooling2d, PoolingAlgorithm
from armpy.ops.shapes import Padding
from armpy.ops.transpose_convolution import TransposeConvolution2d
from armpy.types import DataType

_PADDINGS = {0: Padding.SAME, 1: Padding.VALID}


def padding_of(options: TableReader) -> Padding:
    """The padding that the options name."""
    return options.choice("Padding", _PADDINGS, "Padding")


def _stride(options: TableReader) -> tuple[int, int]:
    """Vertical and horizontal stride."""
    return options.integer("StrideH"), options.integer("StrideW")


def _dilation(options: TableReader) -> tuple[int, int]:
    """Vertical and horizontal dilation."""
    return options.integer("DilationHFactor"), options.integer("DilationWFactor")


def _convolution(node: BoundOperator) -> Sequence[Value]:
    options = node.options("Conv2DOptions")
    operation = Convolution2d(
        _stride(options), _dilation(options), padding_of(options), fused_activation(options)
    )
    source, weights = node.input(0), node.input(1)
    if source is not None and weights is not None and weights.info.data_type is DataType.FLOAT16:
        weights = node.as_real(weights, source.info.data_type)
    return node.layer(operation, source, weights, flat_bias(node, 2), *node.inputs[3:])


def _depthwise_convolution(node: BoundOperator) -> Sequence[Value]:
    """Follow the weights' shape; TFLite does not look at ``depth_multiplier`` either."""
    options = node.options("DepthwiseConv2DOptions")
    operation = DepthwiseConvolution2d(
        _stride(options), _dilation(options), padding_of(options), fused_activation(options)
    )
    return node.layer(operation, *node.inputs[:2], flat_bias(node, 2), *node.inputs[3:])


def _transpose_convolution(node: BoundOperator) -> Sequence[Value]:
    options = node.options("TransposeConvOptions")
    operation = TransposeConvolution2d(
        _stride(options), padding_of(options), fused_activation(options)
    )
    return node.layer(operation, node.input(2), node.input(1), flat_bias(node, 3), node.input(0))


def _pooling(algorithm: PoolingAlgorithm) -> Converter:

    def make(node: BoundOperator) -> Pooling2d:
        options = node.options("Pool2DOptions")
        size = options.integer("FilterHeight"), options.integer("FilterWidth")
        activation = fused_activation(options)
        return Pooling2d(algorithm, size, _stride(options), padding_of(options), activation)

    return direct(make)


def _max_pooling(node: BoundOperator) -> Sequence[Value]:
    """Pool integers as they are stored, unless an activation has bounds that need a scale."""
    pooling = _pooling(PoolingAlgorithm.MAX)
    activation = fused_activation(node.options("Pool2DOptions"))
    is_scaled = bool(node.outputs) and node.outputs[0].quantization is not None
    if activation is not FusedActivation.NONE and not is_scaled:
        return pooling(node)
    return moving(pooling, has_scale=True)(node)


CONVERTERS: ConverterTable = {
    "AVERAGE_POOL_2D": _pooling(PoolingAlgorithm.AVERAGE),
    "CONV_2D": _convolution,
    "DEPTHWISE_CONV_2D": _depthwise_convolution,
    "L2_POOL_2D": _pooling(PoolingAlgorithm.L2),
    "MAX_POOL_2D": _max_pooling,
    "TRANSPOSE_CONV": _transpose_convolution,
}
