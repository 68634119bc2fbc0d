"""The network that a quantised one stands for: the same layers on real numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from armpy.errors import UnimplementedError
from armpy.graph import Graph, Layer, Value
from armpy.graph.nesting import graphs_of
from armpy.graph.network import Network
from armpy.ops import Activation, ActivationFunction, Dequantize, FullyConnected, Quantize
from armpy.ops.operation import Operation
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_conformance.comparison.real_numbers import real_numbers

_PASSING = (Quantize, Dequantize)
"""Layers that only change how numbers are written."""


def float_twin(graph: Graph) -> Graph:
    """A float32 network of the layers of a quantised one.

    Parameters
    ----------
    graph : Graph
        With known shapes.

    Returns
    -------
    Graph
        Its quantised inputs, outputs and constants are float32 and hold real numbers; weights keep
        the errors that they have by being quantised. The names of inputs and outputs are kept.

    Raises
    ------
    UnimplementedError
        If it keeps state, or runs graphs in layers.
    ArmpyError
        If a layer cannot be one of float32.

    Notes
    -----
    Its outputs are those of the quantised network if nothing was rounded. A value out of a
    tensor's range is clamped to it, as that is what many networks have in the place of activations.
    How far an engine is from these outputs is due to its rounding, and to the scales that were
    chosen, which are the same for all engines.
    """
    if graph.variables:
        raise UnimplementedError("the model keeps state")
    net = Network("float twin")
    twins: dict[Value, Value] = {}
    for value in graph.inputs:
        twins[value] = net.input(value.name, real_info(value.info))
    for layer in graph.layers:
        if graphs_of(layer.operation):
            raise UnimplementedError(f"{layer.where} runs graphs")
        inputs = [_twin_of(net, twins, layer, value) for value in layer.inputs]
        if isinstance(layer.operation, _PASSING) and inputs[0] is not None:
            twins[layer.outputs[0]] = _clamped(net, layer.outputs[0].info, inputs[0])
            continue
        outputs = [real_info(info) for info in layer.output_infos]
        twin_layer = net.add_layer(
            _plain(layer.operation), inputs, name=layer.name, outputs=outputs
        )
        for value, twin in zip(layer.outputs, twin_layer.outputs, strict=True):
            twins[value] = _clamped(net, value.info, twin)
    for name, value in zip(graph.output_names, graph.outputs, strict=True):
        net.output(name, twins[value])
    return net.build()


def real_info(info: TensorInfo) -> TensorInfo:
    """A tensor of the real numbers that a tensor's elements stand for."""
    if info.data_type.is_quantized or info.data_type.is_float:
        return TensorInfo(info.shape, DataType.FLOAT32)
    return TensorInfo(info.shape, info.data_type)


def _clamped(net: Network, info: TensorInfo, twin: Value) -> Value:
    """A value within the real numbers that a tensor of some type and scale can hold."""
    quantization = info.quantization
    if not info.data_type.is_quantized or quantization is None or quantization.axis is not None:
        return twin
    low, high = (
        (stored - quantization.zero_point) * quantization.scale
        for stored in info.data_type.integer_range
    )
    clamp = Activation(ActivationFunction.BOUNDED_RELU, high, low)
    return net.add(clamp, twin)


def _twin_of(
    net: Network, twins: dict[Value, Value], layer: Layer, value: Value | None
) -> Value | None:
    """Return the input of a layer's twin in the place of a value."""
    if value is None or value in twins:
        return None if value is None else twins[value]
    if value.data is None:
        raise UnimplementedError(f"nothing gives '{value.name}'")
    if _is_bias(layer, value):
        reals = real_numbers(value.data, _bias_info(layer, value))
    else:
        reals = real_numbers(value.data, value.info)
    info = real_info(value.info)
    data_type = info.data_type
    if _is_bias(layer, value):
        data_type = DataType.FLOAT32
    twin = net.constant(
        np.asarray(reals).astype(data_type.dtype), name=value.name, data_type=data_type
    )
    if not _is_bias(layer, value):  # a bias's scale is its layer's
        twins[value] = twin
    return twin


def _is_bias(layer: Layer, value: Value) -> bool:
    """Return whether an integer constant is a bias beside quantised weights."""
    weights = layer.operand("weights") if _has(layer, "weights") else None
    is_bias = _has(layer, "bias") and layer.operand("bias") is value
    return (
        is_bias
        and weights is not None
        and weights.info.quantization is not None
        and value.info.data_type in (DataType.SIGNED32, DataType.SIGNED64)
    )


def _has(layer: Layer, name: str) -> bool:
    """Return whether an operation has an operand of a name."""
    return any(operand.name == name for operand in layer.operation.inputs)


def _bias_info(layer: Layer, value: Value) -> TensorInfo:
    """A bias with the scale that its layer's products have."""
    source, weights = layer.inputs[0], layer["weights"]
    quantization = weights.info.quantization
    assert source is not None
    if quantization is None or source.info.quantization is None:
        return value.info
    scales = tuple(source.info.scale * scale for scale in quantization.scales)
    axis = 0 if len(scales) > 1 else None
    scaled = replace(quantization, scales=scales, zero_points=(0,) * len(scales), axis=axis)
    return TensorInfo(value.info.shape, DataType.SIGNED32, scaled)


def _plain(operation: Operation) -> Operation:
    """An operation without what only quantised ones know."""
    if isinstance(operation, FullyConnected) and operation.asymmetric_quantize_inputs:
        return replace(operation, asymmetric_quantize_inputs=False)
    return operation
