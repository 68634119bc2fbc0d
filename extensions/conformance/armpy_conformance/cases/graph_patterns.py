"""Networks that are no chains: second readers, results inside, layers that do (almost) nothing.

A compiler that merges layers, or takes them out, has to look at who else reads a tensor, and at the
numbers: each of these networks differs from one that may be merged in one thing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache

import numpy as np

from armpy.graph import Value
from armpy.ops import (
    Activation,
    ActivationFunction,
    BatchMatMul,
    BinaryOperation,
    Concat,
    DepthToSpace,
    ElementwiseUnary,
    ExpandDims,
    FullyConnected,
    FusedActivation,
    Operation,
    Pad,
    Reshape,
    ReverseV2,
    Slice,
    SpaceToDepth,
    Splitter,
    Squeeze,
    Tile,
    Transpose,
    UnaryOperation,
)
from armpy.types import DataType
from armpy_conformance.cases.pairs.covering import Row, covering
from armpy_conformance.cases.patterns import TYPES, Builder, transposed
from armpy_conformance.pattern import Pattern

_UPPER = ActivationFunction.BOUNDED_RELU
_IMAGE = (2, 5, 4, 3)
_ROWS = (3, 6)


def _operands(b: Builder) -> tuple[Value, Value]:
    return b.input(*_ROWS), b.input(*_ROWS, name="y")


def _doubled(b: Builder, x: Value) -> Value:
    return b.binary(x, x)


_PRODUCERS: Mapping[str, Callable[[Builder], Value]] = {
    "convolution": lambda b: b.convolution(b.input(*_IMAGE), 3),
    "depthwise": lambda b: b.depthwise(b.input(*_IMAGE)),
    "transposed": lambda b: transposed(b, b.input(*_IMAGE)),
    "dense": lambda b: b.dense(b.input(*_ROWS), 6),
    "add": lambda b: b.binary(*_operands(b)),
    "double": lambda b: _doubled(b, b.input(*_ROWS)),
    "sub": lambda b: b.binary(*_operands(b), BinaryOperation.SUB),
    "mul": lambda b: b.binary(*_operands(b), BinaryOperation.MUL),
}
"""Layers whose output others read."""

_CONSUMERS: Mapping[str, Callable[[Builder, Value], Value]] = {
    "relu": lambda b, x: b.activate(x),
    "relu6": lambda b, x: b.activate(x, _UPPER, 6.0),
    "leaky-relu": lambda b, x: b.activate(x, ActivationFunction.LEAKY_RELU, 0.25),
    "double": _doubled,
    "reshape": lambda b, x: b.move(Reshape((-1,)), x),
    "reverse": lambda b, x: b.move(ReverseV2((-1,)), x),
    "softmax": lambda b, x: b.softmax(x),
}
"""Layers that a compiler merges with the one before."""


def _out(b: Builder, *values: Value) -> None:
    for number, value in enumerate(values):
        b.net.output(f"y{number}", value)


def _result_inside(b: Builder, x: Value, merge: Callable[[Builder, Value], Value]) -> None:
    _out(b, merge(b, x), x)


def _result_first(b: Builder, x: Value, merge: Callable[[Builder, Value], Value]) -> None:
    _out(b, x, merge(b, x))


def _second_reader(b: Builder, x: Value, merge: Callable[[Builder, Value], Value]) -> None:
    merged = merge(b, x)
    _out(b, merged, b.move(ReverseV2((0,)), x))


def _reader_before(b: Builder, x: Value, merge: Callable[[Builder, Value], Value]) -> None:
    other = b.move(ReverseV2((0,)), x)
    _out(b, merge(b, x), other)


def _diamond(b: Builder, x: Value, merge: Callable[[Builder, Value], Value]) -> None:
    left = b.move(Reshape((-1,)), merge(b, x))
    right = b.move(Reshape((-1,)), x)
    _out(b, b.binary(left, right))


def _crossed(b: Builder, x: Value, merge: Callable[[Builder, Value], Value]) -> None:
    """The merged layer's output is the second operand of a function that does not commute."""
    left = b.move(Reshape((-1,)), x)
    right = b.move(Reshape((-1,)), merge(b, x))
    _out(b, b.binary(left, right, BinaryOperation.SUB))


