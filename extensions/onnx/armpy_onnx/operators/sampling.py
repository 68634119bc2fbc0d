"""Operators that draw random numbers, Dropout, and windows for spectra."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

import numpy as np

from armpy.graph import Value
from armpy.ops.elementwise import (
    BinaryOperation,
    ComparisonOperation,
    UnaryOperation,
)
from armpy.ops.generation import Fill, Range
from armpy.ops.sampling import RandomMultinomial, RandomNormal, RandomUniform
from armpy.types import DataType
from armpy_onnx.blocks import binary, compared, scaled, unary
from armpy_onnx.element_types import data_type_of
from armpy_onnx.node import Node, NodeData, Operator, OperatorTable

_SEEDED = 1
"""Second seed where the file gives a first one, which may be 0."""


def type_of(data: NodeData, types: Sequence[DataType | None]) -> DataType:
    """The data type that ``dtype`` says, or that of the first input, or float32."""
    element_type = data.attribute("dtype")
    if element_type is not None:
        return data_type_of(element_type, data.label)
    first = types[0] if types else None
    return DataType.FLOAT32 if first is None else first


def _seeds(node: Node) -> tuple[int, int]:
    """Bits of the seed, and another one that says that there is one."""
    if node.attribute("seed") is None:
        return 0, 0
    (bits,) = struct.unpack("<I", struct.pack("<f", node.real("seed")))
    return bits, _SEEDED


def _drawn(node: Node, shape: tuple[int, ...], is_normal: bool) -> Value:
    """Random numbers of the node's distribution, of the type that it says."""
    data_type = type_of(node.data, [v.info.data_type for v in node.values])
    drawn_as = DataType.FLOAT64 if data_type is DataType.FLOAT64 else DataType.FLOAT32
    seed, seed2 = _seeds(node)
    if is_normal:
        mean, deviation = node.real("mean", 0.0), node.real("scale", 1.0)
        numbers = node.layer(RandomNormal(shape, mean, deviation, seed, seed2, drawn_as))
    else:
        low, high = node.real("low", 0.0), node.real("high", 1.0)
        numbers = node.layer(RandomUniform(shape, low, high, seed, seed2, drawn_as))
    return node.cast(numbers, data_type)


def _random(is_normal: bool) -> Operator:
    """Operator of random numbers in a shape that an attribute says."""
    return Operator(lambda node: _drawn(node, node.integers("shape"), is_normal), types=(type_of,))


def _random_like(is_normal: bool) -> Operator:
    """Operator of random numbers in the shape of the input."""
    return Operator(lambda node: _drawn(node, node.shape(0), is_normal), types=(type_of,))


def _bernoulli(node: Node) -> Value:
    """1 with the probability that the input says."""
    value = node.value(0)
    seed, seed2 = _seeds(node)
    real = value.info.data_type
    drawn_as = DataType.FLOAT64 if real is DataType.FLOAT64 else DataType.FLOAT32
    numbers = node.layer(RandomUniform(node.shape(0), 0.0, 1.0, seed, seed2, drawn_as))
    is_hit = compared(node, ComparisonOperation.LESS, numbers, node.cast(value, drawn_as))
    return node.cast(is_hit, type_of(node.data, [real]))


def _type_of_classes(data: NodeData, types: Sequence[DataType | None]) -> DataType:
    """The data type of Multinomial's output."""
    element_type = data.attribute("dtype")
    return DataType.SIGNED32 if element_type is None else data_type_of(element_type, data.label)


def _multinomial(node: Node) -> Value:
    """Classes whose probabilities the input has as logarithms."""
    first, second = _seeds(node)
    seeds = node.constant(np.array([first, second], np.uint32).view(np.int32))
    logits = node.cast(node.value(0), DataType.FLOAT32)
    drawn = node.layer(RandomMultinomial(node.integer("sample_size", 1)), logits, seeds)
    return node.cast(drawn, _type_of_classes(node.data, ()))


