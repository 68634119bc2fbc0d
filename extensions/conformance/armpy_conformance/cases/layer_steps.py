"""Layers as steps of networks, which tables of pairs are written in."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from armpy.graph import Value
from armpy.ops import (
    Activation,
    ActivationFunction,
    BinaryOperation,
    Cast,
    Comparison,
    ComparisonOperation,
    Concat,
    Convolution2d,
    DepthwiseConvolution2d,
    ElementwiseBinary,
    ElementwiseUnary,
    FullyConnected,
    FusedActivation,
    Gather,
    Operation,
    Pad,
    PaddingMode,
    Pooling2d,
    PoolingAlgorithm,
    Quantize,
    Reduce,
    ReduceOperation,
    Splitter,
    UnaryOperation,
)
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType
from armpy_conformance.cases.patterns import Builder

Step = Callable[[Builder, Value, Value], Value]
"""Adds a layer that reads a value; the last operand is the network's input."""


def move(operation: Operation) -> Step:
    """A layer that moves elements."""
    return lambda b, value, x: b.move(operation, value)


def compute(operation: Operation) -> Step:
    """A layer of floats, whose output's type is the operation's own."""
    return lambda b, value, x: b.net.add(operation, value)


def activated(function: ActivationFunction, a: float = 0.0, lower: float = 0.0) -> Step:
    """An activation, whose output is stored as its input is."""
    operation = Activation(function, a, lower)
    return lambda b, value, x: b.net.add(operation, value, output=value.info.with_shape(None))


def clamped(upper: float, lower: float) -> Step:
    """A clamp."""
    return activated(ActivationFunction.BOUNDED_RELU, upper, lower)


def unary(function: str) -> Step:
    """A function of one number."""
    return compute(ElementwiseUnary(UnaryOperation[function]))


def _constant(b: Builder, elements: object) -> Value:
    return b.net.constant(np.asarray(elements, np.float32))


def constant_right(
    function: str, elements: object, activation: FusedActivation = FusedActivation.NONE
) -> Step:
    """A function of a value and a constant."""
    operation = ElementwiseBinary(BinaryOperation[function], activation)
    return lambda b, value, x: b.net.add(operation, value, _constant(b, elements))


def constant_left(function: str, elements: object) -> Step:
    """A function of a constant and a value."""
    operation = ElementwiseBinary(BinaryOperation[function])
    return lambda b, value, x: b.net.add(operation, _constant(b, elements), value)


def with_itself(function: str) -> Step:
    """A function of a value and itself."""
    operation = ElementwiseBinary(BinaryOperation[function])
    return lambda b, value, x: b.net.add(operation, value, value)


def with_input(operation: Operation) -> Step:
    """A layer of a value and the network's input."""
    return lambda b, value, x: b.move(operation, value, x)


def compared(function: str, elements: object) -> Step:
    """A comparison of a value with a constant."""
    operation = Comparison(ComparisonOperation[function])
    return lambda b, value, x: b.net.add(operation, value, _constant(b, elements))


def compared_left(function: str, elements: object) -> Step:
    """A comparison of a constant with a value."""
    operation = Comparison(ComparisonOperation[function])
    return lambda b, value, x: b.net.add(operation, _constant(b, elements), value)


def reduced(function: str, *axes: int) -> Step:
    """A reduction that keeps the axes."""
    return compute(Reduce(ReduceOperation[function], axes, keep_dims=True))


def cast(data_type: DataType) -> Step:
    """A conversion."""
    return lambda b, value, x: b.net.add(Cast(), value, output=TensorInfo(None, data_type))


def stored(step: float, zero_point: int = 3) -> Step:
    """Bytes of a scale, from floats or from other bytes."""
    info = TensorInfo(None, DataType.QASYMM_S8, Quantization.per_tensor(step, zero_point))
    return lambda b, value, x: b.net.add(Quantize(), value, output=info)


def pool(
    algorithm: PoolingAlgorithm, size: int, activation: FusedActivation = FusedActivation.NONE
) -> Step:
    """A pool of square windows."""
    return move(Pooling2d(algorithm, (size, size), activation=activation))


def convolution(operation: Convolution2d) -> Step:
    """A convolution of 3 by 3 with 4 outputs."""
    return lambda b, value, x: b.convolution(value, 4, 3, operation)


def depthwise(operation: DepthwiseConvolution2d) -> Step:
    """A depthwise convolution."""
    return lambda b, value, x: b.depthwise(value, operation)


def dense(activation: FusedActivation = FusedActivation.NONE) -> Step:
    """A fully connected layer with 4 outputs."""
    operation = FullyConnected(activation)
    return lambda b, value, x: b.dense(value, 4, operation)


def gathered(*places: int) -> Step:
    """Rows in an order."""
    return lambda b, value, x: b.move(Gather(0), value, b.net.constant(np.array(places, np.int32)))


def parts(*order: int, axis: int = 1) -> Step:
    """Equal parts of a matrix along an axis, joined in an order."""

    def add(b: Builder, value: Value, x: Value) -> Value:
        outputs = [value.info.with_shape(None)] * len(order)
        equal = b.net.add_layer(Splitter(len(order), axis), [value], outputs=outputs).outputs
        return b.move(Concat(axis), *(equal[number] for number in order))

    return add


def both(*steps: Step) -> Step:
    """Layers one after the other, as one step."""

    def add(b: Builder, value: Value, x: Value) -> Value:
        for step in steps:
            value = step(b, value, x)
        return value

    return add


def padded(
    *sides: tuple[int, int], value: float = 0.0, mode: PaddingMode = PaddingMode.CONSTANT
) -> Step:
    """A padding."""
    return move(Pad(sides, value, mode))


def with_two(function: str) -> Step:
    """A function of an integer and 2."""
    operation = ElementwiseBinary(BinaryOperation[function])
    return lambda b, value, x: b.net.add(operation, value, b.net.constant(np.array([2], np.int32)))
