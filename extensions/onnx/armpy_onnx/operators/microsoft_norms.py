"""Activations, normalisations and embeddings of transformers that ONNX Runtime's tools write."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.graph import Value
from armpy.ops.activation_layers import Activation, ActivationFunction
from armpy.ops.elementwise import BinaryOperation
from armpy.ops.normalization import LayerNormalization, RmsNormalization
from armpy.ops.reduction import ReduceOperation
from armpy.types import DataType
from armpy_onnx.blocks import binary, counted, filled, gathered, reduced, reshaped
from armpy_onnx.node import Node, NodeData, Operator, OperatorTable


def _gelu(approximate: bool) -> Operator:
    """Gaussian error linear units of a value and a bias, if there is one."""

    def convert(node: Node) -> Value:
        value = node.value(0)
        if node.has(1):
            value = binary(node, BinaryOperation.ADD, value, node.value(1))
        gelu = Activation(ActivationFunction.GELU, approximate=approximate)
        return node.layer(gelu, value)

    return Operator(convert, rounds_once=True)


def _skip_normalization(simplified: bool) -> Operator:
    """The sum of a value, what went around it, and a bias; normalised."""

    def convert(node: Node) -> Sequence[Value]:
        _refuse_statistics(node)
        total = binary(node, BinaryOperation.ADD, node.value(0), node.value(1))
        if node.shape(0) != total.info.known_shape:
            raise node.error(
                "input 1 does not have the shape of input 0",
                expected=str(node.shape(0)),
                actual=node.shape(1),
            )
        bias = node.input(3 if simplified else 4)
        if bias is not None:
            total = binary(node, BinaryOperation.ADD, total, bias)
        eps = node.real("epsilon", 1e-5 if simplified else 1e-12)
        operation: LayerNormalization | RmsNormalization
        if simplified:
            operation = RmsNormalization((-1,), eps)
            normalized = node.layer(operation, total, node.value(2))
        else:
            operation = LayerNormalization((-1,), eps)
            normalized = node.layer(operation, total, node.value(2), node.input(3))
        return normalized, normalized, normalized, total

    return Operator(convert, rounds_once=True)


def _refuse_statistics(node: Node) -> None:
    """Refuse nodes whose mean and deviation are used: only training does."""
    if any(node.data.used_outputs[1:3]):
        raise node.error("the outputs of the mean and the deviation are for training only")


def _embed_layer_normalization(node: Node) -> Sequence[Value]:
    shape = node.shape(0)
    if len(shape) != 2:
        raise node.error("the input has the wrong rank", expected="2", actual=shape)
    words = gathered(node, node.value(2), node.value(0))
    segments = None
    if node.has(1) and node.has(4):
        segments = gathered(node, node.value(4), node.value(1))
    if node.has(8):
        places = node.value(8)
    else:
        places = reshaped(node, counted(node, shape[1]), (1, shape[1]))
    positions = gathered(node, node.value(3), places)
    normalized, total = embedded(node, words, positions, segments, node.value(5), node.value(6))
    return normalized, mask_lengths(node, shape), total


def embedded(
    node: Node, words: Value, positions: Value, segments: Value | None, gamma: Value, beta: Value
) -> tuple[Value, Value]:
    """The normalised sum of embeddings, and the sum."""
    total = binary(node, BinaryOperation.ADD, words, positions)
    if segments is not None:
        total = binary(node, BinaryOperation.ADD, total, segments)
    operation = LayerNormalization((-1,), node.real("epsilon", 1e-12))
    return node.layer(operation, total, gamma, beta), total


def mask_lengths(node: Node, shape: Sequence[int]) -> Value:
    """Return how many elements of each row of the mask are set."""
    mask = node.input(7)
    if mask is None:
        return node.cast(filled(node, node.value(0), shape[:1], 0), DataType.SIGNED32)
    counts = reduced(node, ReduceOperation.SUM, mask, (1,), keep_dims=False)
    return node.cast(reshaped(node, counts, shape[:1]), DataType.SIGNED32)


def _embedding_type(data: NodeData, types: Sequence[DataType | None]) -> DataType:
    return types[2] or DataType.FLOAT32


def _simplified(node: Node) -> Value:
    """Root mean square normalisation under ONNX Runtime's name."""
    _refuse_statistics_of(node)
    axis = node.axis(node.integer("axis", -1), node.rank(0))
    axes = tuple(range(axis, node.rank(0)))
    return node.layer(
        RmsNormalization(axes, node.real("epsilon", 1e-5)), node.value(0), node.value(1)
    )


def _refuse_statistics_of(node: Node) -> None:
    """Refuse a deviation, which only training uses."""
    if node.data.num_outputs > 1:
        raise node.error("the output of the deviation is for training only")


OPERATORS: OperatorTable = {
    "SimplifiedLayerNormalization": Operator(_simplified),
    "com.microsoft.SimplifiedLayerNormalization": Operator(_simplified),
    "com.microsoft.BiasGelu": _gelu(approximate=False),
    "com.microsoft.FastGelu": _gelu(approximate=True),
    "com.microsoft.SkipLayerNormalization": _skip_normalization(simplified=False),
    "com.microsoft.SkipSimplifiedLayerNormalization": _skip_normalization(simplified=True),
    "com.microsoft.EmbedLayerNormalization": Operator(
        _embed_layer_normalization,
        types=(_embedding_type, DataType.SIGNED32, _embedding_type),
        rounds_once=True,
    ),
}
