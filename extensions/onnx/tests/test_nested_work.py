"""Graphs and functions in each other: work grows with the file, and is counted before it begins."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")

import itertools

from onnx import TensorProto, helper, numpy_helper

import armpy
from armpy.errors import ParserError
from armpy.execution.programs import subgraph_networks as family
from armpy_onnx.structures.walking import Walker

node, value = helper.make_node, helper.make_tensor_value_info
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
DEEPEST = 31
"""What protocol buffers can hold."""


def file_of(nodes: list[Any], inputs: list[Any], result: str, **kwargs: Any) -> bytes:
    """A model that gives one tensor of floats."""
    constants = [
        numpy_helper.from_array(np.array([1], np.float32), "one"),
        numpy_helper.from_array(np.array(10), "ten"),
        numpy_helper.from_array(np.array(True), "true"),
    ]
    graph = helper.make_graph(nodes, "g", inputs, [value(result, FLOAT, None)], constants)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("own", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10, **kwargs)
    return bytes(model.SerializeToString())


def choices(depth: int, *, is_tree: bool) -> bytes:
    """An If in an If in an If, in one branch of each or in both."""
    nodes = [node("Add", ["x", "one"], ["r0"])]
    for level in range(1, depth + 1):
        inner = helper.make_graph(nodes, "then", [], [value(f"r{level - 1}", FLOAT, [1])])
        plain = [node("Identity", ["x"], [f"e{level}"])]
        other = helper.make_graph(plain, "else", [], [value(f"e{level}", FLOAT, [1])])
        branches = {"then_branch": inner, "else_branch": inner if is_tree else other}
        nodes = [node("If", ["k"], [f"r{level}"], **branches)]
    return file_of(nodes, [value("x", FLOAT, [1]), value("k", BOOL, [])], f"r{depth}")


def loops(depth: int, *, trips: str, collects: bool = False) -> bytes:
    """A Loop in a Loop in a Loop around an addition."""
    nodes = [node("Add", ["v0", "one"], ["r0"])]
    for level in range(1, depth + 1):
        before, after = f"v{level - 1}", f"r{level - 1}"
        nodes = [node("Identity", [f"c{level}"], [f"d{level}"]), *nodes]
        inputs = [value(f"i{level}", INT64, []), value(f"c{level}", BOOL, [])]
        outputs = [value(f"d{level}", BOOL, []), value(after, FLOAT, [1])]
        if collects:
            nodes.append(node("Identity", [after], [f"s{level}"]))
            outputs.append(value(f"s{level}", FLOAT, [1]))
        body = helper.make_graph(nodes, "body", [*inputs, value(before, FLOAT, [1])], outputs)
        loop_outputs = [f"r{level}", *[f"all{level}"] * collects]
        nodes = [node("Loop", [trips, "true", f"v{level}"], loop_outputs, body=body)]
    inputs = [value(f"v{depth}", FLOAT, [1])]
    inputs += [value("m", INT64, [])] * (trips == "m")
    return file_of(nodes, inputs, f"r{depth}")


def load(contents: bytes) -> armpy.Model:
    """The model on CpuRef; on a busy machine its loops may take longer than the usual limit."""
    runtime = armpy.Runtime(armpy.RuntimeOptions(backends=["CpuRef"], loop_timeout_s=None))
    return armpy.load(contents, runtime=runtime)


@pytest.fixture(name="graphs_walked")
def _graphs_walked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Labels of the graphs whose nodes are added."""
    labels: list[str] = []
    inlined = Walker.inlined

    def counted(self: Walker, graph: Any, arguments: Any, scope: Any, prefix: str) -> Any:
        labels.append(prefix)
        return inlined(self, graph, arguments, scope, prefix)

    monkeypatch.setattr(Walker, "inlined", counted)
    return labels


@pytest.mark.sampled(2)
@pytest.mark.parametrize("depth", [10, DEEPEST])
def test_as_many_choices_lie_in_each_other_as_a_file_can_hold(depth: int) -> None:
    model = load(choices(depth, is_tree=False))
    for condition in (True, False):
        outputs = model.run({"x": np.array([2], np.float32), "k": np.array(condition)})
        assert next(iter(outputs.values())) == (3 if condition else 2)


@pytest.mark.slow
def test_a_graph_is_walked_for_its_types_and_for_its_layers(graphs_walked: list[str]) -> None:
    load(choices(6, is_tree=True)).close()
    num_graphs = 2 * (2**6 - 1)
    assert num_graphs < len(graphs_walked) <= 2 * num_graphs


@pytest.mark.slow
def test_a_loop_is_walked_as_often_however_many_are_around_it(graphs_walked: list[str]) -> None:
    counts = []
    for depth in (3, 6, 9):
        graphs_walked.clear()
        model = load(loops(depth, trips="m"))
        counts.append(len(graphs_walked))
        outputs = model.run({f"v{depth}": np.array([0], np.float32), "m": np.array(1)})
        assert next(iter(outputs.values())) == 1
    assert counts[2] - counts[1] == counts[1] - counts[0]


def test_turns_are_tried_out_in_few_loops_in_each_other() -> None:
    model = load(loops(3, trips="ten", collects=True))
    assert next(iter(model.run({"v3": np.array([0], np.float32)}).values())) == 1000
    with pytest.raises(ParserError, match=r"loops in loops collect.*at most 4"):
        load(loops(9, trips="ten", collects=True))


def test_loops_in_loops_are_written_out_no_more_than_one_would_be() -> None:
    model = load(loops(4, trips="ten"))
    assert len(model.graph.layers) < 300
    assert next(iter(model.run({"v4": np.array([0], np.float32)}).values())) == 10_000


@pytest.mark.slow
def test_graphs_after_the_first_ones_are_prepared_when_they_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(family, "MOST_AHEAD", 4)
    model = load(choices(6, is_tree=True))
    outputs = model.run({"x": np.array([2], np.float32), "k": np.array(True)})
    assert next(iter(outputs.values())) == 3


def doubling(depth: int) -> bytes:
    """A function that calls the next one twice, which calls the next one twice."""
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("own", 1)]
    functions = []
    for level in range(depth):
        names = ("x", "t", "y")
        calls = [
            node(f"F{level + 1}", [a], [b], domain="own") for a, b in itertools.pairwise(names)
        ]
        functions.append(helper.make_function("own", f"F{level}", ["x"], ["y"], calls, opsets))
    last = [node("Neg", ["x"], ["y"])]
    functions.append(helper.make_function("own", f"F{depth}", ["x"], ["y"], last, opsets))
    call = node("F0", ["x"], ["y"], domain="own")
    return file_of([call], [value("x", FLOAT, [1])], "y", functions=functions)


def test_functions_are_counted_before_the_first_one_is_written_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    load(doubling(5)).close()
    monkeypatch.delattr(Walker, "walk")
    with pytest.raises(ParserError, match=r"too long.*at most \d+ nodes.*got 3145727"):
        load(doubling(20))
    with pytest.raises(ParserError, match=r"too deeply.*at most 32"):
        load(doubling(40))
