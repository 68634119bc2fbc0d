"""Depthwise convolutions that are written as grouped ones, with a group for each channel."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from armpy.graph import Layer, SubgraphView, Value
from armpy.ops.convolution import Convolution2d, DepthwiseConvolution2d
from armpy.types import DataLayout, DataType
from armpy_numba_acc.lowering.weighted_checks import is_dynamic


def with_depthwise(view: SubgraphView) -> SubgraphView:
    """A region with depthwise convolutions for those whose filters see one channel of several."""
    layers = tuple(_apart(layer) if _is_apart(layer) else layer for layer in view.layers)
    return view if layers == view.layers else replace(view, layers=layers)


def _is_apart(layer: Layer) -> bool:
    """Return whether a layer is a convolution that keeps channels apart."""
    operation = layer.operation
    if not isinstance(operation, Convolution2d) or operation.data_layout is not DataLayout.NHWC:
        return False
    channels, weights = layer["input"].info.known_shape[3], layer["weights"]
    is_sums = layer.output.info.data_type is DataType.SIGNED32
    is_plain = weights.data is not None and not is_dynamic(layer.input_infos) and not is_sums
    return is_plain and channels > 1 == weights.info.known_shape[3]


def _apart(layer: Layer) -> Layer:
    """The same as a depthwise convolution: output channels are in the same order."""
    operation = layer.operation
    assert isinstance(operation, Convolution2d)
    depthwise = DepthwiseConvolution2d(
        stride=operation.stride,
        padding=operation.padding,
        dilation=operation.dilation,
        activation=operation.activation,
        rounds_once=operation.rounds_once,
    )
    source, weights, *others = layer.inputs
    assert weights is not None
    return replace(layer, operation=depthwise, inputs=(source, _turned(weights), *others))


def _turned(weights: Value) -> Value:
    """Filters (o, h, w, 1) as (1, h, w, o)."""
    info, data = weights.info, weights.data
    assert data is not None
    filters, height, width, _ = info.known_shape
    quantization = info.quantization
    if quantization is not None and quantization.axis is not None:
        quantization = replace(quantization, axis=3)
    info = replace(info, shape=(1, height, width, filters), quantization=quantization)
    return replace(weights, info=info, data=np.ascontiguousarray(data.transpose(3, 1, 2, 0)))
