"""What networks compute from their shapes, while these are traced."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from armpy_reference import ReferenceBackend

from armpy import ops
from armpy.compiler import Evaluator, specialize
from armpy.core.symbolic import Size, SymbolicTrace
from armpy.graph import Graph, SizesValue, Value
from armpy.graph.network import Network
from armpy.ops import BinaryOperation, ComparisonOperation, FusedActivation, ReduceOperation
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_testing.models.networks import f32

EVALUATOR = Evaluator(ReferenceBackend())
TRACED, OTHERS = 5, (4, 6, 12, 97)

Made = Callable[[Network, Value], Value]
"""Makes two int32 numbers of the shape of a tensor, (n, 3)."""


def number(net: Network, *numbers: int) -> Value:
    return net.constant(np.array(numbers, np.int32))


def binary(operation: BinaryOperation, by: int) -> Made:
    def made(net: Network, shape: Value) -> Value:
        return net.add(ops.ElementwiseBinary(operation), shape, number(net, by))

    return made


def taken(operation: ops.Operation) -> Made:
    return lambda net, shape: net.add(operation, shape)


def gathered(net: Network, shape: Value) -> Value:
    return net.add(ops.Gather(), shape, number(net, 1, 0))


def joined(net: Network, shape: Value) -> Value:
    first = net.add(ops.Slice((0,), (1,)), shape)
    return net.add(ops.Concat(0), number(net, 2), first)


def stacked(net: Network, shape: Value) -> Value:
    parts = net.add_layer(ops.Unstack(num=2, axis=0), [shape]).outputs
    return net.add(ops.Stack(0), *reversed(parts))


def split(net: Network, shape: Value) -> Value:
    parts = net.add_layer(ops.Splitter(num_splits=2, axis=0), [shape]).outputs
    return net.add(ops.Concat(0), parts[1], parts[0])


def lifted(net: Network, shape: Value) -> Value:
    wide = net.add(ops.ExpandDims(0), shape)
    tiled = net.add(ops.Tile((2, 1)), wide)
    return net.add(ops.Slice((1, 0), (1, 2)), tiled)


def flat(made: Made) -> Made:
    return lambda net, shape: net.add(ops.Reshape((2,)), made(net, shape))


def reduced(operation: ReduceOperation) -> Made:
    def made(net: Network, shape: Value) -> Value:
        product = net.add(ops.Reduce(operation, (0,), keep_dims=True), shape)
        return net.add(ops.Concat(0), product, number(net, 1))

    return made


def chosen(net: Network, shape: Value) -> Value:
    """What PyTorch writes for `expand`: sizes where others are -1."""
    wanted = number(net, -1, 3)
    is_open = net.add(ops.Comparison(ComparisonOperation.EQUAL), wanted, number(net, -1, -1))
    return net.add(ops.Select(), is_open, shape, wanted)


def compared(net: Network, shape: Value) -> Value:
    is_large = net.add(ops.Comparison(ComparisonOperation.GREATER), shape, number(net, 3, 3))
    return net.add(ops.Select(), is_large, shape, number(net, 2, 2))


def cast(net: Network, shape: Value) -> Value:
    wide = net.add(ops.Cast(), shape, output=TensorInfo(None, DataType.SIGNED64))
    return net.add(ops.Cast(), wide, output=TensorInfo(None, DataType.SIGNED32))


def cut(net: Network, shape: Value) -> Value:
    """At most 6 comes of it."""
    fused = ops.ElementwiseBinary(BinaryOperation.SUB, activation=FusedActivation.RELU6)
    return net.add(fused, shape, number(net, 1))


KEPT: dict[str, Made] = {
    "shape": lambda net, shape: shape,
    "gather": gathered,
    "concat": joined,
    "stack": stacked,
    "split": split,
    "tile": flat(lifted),
    "reverse": taken(ops.ReverseV2((0,))),
    "strided slice": taken(ops.StridedSlice((1,), (-3,), (-1,))),
    "select": chosen,
    "compare": compared,
    "cast": cast,
    "add": binary(BinaryOperation.ADD, 7),
    "subtract": binary(BinaryOperation.SUB, 1),
    "multiply": binary(BinaryOperation.MUL, 3),
    "divide": binary(BinaryOperation.DIV, 2),
    "floor_div": binary(BinaryOperation.FLOOR_DIV, 2),
    "floor_mod": binary(BinaryOperation.FLOOR_MOD, 7),
    "trunc_mod": binary(BinaryOperation.TRUNC_MOD, 7),
    "maximum": binary(BinaryOperation.MAXIMUM, 8),
    "minimum": binary(BinaryOperation.MINIMUM, 8),
    "sum": reduced(ReduceOperation.SUM),
    "product": reduced(ReduceOperation.PROD),
    "largest": reduced(ReduceOperation.MAX),
    "smallest": reduced(ReduceOperation.MIN),
}
FIXED: dict[str, Made] = {
    "activation": cut,
    "power": binary(BinaryOperation.POWER, 2),
    "squared difference": binary(BinaryOperation.SQUARED_DIFFERENCE, 2),
}


def tiled(make: Made) -> Graph:
    """A network of (?, 3) whose output is repeated as a computed pair of numbers says."""
    net = Network()
    x = net.input("x", f32(None, 3))
    net.output("y", net.add(ops.Tile(), x, make(net, net.add(ops.Shape(), x))))
    return net.build()


def shape_for(graph: Graph, size: int | Size) -> tuple[int, ...]:
    """The output's shape in the specialised network."""
    specialized = specialize(graph, [(size, 3)], (), EVALUATOR)  # type: ignore[list-item]  # a size
    assert not any(isinstance(value, SizesValue) for value in specialized.values())
    return specialized.outputs[0].info.known_shape


