"""One function per operation: adds the ONNX nodes that compute a layer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import numpy as np

from armpy.graph import Layer, Value
from armpy.ops import (
    Activation,
    ActivationFunction,
    BinaryOperation,
    Concat,
    Convolution2d,
    DepthwiseConvolution2d,
    ElementwiseBinary,
    ExpandDims,
    FullyConnected,
    FusedActivation,
    Pad,
    Pooling2d,
    PoolingAlgorithm,
    Reduce,
    Reshape,
    Softmax,
    Squeeze,
    Transpose,
)
from armpy.ops.operation import Array, Operation
from armpy.ops.shapes import normalize_axis, resolve_padding
from armpy.types import DataLayout
from armpy_onnxruntime.writer import TO_CHANNEL_FIRST, ModelWriter

Converter = Callable[[ModelWriter, Layer], None]


def _value(layer: Layer, index: int = 0) -> Value:
    return cast(Value, layer.inputs[index])  # the operation says that it cannot be left out


def _optional(layer: Layer, index: int) -> Value | None:
    """An input that may be left out."""
    return layer.inputs[index] if index < len(layer.inputs) else None


def _elements(value: Value) -> Array:
    """The elements of a constant; layer support asks for one."""
    return cast(Array, value.data)


def _write(
    writer: ModelWriter,
    layer: Layer,
    name: str,
    *,
    channel_first: bool = False,
    activation: FusedActivation = FusedActivation.NONE,
) -> None:
    """Say which tensor the layer's only output is."""
    writer.write(layer.outputs[0], name, channel_first=channel_first, activation=activation)


def _read(writer: ModelWriter, value: Value) -> tuple[str, bool]:
    """A tensor in the order that it has now, and whether that is channels first."""
    channel_first = value.data is None and writer.is_channel_first(value)
    return (writer.channel_first if channel_first else writer.native)(value), channel_first


def _axis(axis: int, channel_first: bool) -> int:
    """Where an axis of armpy's order is."""
    return TO_CHANNEL_FIRST.index(axis) if channel_first else axis


def _image(writer: ModelWriter, layer: Layer, layout: DataLayout) -> tuple[str, bool]:
    """The input with its channels first, and whether they are elsewhere in armpy's order."""
    moves = layout is DataLayout.NHWC
    return (writer.channel_first if moves else writer.native)(_value(layer)), moves


def _pads(
    operation: Convolution2d | DepthwiseConvolution2d | Pooling2d,
    value: Value,
    kernel: Sequence[int],
    dilation: Sequence[int],
) -> list[int]:
    """ONNX's order: top, left, bottom, right."""
    sizes = [value.info.known_shape[axis] for axis in operation.data_layout.spatial_axes]
    pairs = [
        resolve_padding(operation.padding, sizes[i], kernel[i], operation.stride[i], dilation[i], i)
        for i in range(2)
    ]
    return [before for before, _ in pairs] + [after for _, after in pairs]


def _convolve(writer: ModelWriter, layer: Layer, weights: Array, groups: int) -> None:
    """Add a Conv; `weights` are (o, i / groups, kh, kw)."""
    operation = cast(Convolution2d | DepthwiseConvolution2d, layer.operation)
    image, moves = _image(writer, layer, operation.data_layout)
    inputs = [image, writer.constant(weights)]
    if (bias := _optional(layer, 2)) is not None:
        inputs.append(writer.native(bias))
    name = writer.add(
        "Conv",
        inputs,
        group=groups,
        strides=operation.stride,
        dilations=operation.dilation,
        pads=_pads(operation, _value(layer), weights.shape[2:], operation.dilation),
    )
    _write(writer, layer, name, channel_first=moves, activation=operation.activation)


