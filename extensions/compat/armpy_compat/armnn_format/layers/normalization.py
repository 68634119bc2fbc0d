"""Layers that normalise: over channels, neighbours, images, and with stored statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from armpy import DataLayout, ops
from armpy.graph import Value
from armpy.ops import BinaryOperation
from armpy_compat.armnn_format.layer import ArmnnLayer, Converter

_ACROSS, _LOCAL_BRIGHTNESS = 0, 0


def _batch_normalization(layer: ArmnnLayer) -> Sequence[Value]:
    """Multiply and add per channel, in float32."""
    layer.expect_inputs(1)
    layer.expect_outputs(1)
    epsilon = layer.descriptor.real("eps")
    mean, variance, beta, gamma = (
        _real_parameter(layer, field) for field in ("mean", "variance", "beta", "gamma")
    )
    if len({mean.shape, variance.shape, beta.shape, gamma.shape}) > 1 or mean.ndim != 1:
        raise layer.error("mean, variance, beta and gamma do not have one length each")
    with np.errstate(all="ignore"):
        factor = gamma / np.sqrt(variance + np.float32(epsilon))
        addend = beta - factor * mean
    channels_last = layer.layout() is DataLayout.NHWC
    rank = layer.inputs[0].info.rank or 1
    shape = (-1,) if channels_last else (-1, *(1,) * (rank - 2))
    value = layer.decoded(layer.inputs[0])
    for function, parameter in ((BinaryOperation.MUL, factor), (BinaryOperation.ADD, addend)):
        number = layer.constant(np.ascontiguousarray(parameter.reshape(shape)))
        value = layer.helper(ops.ElementwiseBinary(function), value, number)
    return (layer.encoded(value, layer.output(layer.inputs[0].info)),)


def _real_parameter(layer: ArmnnLayer, field: str) -> npt.NDArray[np.float32]:
    """A stored tensor as float32."""
    value = layer.stored(field)
    data: npt.NDArray[Any] = np.asarray(value.data)  # Any: elements of many types
    layer.table.charge(data.nbytes)
    if value.info.quantization is not None:
        return value.info.quantization.dequantize(data)
    return data.astype(np.float32)


def _instance_normalization(layer: ArmnnLayer) -> Sequence[Value]:
    layer.expect_inputs(1)
    descriptor = layer.descriptor
    operation = ops.InstanceNormalization(
        descriptor.real("gamma"), descriptor.real("beta"), descriptor.real("eps"), layer.layout()
    )
    return (layer.add(operation, layer.inputs[0]),)


def _l2_normalization(layer: ArmnnLayer) -> Sequence[Value]:
    """Divide along the channels; tensors of a lower rank count as ones of rank 4 at their end."""
    layer.expect_inputs(1)
    epsilon = layer.descriptor.real("eps")
    axis = -1 if layer.layout() is DataLayout.NHWC else -3
    return (layer.add(ops.L2Normalization(axis, epsilon), layer.inputs[0]),)


def _normalization(layer: ArmnnLayer) -> Sequence[Value]:
    layer.expect_inputs(1)
    descriptor, layout = layer.descriptor, layer.layout()
    if descriptor.integer("normMethodType") != _LOCAL_BRIGHTNESS:
        raise layer.error("the method is not supported", expected="LocalBrightness")
    is_across = descriptor.integer("normChannelType") == _ACROSS
    operation = ops.Normalization(
        descriptor.integer("normSize") // 2,
        descriptor.real("alpha"),
        descriptor.real("beta"),
        descriptor.real("k"),
        (layout.channel_axis,) if is_across else layout.spatial_axes,
    )
    return (layer.add(operation, layer.inputs[0]),)


def _softmax(layer: ArmnnLayer) -> Sequence[Value]:
    layer.expect_inputs(1)
    descriptor = layer.descriptor
    operation = ops.Softmax(descriptor.real("beta"), descriptor.integer("axis"))
    return (layer.add(operation, layer.inputs[0]),)


def _log_softmax(layer: ArmnnLayer) -> Sequence[Value]:
    layer.expect_inputs(1)
    descriptor = layer.descriptor
    operation = ops.LogSoftmax(descriptor.real("beta"), descriptor.integer("axis"))
    return (layer.add(operation, layer.inputs[0]),)


CONVERTERS: Mapping[str, Converter] = {
    "BatchNormalization": _batch_normalization,
    "InstanceNormalization": _instance_normalization,
    "L2Normalization": _l2_normalization,
    "LogSoftmax": _log_softmax,
    "Normalization": _normalization,
    "Softmax": _softmax,
}