def _merged_twice(b: Builder, x: Value, merge: Callable[[Builder, Value], Value]) -> None:
    """Two layers that could be merged with the same one, each in its own way."""
    _out(b, merge(b, x), b.activate(x, _UPPER, 1.0))


def _read_far_away(b: Builder, x: Value, merge: Callable[[Builder, Value], Value]) -> None:
    """Several layers lie between the merged one and the second reader."""
    merged = b.move(Reshape((-1,)), merge(b, x))
    for _ in range(3):
        merged = b.move(ReverseV2((0,)), merged)
    _out(b, b.binary(merged, b.move(Reshape((-1,)), x)))


_FORMS: Mapping[str, Callable[[Builder, Value, Callable[[Builder, Value], Value]], None]] = {
    "result-inside": _result_inside,
    "result-first": _result_first,
    "second-reader": _second_reader,
    "reader-before": _reader_before,
    "diamond": _diamond,
    "crossed": _crossed,
    "merged-twice": _merged_twice,
    "read-far-away": _read_far_away,
}
"""What surrounds two layers that could be merged."""

_QUANTIZED_FORMS = ("result-inside", "second-reader", "diamond", "crossed")


def _float_constant(b: Builder, elements: object) -> Value:
    return b.net.constant(np.asarray(elements, np.float32))


def _with_constant(operation: BinaryOperation, elements: object) -> Callable[[Builder], Value]:
    return lambda b: b.binary(b.input(2, 3), _float_constant(b, elements), operation)


def _moved(shape: tuple[int, ...], *operations: Operation) -> Callable[[Builder], Value]:
    """Layers one after the other, which move elements."""

    def build(b: Builder) -> Value:
        x = b.input(*shape)
        for operation in operations:
            x = b.move(operation, x)
        return x

    return build


def _activated(
    *functions: tuple[ActivationFunction, float, float],
) -> Callable[[Builder], Value]:
    """Activations one after the other."""

    def build(b: Builder) -> Value:
        x = b.input(3, 7)
        for function, upper, lower in functions:
            x = b.net.add(Activation(function, upper, lower), x, output=x.info.with_shape(None))
        return x

    return build


def _parts_in_order(b: Builder, order: tuple[int, ...]) -> Value:
    """The parts of a tensor, joined in an order."""
    x = b.input(2, 6)
    outputs = [x.info.with_shape(None)] * 3
    parts = b.net.add_layer(Splitter(3, 1), [x], outputs=outputs).outputs
    return b.move(Concat(1), *(parts[number] for number in order))


_MOVES: Mapping[str, Callable[[Builder], Value]] = {
    "transpose-back": _moved((2, 3, 4), Transpose((1, 2, 0)), Transpose((2, 0, 1))),
    "transpose-twice": _moved((3, 3, 3), Transpose((1, 2, 0)), Transpose((1, 2, 0))),
    "transpose-square": _moved((3, 3), Transpose((1, 0))),
    "transpose-of-one": _moved((1, 3, 1), Transpose((2, 1, 0))),
    "reverse-back": _moved((3, 4), ReverseV2((1,)), ReverseV2((-1,))),
    "reverse-both": _moved((3, 4), ReverseV2((1,)), ReverseV2((0,))),
    "reshape-back": _moved((3, 4), Reshape((2, 6)), Reshape((3, 4))),
    "reshape-around-transpose": _moved((4, 3), Reshape((3, 4)), Transpose((1, 0))),
    "squeeze-back": _moved((2, 1, 3), Squeeze((1,)), ExpandDims(1)),
    "space-back": _moved((1, 2, 2, 4), DepthToSpace(2), SpaceToDepth(2)),
    "space-of-other-blocks": _moved((1, 2, 2, 8), DepthToSpace(2), SpaceToDepth(4)),
    "pad-nothing": _moved((2, 3), Pad(((0, 0), (0, 0)))),
    "pad-and-cut": _moved((2, 3), Pad(((1, 0), (0, 2))), Slice((0, 0), (2, 3))),
    "cut-the-padding": _moved((2, 3), Pad(((1, 0), (0, 2))), Slice((1, 0), (2, 3))),
    "slice-all": _moved((2, 3), Slice((0, 0), (-1, -1))),
    "tile-once": _moved((2, 3), Tile((1, 1))),
    "parts-in-order": lambda b: _parts_in_order(b, (0, 1, 2)),
    "parts-exchanged": lambda b: _parts_in_order(b, (0, 2, 1)),
    "parts-repeated": lambda b: _parts_in_order(b, (0, 1, 1)),
}
"""Layers of any type that do nothing together, and ones that almost do nothing."""


