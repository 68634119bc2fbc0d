"""Writes layers that multiply and accumulate, and those that summarise windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from armpy import DataLayout, TensorInfo, ops
from armpy.graph import Layer, Value
from armpy.ops import Padding
from armpy.ops.shapes import PaddingSpec, resolve_padding, spatial
from armpy.plugins.hooks.flatbuffers import Field
from armpy_compat.armnn_format.layer import permuted_quantization
from armpy_compat.armnn_format.writing.elementwise import Emit, described
from armpy_compat.armnn_format.writing.file_writer import (
    ArmnnWriter,
    Slot,
    constant_of,
    layer_error,
    shape_of,
    stored_table,
    unsigned,
)

LAYOUT_NUMBERS: Mapping[DataLayout, int] = {
    DataLayout.NHWC: 0,
    DataLayout.NCHW: 1,
    DataLayout.NDHWC: 2,
    DataLayout.NCDHW: 3,
}
_SAME_ORDER, _TO_OIHW, _TO_DHWIO = (0, 1, 2, 3), (0, 3, 1, 2), (1, 2, 3, 4, 0)
_SIDES = (("Top", "Bottom"), ("Left", "Right"))
_VOLUME_SIDES = (("Front", "Back"), *_SIDES)
_EXCLUDE = 1


def _pad_fields(
    layer: Layer,
    padding: PaddingSpec,
    kernel: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    layout: DataLayout,
) -> dict[str, Field]:
    """Explicit padding; the format does not know SAME."""
    sizes: Sequence[int | None] = [0] * len(kernel)
    if padding is Padding.SAME:
        sizes = spatial(shape_of(layer, layer.inputs[0]), layout)
    sides = _SIDES if len(kernel) == 2 else _VOLUME_SIDES
    fields: dict[str, Field] = {}
    for axis, (before, after) in enumerate(sides):
        pair = resolve_padding(
            padding, sizes[axis] or 0, kernel[axis], stride[axis], dilation[axis], axis
        )
        fields[f"pad{before}"], fields[f"pad{after}"] = pair
    return fields


def _axis_fields(prefix: str, numbers: Sequence[int], letters: str) -> dict[str, Field]:
    """One field for each spatial axis, such as ``strideY`` and ``strideX``."""
    return {f"{prefix}{letter}": number for letter, number in zip(letters, numbers, strict=True)}


def _reordered(writer: ArmnnWriter, layer: Layer, order: tuple[int, ...]) -> Value | Slot:
    """The weights with their axes in the format's order."""
    weights = layer["weights"]
    if order == _SAME_ORDER:
        return weights
    shape = shape_of(layer, weights)
    quantization = permuted_quantization(weights.info.quantization, order)
    info = TensorInfo(tuple(shape[axis] for axis in order), weights.info.data_type, quantization)
    name = f"{layer.name}/weights"
    if weights.data is not None:
        return writer.constant(weights.data.transpose(order), info, name)
    fields: dict[str, Field] = {"dimMappings": unsigned(order)}
    (slot,) = writer.put(
        "Transpose", name, (weights,), (info,), descriptor=("TransposeDescriptor", fields)
    )
    return slot


def _with_bias(layer: Layer, weights: Value | Slot) -> list[Value | Slot]:
    """Input, weights and bias of a layer."""
    bias = layer.operand("bias")
    return [layer["input"], weights, *(() if bias is None else (bias,))]


def _convolution(writer: ArmnnWriter, layer: Layer) -> Sequence[Slot]:
    operation = layer.operation
    kinds = (ops.Convolution2d, ops.DepthwiseConvolution2d, ops.Convolution3d)
    assert isinstance(operation, kinds)
    kernel = shape_of(layer, layer["weights"])[1:-1]
    layout, is_volume = operation.data_layout, len(kernel) == 3
    is_depthwise = isinstance(operation, ops.DepthwiseConvolution2d)
    if not isinstance(operation, ops.Convolution3d) and operation.rounds_once:
        raise layer_error(layer, "the .armnn format has no convolution that rounds once")
    channels = shape_of(layer, layer["weights"])[-1]
    if not is_depthwise and (layer["input"].info.shape or ())[layout.channel_axis] != channels:
        raise layer_error(layer, "the .armnn format has no grouped convolution")
    order = _TO_DHWIO if is_volume else _SAME_ORDER
    if layout is DataLayout.NCHW and not is_depthwise:
        order = _TO_OIHW
    letters = "ZYX" if is_volume else "YX"
    fields = {
        **_pad_fields(
            layer, operation.padding, kernel, operation.stride, operation.dilation, layout
        ),
        **_axis_fields("stride", operation.stride, letters),
        **_axis_fields("dilation", operation.dilation, letters),
        "biasEnabled": layer.operand("bias") is not None,
        "dataLayout": LAYOUT_NUMBERS[layout],
    }
    inputs = _with_bias(layer, _reordered(writer, layer, order))
    (slot,) = writer.put(
        operation.name,
        layer.name,
        inputs,
        layer.output_infos,
        descriptor=(f"{operation.name}Descriptor", fields),
    )
    return (writer.activated(layer, slot, operation.activation),)


