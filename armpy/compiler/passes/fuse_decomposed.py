"""Pass that finds layers which files have written out as several smaller ones."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from armpy.compiler.passes.batch_norm import FILTER_AXIS, per_channel
from armpy.compiler.passes.context import PassContext
from armpy.compiler.passes.matching import (
    FusedLayer,
    are_read_inside,
    beside,
    binary,
    fuse,
    is_near,
    number_of,
    unary,
)
from armpy.graph import Graph, Layer, Value
from armpy.graph.rewriter import only_reader
from armpy.ops.activation_layers import Activation, ActivationFunction
from armpy.ops.activations import FusedActivation
from armpy.ops.elementwise import BinaryOperation, ElementwiseBinary, UnaryOperation
from armpy.ops.normalization import LayerNormalization
from armpy.ops.reduction import Reduce, ReduceOperation
from armpy.types import DataType


def join_written_out(graph: Graph, context: PassContext) -> Graph:
    """Make one layer of those that are one written out: biases, Gelu, layer normalisation.

    Of float32 only, where nothing else reads what lies between and the layer stays on its
    backend. The same up to rounding: a joined layer rounds less often.

    References
    ----------
    Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016; Ba et al., "Layer Normalization",
    2016.
    """
    claimed: set[Layer] = set()
    joined: dict[Layer, FusedLayer] = {}
    # Patterns are known by their last layer: from the end, long ones come before their own parts.
    for layer in reversed(graph.layers):
        if layer in claimed:
            continue
        for find in _FINDERS:
            fused = find(graph, layer)
            if fused is not None and _can_join(graph, context, fused, claimed):
                joined[layer] = fused
                claimed.update(fused.layers)
                break
    return fuse(graph, joined)


def _can_join(graph: Graph, context: PassContext, fused: FusedLayer, claimed: set[Layer]) -> bool:
    """Return whether nothing else reads what lies between, and the backend takes the layer."""
    last = fused.layers[0]
    if last.output.info.data_type is not DataType.FLOAT32 or not claimed.isdisjoint(fused.layers):
        return False
    # Inner layers are removed, so no other layer may read their outputs.
    is_closed = are_read_inside(graph, fused.layers, last)
    return is_closed and context.stays(last, fused.operation, fused.inputs)


def _find_bias(graph: Graph, layer: Layer) -> FusedLayer | None:
    """A constant per channel that is added to a layer without bias."""
    pair = binary(graph, layer.outputs[0], BinaryOperation.ADD) if layer.outputs else None
    sides = beside(pair[1:]) if pair else None
    above = graph.producers.get(sides[0]) if sides else None
    if sides is None or above is None or type(above.operation) not in FILTER_AXIS:
        return None
    attributes = above.operation.attributes()
    # A clamp precedes the sum, and would follow it with a bias.
    is_plain = attributes["activation"] is FusedActivation.NONE and len(above.outputs) == 1
    if not is_plain or above.operand("bias") is not None or len(above.inputs) > 3:
        return None
    # A term that broadcasts the output is not a bias.
    if above.output.info.shape != layer.output.info.shape:
        return None
    channels = above["weights"].info.known_shape[FILTER_AXIS[type(above.operation)]]
    data = sides[1].data
    numbers = None if data is None else per_channel(data.astype(np.float64), above, channels)
    if numbers is None or only_reader(graph, above.output) is not layer:
        return None
    elements = np.ascontiguousarray(numbers, np.float32)
    info = sides[1].info.with_shape(elements.shape)
    bias = Value(sides[1].id, info, sides[1].name, elements)
    return FusedLayer(above.operation, (above["input"], above["weights"], bias), (layer, above))


def _find_gelu(graph: Graph, layer: Layer) -> FusedLayer | None:
    """``x / 2 (1 + erf(x / sqrt(2)))``, its factors in any order."""
    factors, layers = _factors(graph, layer)
    constants = [number for value in factors if (number := number_of(value)) is not None]
    others = [value for value in factors if number_of(value) is None]
    # Files divide the factor one half as they like, so all constants count together.
    if len(others) != 2 or not is_near(math.prod(constants), 0.5):
        return None
    for x, probability in (others, others[::-1]):
        total = binary(graph, probability, BinaryOperation.ADD)
        sides = beside(total[1:]) if total else None
        error = unary(graph, sides[0], UnaryOperation.ERF) if sides else None
        if total is None or sides is None or error is None or not is_near(number_of(sides[1]), 1):
            continue
        scaled = binary(graph, error["input"], BinaryOperation.MUL, BinaryOperation.DIV)
        inner = beside(scaled[1:]) if scaled else None
        if scaled is None or inner is None or inner[0] is not x:
            continue
        is_product = scaled[0].operation == ElementwiseBinary(BinaryOperation.MUL)
        if is_near(number_of(inner[1]), math.sqrt(0.5) if is_product else math.sqrt(2)):
            gelu = Activation(ActivationFunction.GELU)
            return FusedLayer(gelu, (x,), (*layers, total[0], error, scaled[0]))
    return None


def _factors(graph: Graph, layer: Layer) -> tuple[list[Value], tuple[Layer, ...]]:
    """Return the factors of a product, and the layers that multiply it, the last one first."""
    product = binary(graph, layer.outputs[0], BinaryOperation.MUL) if layer.outputs else None
    if product is None:
        return [], ()
    factors: list[Value] = []
    layers: tuple[Layer, ...] = (layer,)
    for value in product[1:]:
        inner = binary(graph, value, BinaryOperation.MUL)
        if inner is not None and only_reader(graph, value) is layer:
            factors += inner[1:]
            layers = (*layers, inner[0])
        else:
            factors.append(value)
    return factors, layers


def _find_layer_norm(graph: Graph, layer: Layer) -> FusedLayer | None:
    """``(x - mean) / sqrt(mean((x - mean)^2) + eps) gamma + beta``; see also `_normalised`."""
    total = binary(graph, layer.outputs[0], BinaryOperation.ADD) if layer.outputs else None
    beta = beside(total[1:]) if total else None
    scaled = binary(graph, beta[0], BinaryOperation.MUL) if beta else None
    gamma = beside(scaled[1:]) if scaled else None
    inner = graph.producers.get(gamma[0]) if gamma else None
    if total is None or beta is None or scaled is None or gamma is None or inner is None:
        return None
    norm = _normalised(graph, inner)
    if norm is None or layer.output.info.shape != inner.output.info.shape:
        return None
    layers = (total[0], scaled[0], *norm.layers)
    return FusedLayer(norm.operation, (*norm.inputs, gamma[1], beta[1]), layers)


def _normalised(graph: Graph, layer: Layer) -> FusedLayer | None:
    """Layer normalisation without factors and terms."""
    ratio = binary(graph, layer.output, BinaryOperation.DIV) if layer.outputs else None
    if ratio is None:
        return None
    _, centred, deviation = ratio
    root = unary(graph, deviation, UnaryOperation.SQRT)
    shifted = binary(graph, root["input"], BinaryOperation.ADD) if root else None
    sides = beside(shifted[1:]) if shifted else None
    variance = _mean(graph, sides[0]) if sides else None
    difference = binary(graph, centred, BinaryOperation.SUB)
    mean = _mean(graph, difference[2]) if difference else None
    if root is None or shifted is None or sides is None or variance is None:
        return None
    if difference is None or mean is None or mean["input"] is not difference[1]:
        return None
    square, eps = _squared(graph, variance["input"], centred), number_of(sides[1])
    rank = len(centred.info.known_shape)
    axes = mean.operation.resolved_axes(rank)  # type: ignore[attr-defined]  # it is a Reduce
    alike = variance.operation.resolved_axes(rank) == axes  # type: ignore[attr-defined]  # as well
    if square is None or eps is None or eps < 0 or not alike:
        return None
    layers = (layer, root, shifted[0], variance, square, difference[0], mean)
    return FusedLayer(LayerNormalization(tuple(axes), eps), (difference[1],), layers)


def _mean(graph: Graph, value: Value) -> Layer | None:
    """The layer that takes a mean along axes and keeps them; None if it is another one."""
    layer = graph.producers.get(value)
    if layer is None or not isinstance(layer.operation, Reduce):
        return None
    operation = layer.operation
    return layer if operation.operation is ReduceOperation.MEAN and operation.keep_dims else None


def _squared(graph: Graph, value: Value, root: Value) -> Layer | None:
    """The layer that squares a value, in one of the ways in which that is written."""
    layer = unary(graph, value, UnaryOperation.SQUARE)
    if layer is not None:
        return layer if layer["input"] is root else None
    pair = binary(graph, value, BinaryOperation.POWER, BinaryOperation.MUL)
    if pair is None or pair[1] is not root:
        return None
    is_power = pair[0].operation == ElementwiseBinary(BinaryOperation.POWER)
    is_square = is_near(number_of(pair[2]), 2) if is_power else pair[2] is root
    return pair[0] if is_square else None


# The longest first: the sum that ends a normalisation could pass for a bias.
_FINDERS: tuple[Callable[[Graph, Layer], FusedLayer | None], ...] = (
    _find_layer_norm,
    _find_gelu,
    _find_bias,
)
