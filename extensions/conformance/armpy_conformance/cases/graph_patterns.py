"""Networks that are no chains: second readers, results inside, operands that are shared.

A compiler that merges layers, or takes them out, has to look at who else reads a tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache

from armpy.graph import Value
from armpy.ops import (
    ActivationFunction,
    BatchMatMul,
    BinaryOperation,
    FullyConnected,
    FusedActivation,
    Reshape,
    ReverseV2,
    Transpose,
)
from armpy.types import DataType
from armpy_conformance.cases.every_pair import every_pair
from armpy_conformance.cases.merged_layers import merged_layers
from armpy_conformance.cases.pairs.covering import Row, covering
from armpy_conformance.cases.patterns import TYPES, Builder, transposed
from armpy_conformance.cases.sibling_layers import sibling_layers
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


def _same_layer_twice(b: Builder) -> Value:
    """Two equal layers of the same input, whose results are subtracted after one was changed."""
    x = b.input(3, 6)
    weights = b.weights(5, 6)
    left, right = (b.net.add(FullyConnected(), x, weights) for _ in range(2))
    return b.binary(b.activate(left), right, BinaryOperation.SUB)


_COMPUTATIONS: Mapping[str, Callable[[Builder], Value]] = {
    "sum-of-three": _sum_of_three,
    "clamped-before-the-sum": lambda b: _clamped_operand(b, 0),
    "clamped-second-operand": lambda b: _clamped_operand(b, 1),
    "product-with-its-transpose": _gram,
    "shared-weights": _shared_weights,
    "same-layer-twice": _same_layer_twice,
}
"""Networks of floats in which operands are exchanged, shared, or almost equal."""


@cache
def graph_patterns() -> tuple[Pattern, ...]:
    """Every network of these tables."""
    return (*_merged(), *merged_layers(), *every_pair(), *sibling_layers(), *_computed())


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


def _computed() -> Iterator[Pattern]:
    """The networks of floats."""
    for label, build in _COMPUTATIONS.items():
        name = f"{label}/float32"
        builder = Builder(name, DataType.FLOAT32)
        builder.net.output("y", build(builder))
        yield Pattern(name, builder.net.build())