def _unary(b: Builder, *operations: UnaryOperation) -> Value:
    x = b.input(3, 7)
    for operation in operations:
        x = b.net.add(ElementwiseUnary(operation), x)
    return x


def _with_itself(b: Builder, operation: BinaryOperation) -> Value:
    x = b.dense(b.input(3, 6), 5)
    return b.binary(x, x, operation)


def _sum_of_three(b: Builder) -> Value:
    """A sum one operand of which is a difference of the same tensors, in the other order."""
    x, y = _operands(b)
    difference = b.binary(x, y, BinaryOperation.SUB)
    other = b.binary(y, x, BinaryOperation.SUB)
    return b.binary(b.binary(difference, other, BinaryOperation.MUL), x)


def _clamped_operand(b: Builder, which: int) -> Value:
    """A sum of which one operand is clamped, and not the sum."""
    operands = list(_operands(b))
    operands[which] = b.activate(operands[which])
    return b.binary(operands[0], operands[1], BinaryOperation.SUB)


def _scaled(b: Builder, *, before: bool) -> Value:
    """Channels that are scaled and moved after a convolution, in one order or the other."""
    x = b.convolution(b.input(*_IMAGE), 4)
    factors, terms = _float_constant(b, (0.5, 2, -1, 0)), _float_constant(b, (1, -2, 0, 4))
    steps = [(BinaryOperation.MUL, factors), (BinaryOperation.ADD, terms)]
    for operation, constant in steps if before else steps[::-1]:
        x = b.binary(x, constant, operation)
    return x


def _gram(b: Builder) -> Value:
    """The product of a matrix with itself, turned over."""
    x = b.input(2, 3, 4)
    return b.net.add(BatchMatMul(), x, b.net.add(Transpose((0, 2, 1)), x))


def _shared_weights(b: Builder) -> Value:
    """Two layers with the same weights, one of them on a result of the other."""
    x, y = b.input(3, 5), b.input(2, 5, name="y")
    weights = b.weights(5, 5)
    first = b.net.add(FullyConnected(), x, weights)
    b.net.output("other", b.net.add(FullyConnected(activation=FusedActivation.RELU), y, weights))
    return b.net.add(FullyConnected(), first, weights)


def _other_weights(b: Builder) -> Value:
    """Two layers of one input whose weights differ, and nothing else does."""
    x = b.input(3, 6)
    left, right = (b.net.add(FullyConnected(), x, b.weights(5, 6)) for _ in range(2))
    return b.binary(left, right, BinaryOperation.SUB)


def _same_layer_twice(b: Builder) -> Value:
    """Two equal layers of the same input, whose results are subtracted after one was changed."""
    x = b.input(3, 6)
    weights = b.weights(5, 6)
    left, right = (b.net.add(FullyConnected(), x, weights) for _ in range(2))
    return b.binary(b.activate(left), right, BinaryOperation.SUB)