def _dropout(node: Node) -> Sequence[Value]:
    """The unchanged input and a mask that leaves nothing out; in training mode, the rest."""
    value = node.value(0)
    ratio = _dropped_share(node)
    mask_type = DataType.BOOLEAN if node.version >= 10 else value.info.data_type
    if ratio == 0:
        if node.data.num_outputs < 2:
            return [value]
        is_left = node.cast(node.constant(np.ones((), np.bool_)), mask_type)
        return [value, node.layer(Fill(node.shape(0)), is_left)]
    numbers = node.layer(RandomUniform(node.shape(0), 0.0, 1.0, *_seeds(node)))
    is_left = compared(node, ComparisonOperation.GREATER_OR_EQUAL, numbers, ratio)
    factor = 1 / (1 - ratio) if ratio < 1 else 0.0
    scale = node.cast(scaled(node, node.cast(is_left, DataType.FLOAT32), factor), node.type(0))
    rest = binary(node, BinaryOperation.MUL, value, scale)
    return [rest, node.cast(is_left, mask_type)]


def _dropped_share(node: Node) -> float:
    """Share of the elements that becomes 0: none unless the node is in training mode."""
    if node.version >= 12:
        is_training = node.has(2) and bool(node.array(2).any())
        share = float(node.number(1)) if node.has(1) else 0.5
    else:
        is_training = node.version < 7 and not node.flag("is_test")
        share = node.real("ratio", 0.5)
    if not is_training:
        return 0.0
    if not 0 <= share <= 1:
        raise node.error("the ratio is out of range", expected="0 to 1", actual=share)
    return share


def _type_of_mask(data: NodeData, types: Sequence[DataType | None]) -> DataType:
    """The data type of Dropout's mask."""
    first = types[0]
    return DataType.BOOLEAN if data.version >= 10 or first is None else first


def _window(*factors: float) -> Operator:
    """Operator of a window that is a sum of cosines."""

    def convert(node: Node) -> Value:
        sizes = node.ints(0)
        if len(sizes) != 1 or sizes[0] < 0:
            raise node.error("the size of the window is not one number of 0 or more", actual=sizes)
        size = sizes[0]
        steps = size if node.flag("periodic", True) else size - 1
        counted = node.layer(Range(0, size, 1, DataType.SIGNED64))
        angles = scaled(node, node.cast(counted, DataType.FLOAT64), 2 * math.pi / max(steps, 1))
        total = node.layer(Fill((size,)), node.constant(factors[0], DataType.FLOAT64))
        for number, factor in enumerate(factors[1:], 1):
            turns = scaled(node, angles, float(number))
            wave = scaled(node, unary(node, UnaryOperation.COS, turns), factor)
            total = binary(node, BinaryOperation.ADD, total, wave)
        return node.cast(total, _type_of_window(node.data, ()))

    return Operator(convert, decides=(0,), types=(_type_of_window,))


def _type_of_window(data: NodeData, types: Sequence[DataType | None]) -> DataType:
    """The data type of a window's elements."""
    element_type = data.attribute("output_datatype")
    return DataType.FLOAT32 if element_type is None else data_type_of(element_type, data.label)


OPERATORS: OperatorTable = {
    "Bernoulli": Operator(_bernoulli, types=(type_of,)),
    "BlackmanWindow": _window(0.42, -0.5, 0.08),
    "Dropout": Operator(_dropout, decides=(1, 2), types=(0, _type_of_mask)),
    "HammingWindow": _window(25 / 46, -21 / 46),
    "HannWindow": _window(0.5, -0.5),
    "Multinomial": Operator(_multinomial, types=(_type_of_classes,)),
    "RandomNormal": _random(is_normal=True),
    "RandomNormalLike": _random_like(is_normal=True),
    "RandomUniform": _random(is_normal=False),
    "RandomUniformLike": _random_like(is_normal=False),
}
