"""Operators that normalise."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from armpy.graph import Value
from armpy.ops.activation_layers import L2Normalization
from armpy.ops.elementwise import BinaryOperation, UnaryOperation
from armpy.ops.movement import Pad
from armpy.ops.normalization import (
    InstanceNormalization,
    LayerNormalization,
    Normalization,
    RmsNormalization,
)
from armpy.ops.pooling import Pooling2d, PoolingAlgorithm
from armpy.ops.reduction import ReduceOperation
from armpy.types import DataType
from armpy_onnx.blocks import binary, reduced, reshaped, scaled, transposed, unary
from armpy_onnx.node import Node, Operator, OperatorTable


def _add(node: Node, lhs: Value, rhs: Value) -> Value:
    return binary(node, BinaryOperation.ADD, lhs, rhs)


def _sub(node: Node, lhs: Value, rhs: Value) -> Value:
    return binary(node, BinaryOperation.SUB, lhs, rhs)


def _mul(node: Node, lhs: Value, rhs: Value) -> Value:
    return binary(node, BinaryOperation.MUL, lhs, rhs)


def _parameter(node: Node, value: Value, image: Value) -> Value:
    """A vector with one element per channel in the shape that broadcasts to channels first.

    Without ``spatial``, an array with the shape of a sample. A vector has one channel.
    """
    _, channels, *sizes = (*image.info.known_shape, 1)[: max(node.rank(0), 2)]
    is_spatial = node.flag("spatial", default=True) or node.rank(0) == 1
    expected = (channels,) if is_spatial else (channels, *sizes)
    if value.info.known_shape != expected:
        raise node.error(
            "there is not one element per channel"
            if is_spatial
            else "a parameter does not have the shape of a sample",
            expected=str(expected),
            actual=value.info.known_shape,
        )
    shape = (channels, *(1,) * len(sizes)) if is_spatial else expected
    return node.cast(reshaped(node, value, shape), image.info.data_type)


def _batch_normalization(node: Node) -> Value | Sequence[Value]:
    image = node.value(0)
    if not node.rank(0):
        raise node.error("the input is a single number", expected="rank 1 or more")
    if node.flag("training_mode") or (node.version < 14 and node.data.num_outputs > 1):
        if not node.flag("spatial", default=True):
            raise node.error("statistics of a batch are taken per channel alone (spatial = 1)")
        return _training(node, image)
    mean, variance = (_parameter(node, node.value(i), image) for i in (3, 4))
    return _normalized(node, image, mean, variance)


def _normalized(node: Node, image: Value, mean: Value, variance: Value) -> Value:
    """Scaled and moved as inputs 1 and 2 say; one factor and one addend per channel."""
    gamma, beta = (_parameter(node, node.value(i), image) for i in (1, 2))
    shifted = binary(node, BinaryOperation.ADD, variance, node.real("epsilon", 1e-5))
    root = unary(node, UnaryOperation.SQRT, shifted)
    factor = binary(node, BinaryOperation.DIV, gamma, root)
    addend = _sub(node, beta, _mul(node, mean, factor))
    return _add(node, _mul(node, image, factor), addend)


def _training(node: Node, image: Value) -> Sequence[Value]:
    """Normalise with the statistics of the input; running ones are further outputs.

    Before operator set 14, the input's mean and the inverse of its deviation are the last two.
    """
    axes = (0, *range(2, node.rank(0)))
    mean = _mean(node, image, axes)
    variance = _mean(node, _square(node, _sub(node, image, mean)), axes)
    share = node.real("momentum", 0.9)
    outputs = [_normalized(node, image, mean, variance)]
    for index, current in ((3, mean), (4, variance)):
        old = node.value(index)
        flat = node.cast(reshaped(node, current, old.info.known_shape), old.info.data_type)
        share_kept = scaled(node, old, share)
        outputs.append(_add(node, share_kept, scaled(node, flat, 1 - share)))
    if node.version < 14:
        shifted = binary(node, BinaryOperation.ADD, variance, node.real("epsilon", 1e-5))
        for saved in (mean, unary(node, UnaryOperation.RSQRT, shifted)):
            outputs.append(reshaped(node, saved, node.shape(3)))
    return outputs[: node.data.num_outputs]


# Over rows, images and groups


def _layer_normalization(node: Node) -> Value | Sequence[Value]:
    value = node.value(0)
    axes = _last_axes(node)
    eps = node.real("epsilon", 1e-5)
    gamma, beta = (_alike(node, node.input(i), value) for i in (1, 2))
    normalized = node.layer(LayerNormalization(axes, eps), value, gamma, beta)
    if node.data.num_outputs == 1:
        return normalized
    real = node.cast(value, DataType.FLOAT32)
    mean = _mean(node, real, axes)
    variance = _mean(node, _square(node, _sub(node, real, mean)), axes)
    shifted = binary(node, BinaryOperation.ADD, variance, eps)
    deviation = unary(node, UnaryOperation.RSQRT, shifted)
    return (normalized, mean, deviation)[: node.data.num_outputs]


def _rms_normalization(node: Node) -> Value:
    value = node.value(0)
    gamma = _alike(node, node.input(1), value)
    axes, eps = _last_axes(node), node.real("epsilon", 1e-5)
    return node.layer(RmsNormalization(axes, eps), value, gamma)


def _last_axes(node: Node) -> tuple[int, ...]:
    """All axes from the attribute ``axis`` on."""
    rank = node.rank(0)
    if not rank:
        raise node.error("a single number cannot be normalised")
    return tuple(range(node.axis(node.integer("axis", -1), rank), rank))


def _alike(node: Node, value: Value | None, other: Value) -> Value | None:
    """An optional value with its elements in the type of another."""
    return None if value is None else node.cast(value, other.info.data_type)


def _mean(node: Node, value: Value, axes: Sequence[int]) -> Value:
    """Means along axes, which stay with size 1."""
    return reduced(node, ReduceOperation.MEAN, value, axes, keep_dims=True)


def _square(node: Node, value: Value) -> Value:
    return unary(node, UnaryOperation.SQUARE, value)


def _instance_normalization(node: Node) -> Value:
    image = node.value(0)
    sizes = _sizes_after_channels(node)
    rows = _channels_at_end(node, image, (math.prod(sizes), 1))
    normalized = node.layer(InstanceNormalization(eps=node.real("epsilon", 1e-5)), rows)
    return _channels_back(node, _adjusted(node, normalized), sizes)


def _group_normalization(node: Node) -> Value:
    image = node.value(0)
    sizes, channels = _sizes_after_channels(node), node.shape(0)[1]
    groups = node.integer("num_groups")
    if groups < 1 or channels % groups:
        raise node.error(
            "the channels do not split into the groups", expected=f"of {channels}", actual=groups
        )
    rows = _channels_at_end(node, image, (math.prod(sizes),))
    shape = rows.info.known_shape
    split = reshaped(node, rows, (*shape[:2], groups, channels // groups))
    operation = LayerNormalization((1, 3), node.real("epsilon", 1e-5))
    normalized = _adjusted(node, reshaped(node, node.layer(operation, split), shape))
    return _channels_back(node, normalized, sizes)


def _adjusted(node: Node, value: Value) -> Value:
    """A value with its channels at the end, times input 1, plus input 2."""
    for combine, index in ((_mul, 1), (_add, 2)):
        vector = node.value(index)
        _check_channels(node, vector, node.shape(0)[1])
        value = combine(node, value, node.cast(vector, value.info.data_type))
    return value


def _sizes_after_channels(node: Node) -> tuple[int, ...]:
    """Sizes of the axes after batch and channels."""
    if node.rank(0) < 2:
        raise node.error("the input has the wrong rank", expected="2 or more", actual=node.shape(0))
    return node.shape(0)[2:]


def _check_channels(node: Node, vector: Value, count: int) -> None:
    """Check that a vector has one element per channel."""
    if vector.info.known_shape != (count,):
        raise node.error(
            "a factor or addend has the wrong shape",
            expected=f"({count})",
            actual=vector.info.known_shape,
        )


def _channels_at_end(node: Node, image: Value, sizes: Sequence[int]) -> Value:
    """An image with its channels at the end, and other axes before them."""
    batch, channels, *inner = image.info.known_shape
    if inner:
        image = transposed(node, image, (0, *range(2, len(inner) + 2), 1))
    return reshaped(node, image, (batch, *sizes, channels))


def _channels_back(node: Node, value: Value, sizes: Sequence[int]) -> Value:
    """The inverse of `_channels_at_end`."""
    batch, *_, channels = value.info.known_shape
    image = reshaped(node, value, (batch, *sizes, channels))
    rank = len(sizes) + 2
    return transposed(node, image, (0, rank - 1, *range(1, rank - 1))) if sizes else image


def _mean_variance_normalization(node: Node) -> Value:
    rank = node.rank(0)
    if node.version < 9:
        return _mean_variance_of_images(node)
    axes = tuple(node.axis(axis, rank) for axis in node.integers("axes", (0, 2, 3)))
    # The deviation's addend, 1e-9, counts only where the variance is 0.
    return node.layer(LayerNormalization(axes, 1e-18), node.value(0))


def _mean_variance_of_images(node: Node) -> Value:
    """MeanVarianceNormalization as ONNX Runtime knows it from before it was standardised."""
    image = node.value(0)
    if node.rank(0) != 4:
        raise node.error("the input has the wrong rank", expected="4", actual=node.shape(0))
    axes = (0, 1, 2, 3) if node.flag("across_channels") else (0, 2, 3)
    if node.flag("normalize_variance", default=True):
        return node.layer(LayerNormalization(axes, 1e-18), image)
    return _sub(node, image, _mean(node, image, axes))


# By a norm, and by neighbours

_LEAST = float(np.finfo(np.float32).tiny)
"""Least norm that rows are divided by."""


def _lp_normalization(node: Node) -> Value:
    value = node.value(0)
    order = node.integer("p", 2)
    if order not in (1, 2):
        raise node.error("the attribute 'p' is not supported", expected="1 or 2", actual=order)
    axis = node.axis(node.integer("axis", -1), node.rank(0))
    if order == 2:
        return node.layer(L2Normalization(axis, _LEAST), value)
    parts = unary(node, UnaryOperation.ABS, value)
    norm = reduced(node, ReduceOperation.SUM, parts, (axis,), keep_dims=True)
    # Rows of zeros stay.
    norm = binary(node, BinaryOperation.MAXIMUM, norm, _LEAST)
    return binary(node, BinaryOperation.DIV, value, norm)


def _local_response_normalization(node: Node) -> Value:
    image = node.value(0)
    size = node.integer("size")
    sizes, channels = _sizes_after_channels(node), node.shape(0)[1]
    if size < 1:
        raise node.error("the attribute 'size' is not positive", expected="1 or more", actual=size)
    alpha, beta, bias = (
        node.real(name, default)
        for name, default in (("alpha", 1e-4), ("beta", 0.75), ("bias", 1.0))
    )
    rows = _channels_at_end(node, image, sizes)
    if size % 2:
        operation = Normalization((size - 1) // 2, alpha / size, beta, bias)
        return _channels_back(node, node.layer(operation, rows), sizes)
    # With one neighbour more at the end than at the start.
    reach, lines = min(size // 2, channels), math.prod(rows.info.known_shape[:-1])
    squares = reshaped(node, _square(node, rows), (lines, 1, channels, 1))
    pads = ((0, 0), (0, 0), (min(reach, (size - 1) // 2), reach), (0, 0))
    squares = node.layer(Pad(pads), squares)
    window = squares.info.known_shape[2] - channels + 1
    means = node.layer(Pooling2d(PoolingAlgorithm.AVERAGE, (1, window)), squares)
    sums = scaled(node, means, alpha * window / size)
    power = binary(
        node,
        BinaryOperation.POWER,
        binary(node, BinaryOperation.ADD, sums, bias),
        -beta,
    )
    result = _mul(node, rows, reshaped(node, power, rows.info.known_shape))
    return _channels_back(node, result, sizes)


OPERATORS: OperatorTable = {
    "BatchNormalization": Operator(_batch_normalization, types=(0, 3, 4), rounds_once=True),
    "GroupNormalization": Operator(_group_normalization, rounds_once=True),
    "InstanceNormalization": Operator(_instance_normalization, rounds_once=True),
    "LRN": Operator(_local_response_normalization, rounds_once=True),
    "LayerNormalization": Operator(_layer_normalization, types=(0, DataType.FLOAT32)),
    "LpNormalization": Operator(_lp_normalization, rounds_once=True),
    "MeanVarianceNormalization": Operator(_mean_variance_normalization, rounds_once=True),
    "RMSNormalization": Operator(_rms_normalization),
}