_RELU = (ActivationFunction.RELU, 0.0, 0.0)
_COMPUTATIONS: Mapping[str, Callable[[Builder], Value]] = {
    "times-one": _with_constant(BinaryOperation.MUL, np.ones(3)),
    "times-almost-one": _with_constant(BinaryOperation.MUL, (1, 1, 1.5)),
    "times-one-row-of-two": _with_constant(BinaryOperation.MUL, ((1, 1, 1), (1, 1, -1))),
    "plus-zero": _with_constant(BinaryOperation.ADD, np.zeros(3)),
    "plus-almost-zero": _with_constant(BinaryOperation.ADD, (0, 0, 2)),
    "minus-zero-left": lambda b: b.binary(
        _float_constant(b, np.zeros(3)), b.input(2, 3), BinaryOperation.SUB
    ),
    "divided-by-almost-one": _with_constant(BinaryOperation.DIV, (1, 2, 1)),
    "one-divided": lambda b: b.binary(
        _float_constant(b, np.ones(3)), b.input(2, 3), BinaryOperation.DIV
    ),
    "power-one": _with_constant(BinaryOperation.POWER, (1, 1, 2)),
    "largest-of-lowest": _with_constant(BinaryOperation.MAXIMUM, (-100, -100, 0)),
    "relu-twice": _activated(_RELU, _RELU),
    "relu6-after-relu1": _activated((_UPPER, 1.0, -1.0), (_UPPER, 6.0, 0.0)),
    "relu1-after-relu6": _activated((_UPPER, 6.0, 0.0), (_UPPER, 1.0, -1.0)),
    "relu-after-square": _activated((ActivationFunction.SQUARE, 0.0, 0.0), _RELU),
    "abs-after-relu": _activated(_RELU, (ActivationFunction.ABS, 0.0, 0.0)),
    "relu-after-tanh": _activated((ActivationFunction.TANH, 1.0, 1.0), _RELU),
    "relu-after-sigmoid": _activated((ActivationFunction.SIGMOID, 0.0, 0.0), _RELU),
    "linear-one": _activated((ActivationFunction.LINEAR, 1.0, 0.0)),
    "linear-almost-one": _activated((ActivationFunction.LINEAR, 1.0, 0.5)),
    "leaky-relu-of-one": _activated((ActivationFunction.LEAKY_RELU, 1.0, 0.0)),
    "neg-back": lambda b: _unary(b, UnaryOperation.NEG, UnaryOperation.NEG),
    "neg-abs": lambda b: _unary(b, UnaryOperation.NEG, UnaryOperation.ABS),
    "floor-after-ceil": lambda b: _unary(b, UnaryOperation.CEIL, UnaryOperation.FLOOR),
    "square-and-root": lambda b: _unary(b, UnaryOperation.SQUARE, UnaryOperation.SQRT),
    "itself-minus-itself": lambda b: _with_itself(b, BinaryOperation.SUB),
    "itself-times-itself": lambda b: _with_itself(b, BinaryOperation.MUL),
    "sum-of-three": _sum_of_three,
    "clamped-before-the-sum": lambda b: _clamped_operand(b, 0),
    "clamped-second-operand": lambda b: _clamped_operand(b, 1),
    "scaled-after-bias": lambda b: _scaled(b, before=False),
    "scaled-before-bias": lambda b: _scaled(b, before=True),
    "product-with-its-transpose": _gram,
    "clamped-then-scaled": lambda b: b.binary(
        b.dense(b.input(3, 6), 5),
        _float_constant(b, 0.5),
        BinaryOperation.MUL,
        FusedActivation.RELU,
    ),
    "shared-weights": _shared_weights,
    "same-layer-twice": _same_layer_twice,
    "other-weights": _other_weights,
}
"""Layers of floats that do nothing together, and ones that almost do nothing."""


@cache
def graph_patterns() -> tuple[Pattern, ...]:
    """Every network of these tables."""
    return (*_merged(), *_erasable())


def _merged() -> Iterator[Pattern]:
    """Pairs of layers in every surrounding; every two of these three things occur together."""
    for data_type in TYPES:
        forms = tuple(_FORMS) if data_type.is_float else _QUANTIZED_FORMS
        factors = {"first": tuple(_PRODUCERS), "second": tuple(_CONSUMERS), "form": forms}

        def build(row: Row, data_type: DataType = data_type) -> Pattern:
            name = f"{row['first']}-{row['second']}-{row['form']}/{data_type.name.lower()}"
            builder = Builder(name, data_type)
            first = _PRODUCERS[row["first"]](builder)
            _FORMS[row["form"]](builder, first, _CONSUMERS[row["second"]])
            return Pattern(name, builder.net.build())

        yield from covering(factors, build)


def _erasable() -> Iterator[Pattern]:
    """Layers that a compiler may take out, and ones that it may not."""
    tables = ((_MOVES, TYPES), (_COMPUTATIONS, (DataType.FLOAT32,)))
    for table, types in tables:
        for data_type in types:
            for label, build in table.items():
                name = f"{label}/{data_type.name.lower()}"
                builder = Builder(name, data_type)
                builder.net.output("y", build(builder))
                yield Pattern(name, builder.net.build())
