"""Models whose weights alone are small: 8-bit integers, or float16."""

from __future__ import annotations

import numpy as np

from armpy.graph import Graph, Layer, Rewriter, Value
from armpy.ops.dense import FullyConnected
from armpy.ops.quantizing import Dequantize
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_tools.quantize.planning import is_real
from armpy_tools.quantize.report import Pair
from armpy_tools.quantize.rules import FILTER_AXIS
from armpy_tools.quantize.scales import stored, weight_scales

_FEWEST = 1024
"""Elements of weights that are worth it, as TensorFlow's converter has it."""

_LARGEST_HALF = float(np.finfo(np.float16).max)

_ASKED = "asked to stay float"
_FEW = f"has fewer than {_FEWEST} weights"
_NOT_CONSTANT = "its weights are not float32 constants"


def with_small_weights(graph: Graph, scheme: str, keep_float: tuple[str, ...] = ()) -> Pair:
    """A graph whose weighted layers have small weights and compute with floats.

    Parameters
    ----------
    graph : Graph
        Of floats, constants folded.
    scheme : {"dynamic", "float16"}
        Weights of 8 bits, by which activations are multiplied that are quantised while the network
        runs; or weights of 16 bits, which become float32 first.
    keep_float : tuple of str
        Names of layers that stay as they are.

    Notes
    -----
    Fully connected layers have one scale for all their 8-bit weights, convolutions one per channel:
    what every version of TensorFlow Lite computes with.
    """
    rewriter = Rewriter(graph)
    refused: dict[Layer, str] = {}
    values: dict[Value, Value] = {}
    for layer in graph.layers:
        new_layer = layer
        if layer.operation.name in FILTER_AXIS and not layer.operation.extension:
            reason = _ASKED if layer.name in keep_float else _refusal(layer)
            if reason:
                refused[layer] = reason
                new_layer = rewriter.keep(layer)
            elif scheme == "float16":
                new_layer = _halved(rewriter, layer)
            else:
                new_layer = _with_integers(rewriter, layer)
        else:
            new_layer = rewriter.keep(layer)
        values.update(zip(layer.outputs, new_layer.outputs, strict=True))
    return Pair(graph, rewriter.finish(), values, refused)


def _refusal(layer: Layer) -> str:
    """Why a layer's weights stay as they are; empty if they do not."""
    weights = layer["weights"]
    if weights.data is None or not is_real(weights):
        return _NOT_CONSTANT
    return _FEW if weights.data.size < _FEWEST else ""


def _inputs(rewriter: Rewriter, layer: Layer, weights: Value) -> list[Value | None]:
    """A layer's inputs with other weights."""
    inputs = [None if value is None else rewriter.mapped(value) for value in layer.inputs]
    inputs[1] = weights
    return inputs


def _halved(rewriter: Rewriter, layer: Layer) -> Layer:
    """The layer with weights of float16, which a layer in front of it makes float32."""
    weights = layer["weights"]
    assert weights.data is not None
    clipped = np.clip(weights.data, -_LARGEST_HALF, _LARGEST_HALF).astype(np.float16)
    info = TensorInfo(clipped.shape, DataType.FLOAT16)
    half = rewriter.constant(clipped, info, weights.name)
    real = rewriter.insert(
        Dequantize(),
        [half],
        f"{layer.name}/weights",
        [TensorInfo(clipped.shape, DataType.FLOAT32)],
    )
    return rewriter.replace(layer, layer.operation, _inputs(rewriter, layer, real.output))


def _with_integers(rewriter: Rewriter, layer: Layer) -> Layer:
    """The layer with weights of 8 bits beside its float input."""
    weights, operation = layer["weights"], layer.operation
    assert weights.data is not None
    axis = None if isinstance(operation, FullyConnected) else FILTER_AXIS[operation.name]
    scales = weight_scales(weights.data, axis, None, 1.0)
    integers = stored(weights.data, scales, DataType.QSYMM_S8)
    info = TensorInfo(integers.shape, DataType.QSYMM_S8, scales)
    small = rewriter.constant(integers, info, weights.name)
    if isinstance(operation, FullyConnected):
        operation = operation.with_attributes(asymmetric_quantize_inputs=True)
    return rewriter.replace(layer, operation, _inputs(rewriter, layer, small))