def convert_convolution2d(writer: ModelWriter, layer: Layer) -> None:
    """Weights (o, kh, kw, i) as (o, i, kh, kw)."""
    operation = cast(Convolution2d, layer.operation)
    channels = _value(layer).info.known_shape[operation.data_layout.channel_axis]
    weights = _elements(_value(layer, 1)).transpose(0, 3, 1, 2)
    _convolve(writer, layer, weights, channels // weights.shape[1])


def convert_depthwise_convolution2d(writer: ModelWriter, layer: Layer) -> None:
    """Weights (1, kh, kw, o) as (o, 1, kh, kw), one group per channel."""
    operation = cast(DepthwiseConvolution2d, layer.operation)
    channels = _value(layer).info.known_shape[operation.data_layout.channel_axis]
    _convolve(writer, layer, _elements(_value(layer, 1)).transpose(3, 0, 1, 2), channels)


def convert_pooling2d(writer: ModelWriter, layer: Layer) -> None:
    """MaxPool or AveragePool; ONNX leaves padding out of both as well."""
    operation = cast(Pooling2d, layer.operation)
    image, moves = _image(writer, layer, operation.data_layout)
    is_max = operation.algorithm is PoolingAlgorithm.MAX
    name = writer.add(
        "MaxPool" if is_max else "AveragePool",
        [image],
        kernel_shape=operation.pool_size,
        strides=operation.stride,
        pads=_pads(operation, _value(layer), operation.pool_size, (1, 1)),
    )
    _write(writer, layer, name, channel_first=moves, activation=operation.activation)


def convert_fully_connected(writer: ModelWriter, layer: Layer) -> None:
    """Gemm on vectors, with a Reshape where they are not a matrix."""
    operation = cast(FullyConnected, layer.operation)
    source, weights = _value(layer), _value(layer, 1)
    depth = weights.info.known_shape[1]
    name = writer.native(source)
    if source.info.known_shape != (source.info.num_elements // depth, depth):
        name = _reshape(writer, name, (-1, depth))
    inputs = [name, writer.native(weights)]
    if (bias := _optional(layer, 2)) is not None:
        inputs.append(writer.native(bias))
    name = writer.add("Gemm", inputs, transB=1)
    shape = layer.outputs[0].info.known_shape
    if len(shape) != 2:
        name = _reshape(writer, name, shape)
    _write(writer, layer, name, activation=operation.activation)


_BINARY = {
    BinaryOperation.ADD: "Add",
    BinaryOperation.SUB: "Sub",
    BinaryOperation.MUL: "Mul",
    BinaryOperation.DIV: "Div",
    BinaryOperation.FLOOR_DIV: "Div",
    BinaryOperation.MAXIMUM: "Max",
    BinaryOperation.MINIMUM: "Min",
    BinaryOperation.POWER: "Pow",
    BinaryOperation.SQUARED_DIFFERENCE: "Sub",
}


def convert_elementwise_binary(writer: ModelWriter, layer: Layer) -> None:
    """Channels first if an image is so already; all other operands follow."""
    operation = cast(ElementwiseBinary, layer.operation)
    values = [_value(layer, 0), _value(layer, 1)]
    # An operand of a lower rank cannot follow, unless it is constant.
    can_move = all(value.info.rank == 4 or value.data is not None for value in values)
    moves = can_move and any(v.data is None and writer.is_channel_first(v) for v in values)
    names = [(writer.channel_first if moves else writer.native)(value) for value in values]
    name = writer.add(_BINARY[operation.operation], names)
    if operation.operation is BinaryOperation.SQUARED_DIFFERENCE:
        name = writer.add("Mul", [name, name])
    elif operation.operation is BinaryOperation.FLOOR_DIV:
        name = writer.add("Floor", [name])
    _write(writer, layer, name, channel_first=moves, activation=operation.activation)


_UNARY = {
    ActivationFunction.SIGMOID: "Sigmoid",
    ActivationFunction.RELU: "Relu",
    ActivationFunction.SOFT_RELU: "Softplus",
    ActivationFunction.ABS: "Abs",
    ActivationFunction.SQRT: "Sqrt",
    ActivationFunction.HARD_SWISH: "HardSwish",
}


def convert_activation(writer: ModelWriter, layer: Layer) -> None:
    """A node per function, in the input's order of axes."""
    operation = cast(Activation, layer.operation)
    name, channel_first = _read(writer, _value(layer))
    _write(writer, layer, _activate(writer, name, operation), channel_first=channel_first)


def _activate(writer: ModelWriter, x: str, operation: Activation) -> str:
    """The nodes of an activation function."""
    function, a, b = operation.function, operation.a, operation.b
    if function in _UNARY:
        return writer.add(_UNARY[function], [x])
    if function is ActivationFunction.BOUNDED_RELU:
        return writer.add("Clip", [x, writer.scalar(b), writer.scalar(a)])
    if function is ActivationFunction.LEAKY_RELU:
        return writer.add("LeakyRelu", [x], alpha=a)
    if function is ActivationFunction.ELU:
        return writer.add("Elu", [x], alpha=a)
    if function is ActivationFunction.GELU:
        return writer.add("Gelu", [x], approximate="tanh" if operation.approximate else "none")
    if function is ActivationFunction.SQUARE:
        return writer.add("Mul", [x, x])
    if function is ActivationFunction.LINEAR:
        return _scaled(writer, _scaled(writer, x, "Mul", a, 1.0), "Add", b, 0.0)
    inner = writer.add("Tanh", [_scaled(writer, x, "Mul", b, 1.0)])
    return _scaled(writer, inner, "Mul", a, 1.0)


def _scaled(writer: ModelWriter, x: str, op_type: str, number: float, neutral: float) -> str:
    """Combine a tensor with a number, unless that changes nothing."""
    return x if number == neutral else writer.add(op_type, [x, writer.scalar(number)])


def convert_softmax(writer: ModelWriter, layer: Layer) -> None:
    """Softmax along the axis, wherever that is now."""
    operation = cast(Softmax, layer.operation)
    name, channel_first = _read(writer, _value(layer))
    axis = normalize_axis(operation.axis, _value(layer).info.rank or 0)
    name = _scaled(writer, name, "Mul", operation.beta, 1.0)
    name = writer.add("Softmax", [name], axis=_axis(axis, channel_first))
    _write(writer, layer, name, channel_first=channel_first)


def convert_reduce(writer: ModelWriter, layer: Layer) -> None:
    """ReduceMean; what keeps no axes between batch and channels is in armpy's order again."""
    operation = cast(Reduce, layer.operation)
    rank = _value(layer).info.rank or 0
    axes = operation.resolved_axes(rank)
    drops_image = operation.keep_dims or axes == (1, 2) or len(axes) >= rank - 1
    if drops_image:
        name, channel_first = _read(writer, _value(layer))
    else:
        name, channel_first = writer.native(_value(layer)), False
    moved = np.array([_axis(axis, channel_first) for axis in axes], np.int64)
    name = writer.add(
        "ReduceMean",
        [name, writer.constant(moved)],
        keepdims=int(operation.keep_dims),
        noop_with_empty_axes=1,
    )
    _write(writer, layer, name, channel_first=channel_first and operation.keep_dims)


def _reshape(writer: ModelWriter, name: str, shape: Sequence[int]) -> str:
    """The same elements in another shape."""
    return writer.add("Reshape", [name, writer.constant(np.array(shape, np.int64))])


def convert_reshape(writer: ModelWriter, layer: Layer) -> None:
    """Reshape to the output's shape, which is known."""
    shape = layer.outputs[0].info.known_shape
    _write(writer, layer, _reshape(writer, writer.native(_value(layer)), shape))


def convert_transpose(writer: ModelWriter, layer: Layer) -> None:
    """Transpose from armpy's order."""
    operation = cast(Transpose, layer.operation)
    name = writer.native(_value(layer))
    perm = operation.perm or tuple(reversed(range(_value(layer).info.rank or 0)))
    _write(writer, layer, writer.add("Transpose", [name], perm=perm))


def convert_pad(writer: ModelWriter, layer: Layer) -> None:
    """Pad in the input's order of axes."""
    operation = cast(Pad, layer.operation)
    name, channel_first = _read(writer, _value(layer))
    pad_value = _optional(layer, 1)
    number = operation.pad_value if pad_value is None else float(_elements(pad_value).item())
    pairs = list(operation.pad_list or ())
    if channel_first:
        pairs = [pairs[axis] for axis in TO_CHANNEL_FIRST]
    pads = np.array([p[0] for p in pairs] + [p[1] for p in pairs], np.int64)
    name = writer.add("Pad", [name, writer.constant(pads), writer.scalar(number)])
    _write(writer, layer, name, channel_first=channel_first)


def convert_concat(writer: ModelWriter, layer: Layer) -> None:
    """Concat with the channels first if all inputs are so."""
    operation = cast(Concat, layer.operation)
    values = [_value(layer, index) for index in range(len(layer.inputs))]
    channel_first = all(map(writer.is_channel_first, values))
    names = [(writer.channel_first if channel_first else writer.native)(v) for v in values]
    axis = _axis(normalize_axis(operation.axis, values[0].info.rank or 0), channel_first)
    _write(writer, layer, writer.add("Concat", names, axis=axis), channel_first=channel_first)


CONVERTERS: dict[type[Operation], Converter] = {
    Activation: convert_activation,
    Concat: convert_concat,
    Convolution2d: convert_convolution2d,
    DepthwiseConvolution2d: convert_depthwise_convolution2d,
    ElementwiseBinary: convert_elementwise_binary,
    ExpandDims: convert_reshape,
    FullyConnected: convert_fully_connected,
    Pad: convert_pad,
    Pooling2d: convert_pooling2d,
    Reduce: convert_reduce,
    Reshape: convert_reshape,
    Softmax: convert_softmax,
    Squeeze: convert_reshape,
    Transpose: convert_transpose,
}