def _transpose_convolution(writer: ArmnnWriter, layer: Layer) -> Sequence[Slot]:
    """Write the part cut off the output as padding; weights and bias are fields of the layer."""
    operation = layer.operation
    assert isinstance(operation, ops.TransposeConvolution2d)
    layout, weights = operation.data_layout, constant_of(layer, layer["weights"], "weights")
    kernel = shape_of(layer, weights)[1:-1]
    sizes = spatial(shape_of(layer, layer["input"]), layout)
    wanted = spatial(shape_of(layer, layer.output), layout)
    fields: dict[str, Field] = dict(_axis_fields("stride", operation.stride, "YX"))
    for axis, (before, after) in enumerate(_SIDES):
        reach = ((sizes[axis] or 0) - 1) * operation.stride[axis] + kernel[axis]
        size = wanted[axis] or 0
        first, _ = resolve_padding(
            operation.padding, size, kernel[axis], operation.stride[axis], 1, axis
        )
        if reach - first - size < 0:
            raise layer_error(layer, "its output is larger than its windows reach")
        fields[f"pad{before}"], fields[f"pad{after}"] = first, reach - first - size
    bias = layer.operand("bias")
    fields.update(biasEnabled=bias is not None, dataLayout=LAYOUT_NUMBERS[layout])
    order = _TO_OIHW if layout is DataLayout.NCHW else _SAME_ORDER
    data = np.asarray(weights.data).transpose(order)
    quantization = permuted_quantization(weights.info.quantization, order)
    info = TensorInfo(data.shape, weights.info.data_type, quantization)
    stored: dict[str, Field] = {"weights": stored_table(data, info, weights.name)}
    if bias is not None:
        numbers = np.asarray(constant_of(layer, bias, "biases").data)
        stored["biases"] = stored_table(numbers, bias.info, bias.name)
    (slot,) = writer.put(
        "TransposeConvolution2d",
        layer.name,
        (layer["input"],),
        layer.output_infos,
        stored,
        descriptor=("TransposeConvolution2dDescriptor", fields),
    )
    return (writer.activated(layer, slot, operation.activation),)


def _fully_connected(writer: ArmnnWriter, layer: Layer) -> Sequence[Slot]:
    operation = layer.operation
    assert isinstance(operation, ops.FullyConnected)
    if operation.asymmetric_quantize_inputs:
        raise layer_error(layer, "the .armnn format does not quantise float inputs")
    info = layer.output.info
    units, depth = shape_of(layer, layer["weights"])
    fields: dict[str, Field] = {
        "biasEnabled": layer.operand("bias") is not None,
        "transposeWeightsMatrix": True,
        "constantWeights": layer["weights"].is_constant,
    }
    flat = info
    if operation.keep_num_dims and info.rank != 2:
        vectors = int(np.prod(shape_of(layer, layer["input"]))) // depth
        flat = info.with_shape((vectors, units))
    (slot,) = writer.put(
        "FullyConnected",
        layer.name,
        _with_bias(layer, layer["weights"]),
        (flat,),
        descriptor=("FullyConnectedDescriptor", fields),
    )
    if flat is not info:
        shape: dict[str, Field] = {"targetShape": unsigned(shape_of(layer, layer.output))}
        (slot,) = writer.put(
            "Reshape",
            f"{layer.name}/shape",
            (slot,),
            (info,),
            descriptor=("ReshapeDescriptor", shape),
        )
    return (writer.activated(layer, slot, operation.activation),)


def _batch_mat_mul(writer: ArmnnWriter, layer: Layer) -> Sequence[Slot]:
    operation = layer.operation
    assert isinstance(operation, ops.BatchMatMul)
    fields: dict[str, Field] = {
        "transposeX": operation.transpose_x,
        "transposeY": operation.transpose_y,
    }
    return described(writer, layer, "BatchMatMul", fields)


def _pooling(writer: ArmnnWriter, layer: Layer) -> Sequence[Slot]:
    operation = layer.operation
    assert isinstance(operation, ops.Pooling2d | ops.Pooling3d)
    is_volume = isinstance(operation, ops.Pooling3d)
    dilation = (1,) * len(operation.pool_size)
    if isinstance(operation, ops.Pooling3d) and operation.dilation != dilation:
        raise layer_error(layer, "the .armnn format has no pooling with dilation")
    sizes = ("Depth", "Height", "Width") if is_volume else ("Height", "Width")
    fields: dict[str, Field] = {
        "poolType": operation.algorithm.value,
        **_pad_fields(
            layer,
            operation.padding,
            operation.pool_size,
            operation.stride,
            dilation,
            operation.data_layout,
        ),
        **{f"pool{name}": size for name, size in zip(sizes, operation.pool_size, strict=True)},
        **_axis_fields("stride", operation.stride, "ZYX" if is_volume else "YX"),
        "paddingMethod": _EXCLUDE,
        "dataLayout": LAYOUT_NUMBERS[operation.data_layout],
    }
    (slot,) = described(writer, layer, operation.name, fields)
    return (writer.activated(layer, slot, operation.activation),)


EMITTERS: Mapping[str, Emit] = {
    "BatchMatMul": _batch_mat_mul,
    "Convolution2d": _convolution,
    "Convolution3d": _convolution,
    "DepthwiseConvolution2d": _convolution,
    "FullyConnected": _fully_connected,
    "Pooling2d": _pooling,
    "Pooling3d": _pooling,
    "TransposeConvolution2d": _transpose_convolution,
}