@pytest.mark.parametrize("make", KEPT.values(), ids=KEPT)
def test_what_follows_from_sizes_is_known_for_others(make: Made) -> None:
    graph = tiled(make)
    trace = SymbolicTrace([TRACED])
    shape = shape_for(graph, trace.given[0])
    formula = trace.formula(shape)
    for size in (TRACED, *OTHERS):
        numbers = formula([size])
        if make is compared and size == 4:
            continue  # on the other side of what was asked
        assert numbers is not None
        dims = [numbers[d.number] if isinstance(d, Size) else d for d in shape]
        assert dims == [*shape_for(graph, size)]


@pytest.mark.parametrize("make", FIXED.values(), ids=FIXED)
def test_what_is_computed_otherwise_holds_for_these_sizes_alone(make: Made) -> None:
    graph = tiled(make)
    trace = SymbolicTrace([TRACED])
    shape = shape_for(graph, trace.given[0])
    formula = trace.formula(shape)
    assert formula([TRACED]) is not None
    assert all(formula([size]) is None for size in OTHERS)
    plain = [d.now if isinstance(d, Size) else d for d in shape]
    assert plain == [*shape_for(graph, TRACED)]


def test_a_branch_on_a_size_holds_on_its_side() -> None:
    graph = tiled(compared)
    trace = SymbolicTrace([TRACED])
    formula = trace.formula(shape_for(graph, trace.given[0]))
    assert formula([4]) is not None
    assert formula([3]) is None


def test_numbers_that_an_int32_does_not_hold_are_not_taken_for_sizes() -> None:
    graph = tiled(binary(BinaryOperation.MUL, 1 << 20))
    trace = SymbolicTrace([TRACED])
    formula = trace.formula(shape_for(graph, trace.given[0]))
    assert formula([2047]) is not None
    assert formula([2048]) is None


def test_numbers_that_a_cast_does_not_keep_are_not_taken_for_sizes() -> None:
    def wrapped(net: Network, shape: Value) -> Value:
        wide = net.add(ops.Cast(), shape, output=TensorInfo(None, DataType.SIGNED64))
        large = net.constant(np.array([1 << 30], np.int64))
        product = net.add(ops.ElementwiseBinary(BinaryOperation.MUL), wide, large)
        narrow = net.add(ops.Cast(), product, output=TensorInfo(None, DataType.SIGNED32))
        return net.add(ops.ElementwiseBinary(BinaryOperation.FLOOR_MOD), narrow, number(net, 7))

    graph = tiled(wrapped)
    trace = SymbolicTrace([TRACED])
    shape = shape_for(graph, trace.given[0])
    plain = [d.now if isinstance(d, Size) else d for d in shape]
    assert plain == [*shape_for(graph, TRACED)]
    assert trace.formula(shape)([6]) is None


def test_large_plain_numbers_are_not_taken_for_sizes() -> None:
    def large(net: Network, shape: Value) -> Value:
        both = net.add(ops.Concat(0), shape, number(net, (1 << 30) + 1))
        return net.add(ops.Slice((0,), (2,)), both)

    graph = tiled(large)
    trace = SymbolicTrace([TRACED])
    formula = trace.formula(shape_for(graph, trace.given[0]))
    assert formula([TRACED]) is not None
    assert formula([6]) is None


def test_sizes_that_a_layer_reads_or_an_output_gives_are_plain() -> None:
    net = Network()
    x = net.input("x", f32(None, 3))
    shape = net.add(ops.Shape(), x)
    net.output("shape", shape)
    real = net.add(ops.Cast(), shape, output=TensorInfo(None, DataType.FLOAT32))
    row = net.add(ops.Gather(), real, number(net, 0, 0, 0))
    net.output("y", net.add(ops.ElementwiseBinary(BinaryOperation.ADD), x, row))
    trace = SymbolicTrace([TRACED])
    graph = specialize(net.build(), [(trace.given[0], 3)], (), EVALUATOR)  # type: ignore[list-item]
    assert graph.outputs[0].data is not None
    assert graph.outputs[0].data.tolist() == [TRACED, 3]
    assert not any(isinstance(value, SizesValue) for value in graph.values())
    assert trace.formula([])([TRACED + 1]) is None
