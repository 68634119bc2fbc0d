"""Loops whose shapes stay are planned once, whatever their bodies do in between."""

from __future__ import annotations

import gc
from collections.abc import Callable

import numpy as np
import pytest

from armpy.compiler import OptimizedNetwork, specialize
from armpy.graph import Graph, Value
from armpy.graph.counting import LoopCount, LoopCounter, counted
from armpy.graph.network import Network
from armpy.model import Model
from armpy.ops import (
    Comparison,
    ComparisonOperation,
    Concat,
    Gather,
    LogicalBinary,
    LogicalBinaryOperation,
    Reshape,
    Slice,
    While,
)
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_testing.backends.fake_backends import runtime_of
from armpy_testing.models.control_flow import LESS, counting, graph_of
from armpy_testing.models.networks import ADD, f32, floats, i32, placement_of

NUMBER = TensorInfo((), DataType.SIGNED32)
LENGTH, WIDTH = 6, 2
LIST = f32(LENGTH, WIDTH)
ANY_LIST = f32(None, None)


def number(net: Network, value: int) -> Value:
    return net.constant(np.array(value, np.int32))


def with_element(
    net: Network, index: Value, whole: Value, element: Value, distance: int = 1, offset: int = 0
) -> Value:
    """``concat(whole[:index], element, whole[index + distance:])``, as converters write it."""

    def vector(scalar: Value, others: int) -> Value:
        first = net.add(Reshape((1,)), scalar)
        return net.add(Concat(0), first, net.constant(np.array([others], np.int32)))

    zeros, all_of_it = (net.constant(np.full(2, v, np.int32)) for v in (offset, -1))
    following = net.add(ADD, index, number(net, distance))
    front = net.add(Slice(), whole, zeros, vector(index, -1))
    back = net.add(Slice(), whole, vector(following, 0), all_of_it)
    return net.add(Concat(0), front, element, back)


def listing(limit: int, start: int | None = 0, step: int = 1, **changes: int) -> Graph:
    """Exchanges ``list[i]`` for ``list[i] + source[i]``, for all i below a limit."""

    def below(net: Network, i: Value, *_: Value) -> Value:
        return net.add(LESS, i, number(net, limit))

    def body(net: Network, i: Value, whole: Value, source: Value) -> tuple[Value, ...]:
        element = net.add(ADD, net.add(Gather(), source, i), net.add(Gather(), whole, i))
        element = net.add(Reshape((1, WIDTH)), element)
        changed = with_element(net, i, whole, element, **changes)
        return net.add(ADD, i, number(net, step)), changed

    infos = [NUMBER, ANY_LIST, ANY_LIST]
    loop = While(graph_of(infos, below), graph_of(infos, body))

    def build(net: Network, first: Value, whole: Value, source: Value) -> tuple[Value, ...]:
        begin = first if start is None else number(net, start)
        return net.add_layer(loop, (begin, whole, source), name="loop").outputs

    return graph_of([NUMBER, LIST, LIST], build)


def expected(limit: int, start: int, step: int, whole: Array, source: Array) -> Array:
    """The same in NumPy."""
    result = whole.copy()
    for index in range(start, limit, step):
        result[index] += source[index]
    return result


def bodies(graph: Graph) -> list[str]:
    """Names of the operations in the body of the only loop."""
    operations = [layer.operation for layer in specialize(graph).layers]
    (loop,) = [operation for operation in operations if isinstance(operation, While)]
    body = loop.body_graph
    assert isinstance(body, Graph)
    return [layer.operation.name for layer in body.layers]


ARRAYS = [
    np.random.default_rng(seed).standard_normal((LENGTH, WIDTH)).astype(np.float32)
    for seed in (1, 2)
]


@pytest.mark.parametrize(("limit", "start", "step"), [(6, 0, 1), (5, 2, 1), (6, 1, 2), (0, 3, 1)])
def test_lists_are_written_element_by_element(limit: int, start: int, step: int) -> None:
    graph = listing(limit, start, step)
    assert specialize(graph).is_fully_shaped
    assert "Concat" not in bodies(graph)
    model = Model(graph, runtime_of())
    np.testing.assert_array_equal(
        model(np.array(0, np.int32), *ARRAYS)[1], expected(limit, start, step, *ARRAYS)
    )


@pytest.mark.parametrize(
    ("arguments", "changes"),
    [
        ((6, None, 1), {}),  # its beginning is unknown
        ((5, 0, 1), {"distance": 2}),  # takes an element away
        ((6, 0, 1), {"distance": 0}),  # adds one
        ((7, 0, 1), {}),  # goes on after the list
        ((2, -1, 1), {}),  # begins in front of it
    ],
)
def test_other_joins_stay_as_they_are(
    arguments: tuple[int, int | None, int], changes: dict[str, int]
) -> None:
    assert "Concat" in bodies(listing(*arguments, **changes))


