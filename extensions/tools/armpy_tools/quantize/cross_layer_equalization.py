"""Brings the channels between two weighted layers to like ranges, which changes no result.

References
----------
Nagel et al., "Data-Free Quantization Through Weight Equalization and Bias Correction", 2019,
section 4.1.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from armpy.graph import Graph, Layer, Rewriter, Value
from armpy.graph.rewriter import only_reader
from armpy.ops.activations import FusedActivation
from armpy.tensor import TensorInfo
from armpy.types import DataLayout, DataType
from armpy_tools.quantize.planning import is_real
from armpy_tools.quantize.rules import FILTER_AXIS

_ROUNDS = 20
"""Of going over all pairs: a factor of one moves the next."""

_NEARLY_ONE = 1e-3

_Numbers = npt.NDArray[np.float64]

_KINDS = ("Convolution2d", "DepthwiseConvolution2d", "FullyConnected")


def equalized(graph: Graph) -> Graph:
    """A graph in which channels between layers have like ranges of weights on both sides.

    Notes
    -----
    Of two layers of which only the second reads the first, each channel between them is divided
    by a factor in the first one's weights and bias and multiplied by it in the second one's
    weights. That holds through nothing and through RELU; a clamp at 6 is not such a function.
    """
    pairs = [(layer, second) for layer in graph.layers if (second := _second(graph, layer))]
    if not pairs:
        return graph
    weights = {layer: _elements(layer["weights"]) for pair in pairs for layer in pair}
    biases = {layer: _elements(layer["bias"]) for layer, _ in pairs if layer.operand("bias")}
    for _ in range(_ROUNDS):
        furthest = 0.0
        for first, second in pairs:
            factors = _factors(
                _greatest(weights[first], FILTER_AXIS[first.operation.name]),
                _greatest(weights[second], _input_axis(second)),
            )
            furthest = max(furthest, float(np.abs(np.log(factors)).max(initial=0)))
            weights[first] = _scaled(weights[first], FILTER_AXIS[first.operation.name], 1 / factors)
            if first in biases:
                biases[first] = biases[first] / factors
            weights[second] = _scaled(weights[second], _input_axis(second), factors)
        if furthest < _NEARLY_ONE:
            break
    return _rebuilt(graph, weights, biases)


def _second(graph: Graph, layer: Layer) -> Layer | None:
    """The layer that forms a pair with another one, as the only one that reads it."""
    if not _is_candidate(layer):
        return None
    if layer.operation.attributes()["activation"] not in (
        FusedActivation.NONE,
        FusedActivation.RELU,
    ):
        return None
    reader = only_reader(graph, layer.output)
    if reader is None or reader.inputs[0] is not layer.output or not _is_candidate(reader):
        return None
    channels = layer["weights"].info.known_shape[FILTER_AXIS[layer.operation.name]]
    # Groups, depth multipliers and flattened images pair channels otherwise.
    meets = reader["weights"].info.known_shape[_input_axis(reader)] == channels
    return reader if meets and layer.output.info.shape is not None else None


def _is_candidate(layer: Layer) -> bool:
    """Return whether a layer's weights can be scaled by channel."""
    if layer.operation.name not in _KINDS or layer.operation.extension:
        return False
    if layer.operation.attributes().get("data_layout", DataLayout.NHWC) is not DataLayout.NHWC:
        return False
    values = [layer["weights"], *([layer["bias"]] if layer.operand("bias") else [])]
    return all(value.data is not None and is_real(value) for value in values)


def _input_axis(layer: Layer) -> int:
    """Axis of the weights that runs along the input's channels."""
    return 1 if layer.operation.name == "FullyConnected" else 3


def _elements(value: Value) -> _Numbers:
    """A constant in float64."""
    assert value.data is not None
    return value.data.astype(np.float64)


def _greatest(weights: _Numbers, axis: int) -> _Numbers:
    """Greatest magnitude of each index along an axis."""
    others = tuple(i for i in range(weights.ndim) if i != axis)
    greatest: _Numbers = np.abs(weights).max(axis=others, initial=0)
    return greatest


def _factors(first: _Numbers, second: _Numbers) -> _Numbers:
    """Return the divisors of each channel's first side: both are then the geometric mean."""
    usable = (first > 0) & (second > 0)
    return np.where(usable, np.sqrt(first / np.where(usable, second, 1)), 1.0)


def _scaled(weights: _Numbers, axis: int, factors: _Numbers) -> _Numbers:
    """Weights times a factor for each index along an axis."""
    shape = [-1 if i == axis else 1 for i in range(weights.ndim)]
    return weights * factors.reshape(shape)


def _rebuilt(graph: Graph, weights: dict[Layer, _Numbers], biases: dict[Layer, _Numbers]) -> Graph:
    """The graph with other constants."""
    rewriter = Rewriter(graph)
    for layer in graph.layers:
        if layer not in weights:
            rewriter.keep(layer)
            continue
        inputs = [None if value is None else rewriter.mapped(value) for value in layer.inputs]
        for index, name, numbers in ((1, "weights", weights), (2, "bias", biases)):
            if layer in numbers:
                info = TensorInfo(numbers[layer].shape, DataType.FLOAT32)
                data = numbers[layer].astype(np.float32)
                inputs[index] = rewriter.constant(data, info, layer[name].name)
        rewriter.replace(layer, layer.operation, inputs)
    return rewriter.finish()
