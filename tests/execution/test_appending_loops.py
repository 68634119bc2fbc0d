"""Loops that append to values which they do not read: each graph is planned once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from armpy.errors import MemoryLimitError
from armpy.execution.steps.appending import find_appends
from armpy.graph import Graph, Value
from armpy.graph.network import Network
from armpy.model import Model
from armpy.ops import Concat, Reduce, ReduceOperation, Reshape, While
from armpy.tensor import TensorInfo
from armpy_testing.backends.fake_backends import runtime_of
from armpy_testing.models.control_flow import LESS, below, counting, graph_of, growing, loaded
from armpy_testing.models.networks import f32, i32, ints

MATRIX = f32(None, None)

Body = Callable[[Network, Value, Value], Value]
"""Adds what makes the next matrix of a counter and a matrix."""


def appending(body: Body, info: TensorInfo = MATRIX) -> Graph:
    """``while in0 < 4`` around a body."""
    operation = While(below(4, info), counting(info, body=lambda net, i, x: (body(net, i, x),)))
    return graph_of(
        [i32(1), info], lambda net, *inputs: net.add_layer(operation, inputs, name="loop").outputs
    )


def loop_of(graph: Graph) -> While:
    """The only layer's operation."""
    (layer,) = graph.layers
    assert isinstance(layer.operation, While)
    return layer.operation


def column(net: Network, counter: Value) -> Value:
    """The counter twice, one below the other."""
    number = net.add(Reshape((1, 1)), counter)
    return net.add(Concat(0), number, number)


@pytest.mark.parametrize("axis", [1, -1])
@pytest.mark.parametrize("is_in_front", [False, True])
def test_columns_are_joined_when_the_loop_ends(axis: int, is_in_front: bool) -> None:
    def body(net: Network, counter: Value, whole: Value) -> Value:
        parts = (whole, column(net, counter))
        return net.add(Concat(axis), *(reversed(parts) if is_in_front else parts))

    model = Model(appending(body, i32(None, None)), runtime_of())
    first = np.array([[7], [8]], np.int32)
    for start in (0, 2, 4, 0):
        _, matrix = model(ints(start), first)
        turns = np.tile(np.arange(start, 4, dtype=np.int32), (2, 1))
        expected = [turns[:, ::-1], first] if is_in_front else [first, turns]
        np.testing.assert_array_equal(matrix, np.concatenate(expected, 1))
    network = loaded(model)
    assert [len(inner.program_cache.programs) for inner in network.subgraphs.networks] == [1, 1]


def _read(net: Network, counter: Value, whole: Value) -> Value:
    """The matrix, and its sum as another row."""
    return net.add(Concat(0), whole, net.add(Reduce(ReduceOperation.SUM, (0,), True), whole))


def _twice(net: Network, counter: Value, whole: Value) -> Value:
    return net.add(Concat(0), whole, whole)


@pytest.mark.parametrize("body", [_read, _twice])
def test_values_that_turns_read_are_carried_whole(body: Body) -> None:
    graph = appending(body)
    assert not any(find_appends(loop_of(graph)))
    first = expected = np.array([[1, 2]], np.float32)
    for _ in range(3):
        added = expected if body is _twice else expected.sum(0, keepdims=True)
        expected = np.concatenate([expected, added])
    np.testing.assert_array_equal(Model(graph, runtime_of())(ints(1), first)[1], expected)


def test_values_that_the_condition_reads_are_carried_whole() -> None:
    vector = f32(None)
    limit = np.array([5], np.float32)

    def is_small(net: Network, _: Value, values: Value) -> Value:
        total = net.add(Reduce(ReduceOperation.SUM, (0,), True), values)
        return net.add(LESS, total, net.constant(limit))

    grow = loop_of(growing(9))
    body = grow.body_graph
    operation = While(graph_of([i32(1), vector], is_small), body)
    graph = graph_of(
        [i32(1), vector], lambda net, *inputs: net.add_layer(operation, inputs).outputs
    )
    assert any(find_appends(grow))
    assert not any(find_appends(operation))
    _, values = Model(graph, runtime_of())(ints(0), np.array([2], np.float32))
    np.testing.assert_array_equal(values, [2, 1, 1, 1])


def test_what_a_loop_appends_is_limited() -> None:
    model = Model(growing(1 << 20), runtime_of(memory_limit_bytes=4096, loop_timeout_s=None))
    with pytest.raises(
        MemoryLimitError,
        match=r"'grow' / body / Concat 'append': .* at most 4096 bytes .*after 1025 turns",
    ):
        model(ints(0), np.empty(0, np.float32))