def test_what_begins_anywhere_is_right_all_the_same() -> None:
    model = Model(listing(6, None), runtime_of())
    np.testing.assert_array_equal(
        model(np.array(3, np.int32), *ARRAYS)[1], expected(6, 3, 1, *ARRAYS)
    )


def _below(info: TensorInfo) -> Graph:
    return graph_of(
        [i32(1), info], lambda net, i, _: net.add(LESS, i, net.constant(np.array([4], np.int32)))
    )


def _doubling(info: TensorInfo) -> Graph:
    return counting(info, body=lambda net, i, x: (net.add(ADD, x, x),))


def num_networks() -> int:
    """How many networks with backends for their layers there are in this process."""
    gc.collect()
    return sum(isinstance(it, OptimizedNetwork) for it in gc.get_objects())


def test_networks_of_graphs_go_with_the_plans_that_run_them() -> None:
    """Each set of shapes has graphs of its own, and callers may have any number of these."""
    info = f32(None)
    graph = graph_of(
        [i32(1), info],
        lambda net, *inputs: (
            net.add_layer(While(_below(info), _doubling(info)), inputs, name="loop").outputs
        ),
    )
    model = Model(graph, runtime_of(program_cache_size=2))
    before = num_networks()
    for length in range(1, 12):
        _, doubled = model(np.zeros(1, np.int32), np.ones(length, np.float32))
        np.testing.assert_array_equal(doubled, np.full(length, 16, np.float32))
    # Of the whole, of the condition and of the body, for as many lengths as are kept.
    assert num_networks() - before <= 2 * 3
    assert {layer.inside for layer in placement_of(model).layers} == {
        "",
        "loop/condition",
        "loop/body",
    }


def test_limits_that_a_loop_hands_on_are_constants_of_its_graphs() -> None:
    """Files of models with open shapes hand in how many turns there are."""

    def below(net: Network, i: Value, limit: Value, _: Value) -> Value:
        return net.add(LESS, i, limit)

    def body(net: Network, i: Value, limit: Value, x: Value) -> tuple[Value, ...]:
        return net.add(ADD, i, number(net, 1)), limit, net.add(ADD, x, x)

    infos = [NUMBER, NUMBER, f32(2)]
    loop = While(graph_of(infos, below), graph_of(infos, body))

    def build(net: Network, x: Value) -> tuple[Value, ...]:
        return net.add_layer(loop, (number(net, 0), number(net, 5), x)).outputs

    graph = graph_of([f32(2)], build)
    (layer,) = specialize(graph).layers
    assert isinstance(layer.operation, While)
    count = counted(layer.operation, layer.inputs)
    assert count is not None
    assert count.num_turns == 5
    assert layer.operation.body_graph.output_infos[1] == NUMBER
    i, limit, x = Model(graph, runtime_of())(floats(1, 3))
    assert (int(i), int(limit), x.tolist()) == (5, 5, [32, 96])


Condition = Callable[[Network, Value, Value], Value]


def less(net: Network, left: Value, right: int) -> Value:
    return net.add(LESS, left, number(net, right))


def both(net: Network, *operands: Value) -> Value:
    return net.add(LogicalBinary(LogicalBinaryOperation.LOGICAL_AND), *operands)


@pytest.mark.parametrize(
    ("condition", "num_turns"),
    [
        (lambda net, i, j: less(net, i, 7), 7),
        (lambda net, i, j: less(net, j, 7), 2),  # 3, 5
        (lambda net, i, j: less(net, j, 8), 3),  # 3, 5, 7
        (lambda net, i, j: both(net, less(net, i, 7), less(net, j, 8)), 3),
        (lambda net, i, j: less(net, i, -1), 0),
        (lambda net, i, j: less(net, i, 2**31 - 1), None),  # the counter would wrap
        (lambda net, i, j: net.add(LESS, number(net, 1), i), None),
        (lambda net, i, j: net.add(LESS, i, j), None),
        (lambda net, i, j: net.add(Comparison(ComparisonOperation.GREATER), i, j), None),
        (lambda net, i, j: both(net, less(net, i, 7), net.add(LESS, i, j)), None),
    ],
)
def test_turns_are_counted_where_counters_meet_constants(
    condition: Condition, num_turns: int | None
) -> None:
    net = Network()
    starts = [number(net, 0), number(net, 3)]

    def body(net: Network, i: Value, j: Value) -> tuple[Value, Value]:
        return net.add(ADD, i, number(net, 1)), net.add(ADD, number(net, 2), j)

    loop = While(graph_of([NUMBER] * 2, condition), graph_of([NUMBER] * 2, body))
    count = counted(loop, starts)
    counters = {0: LoopCounter(0, 1), 1: LoopCounter(3, 2)}
    assert count == (None if num_turns is None else LoopCount(num_turns, counters))
