from __future__ import annotations

import pytest

from armpy.errors import GraphValidationError, LayerValidationError
from armpy.graph import Graph, nested_graphs, to_dot, verify_graph
from armpy.graph.nesting import MAX_NESTING
from armpy.graph.network import Network
from armpy.ops import If, While
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType
from armpy_testing.models.control_flow import (
    BOOL,
    applied,
    below,
    chosen,
    counter,
    counting,
    graph_of,
    growing,
    loop,
)
from armpy_testing.models.networks import ADD, MUL, RELU, f32, floats, i32

PLUS, TIMES = applied(ADD, floats(1), f32(None)), applied(MUL, floats(2), f32(None))


def quantized(scale: float) -> TensorInfo:
    return TensorInfo((2,), DataType.QASYMM_U8, Quantization.per_tensor(scale))


def passing(info: TensorInfo) -> Graph:
    """Gives its input back."""
    return graph_of([info], lambda net, x: x)


def test_outputs_are_what_both_graphs_give() -> None:
    two = applied(ADD, floats(1), f32(2))
    assert If(two, two).infer([BOOL, f32(2)]) == (f32(2),)
    three = graph_of([f32(2)], lambda net, x: net.constant(floats(1, 2, 3)))
    assert If(two, three).infer([BOOL, f32(2)])[0].shape == (None,)
    flat = graph_of([f32(2)], lambda net, x: net.constant(floats(1).reshape(())))
    assert If(two, flat).infer([BOOL, f32(2)])[0].shape is None


def test_a_declared_shape_is_taken_where_the_graphs_differ() -> None:
    two = applied(ADD, floats(1), f32(2))
    three = graph_of([f32(2)], lambda net, x: net.constant(floats(1, 2, 3)))
    assert If(two, three).infer([BOOL, f32(2)], [f32(3)]) == (f32(3),)
    with pytest.raises(LayerValidationError, match=r"declared output shape"):
        If(two, two).infer([BOOL, f32(2)], [f32(3)])


def test_quantisation_of_outputs_is_that_of_the_graphs() -> None:
    same = passing(quantized(0.5))
    assert If(same, same).infer([BOOL, quantized(0.5)]) == (quantized(0.5),)
    with pytest.raises(LayerValidationError, match=r"output 0 has different types.*0.5"):
        If(same, same).infer([BOOL, quantized(0.5)], [quantized(0.25)])


def test_a_carried_shape_is_known_if_every_turn_keeps_it() -> None:
    assert counter(3).infer([i32(1)]) == (i32(1),)
    infos = growing(3).output_infos
    assert [info.shape for info in infos] == [(1,), (None,)]


def test_shapes_of_the_graphs_are_known_for_all_inputs() -> None:
    unknown = TensorInfo(None, DataType.FLOAT32)
    fixed = graph_of([unknown], lambda net, x: net.constant(floats(1, 2)))
    assert If(fixed, fixed).infer([BOOL, unknown]) == (f32(2),)


def test_a_layer_has_as_many_outputs_as_its_graphs() -> None:
    both = graph_of([f32(2)], lambda net, x: (x, net.add(RELU, x)))
    assert If(both, both).num_outputs == 2
    assert While(below(3, f32(2)), counting(f32(2))).num_outputs == 1


@pytest.mark.parametrize(
    ("infos", "text"),
    [
        ([], "condition is missing|number of inputs"),
        ([f32(1), f32(2)], r"the condition is not one truth value.*got FLOAT32 \(1,\)"),
        ([TensorInfo((2,), DataType.BOOLEAN), f32(2)], r"one truth value.*BOOLEAN \(2,\)"),
        ([BOOL], "the then graph takes another number of inputs.*Expected 1; got 0"),
        ([BOOL, i32(2)], "input 0 has different types.*FLOAT32.*SIGNED32"),
        ([BOOL, f32(2, 2)], r"input 0 of the then graph has another shape.*\(\?,\); got \(2, 2\)"),
    ],
)
def test_what_an_if_is_handed_has_to_fit_its_graphs(infos: list[TensorInfo], text: str) -> None:
    with pytest.raises(LayerValidationError, match=text):
        If(PLUS, TIMES).infer(infos)


def test_both_graphs_of_an_if_have_to_give_the_same() -> None:
    more = graph_of([f32(None)], lambda net, x: (x, x))
    with pytest.raises(LayerValidationError, match=r"different numbers.*1 \(then\); got 2 \(else"):
        If(PLUS, more).infer([BOOL, f32(2)])
    with pytest.raises(LayerValidationError, match=r"the else graph takes another number"):
        If(PLUS, graph_of([], lambda net: net.constant(floats(1)))).infer([BOOL, f32(2)])
    other = graph_of([f32(None)], lambda net, x: net.constant([1]))
    with pytest.raises(LayerValidationError, match=r"output 0 has different types for then and"):
        If(PLUS, other).infer([BOOL, f32(2)])


@pytest.mark.parametrize(
    ("condition", "body", "text"),
    [
        (counting(), counting(), r"output is not one truth value.*SIGNED32 \(1,\)"),
        (graph_of([i32(1)], lambda net, i: (i, i)), counting(), "wrong number of outputs.*got 2"),
        (below(3), graph_of([i32(1)], lambda net, i: (i, i)), "more outputs.*at most 1; got 2"),
        (below(3), applied(ADD, floats(1), f32(1)), "input 0 has different types for the body"),
        (
            below(3),
            graph_of([i32(1)], lambda net, i: net.constant(floats(1))),
            "carried value 0 has different types",
        ),
    ],
)
def test_condition_and_body_of_a_while_have_to_go_together(
    condition: Graph, body: Graph, text: str
) -> None:
    with pytest.raises(LayerValidationError, match=text):
        While(condition, body).infer([i32(1)])


def test_a_layer_says_which_graphs_it_runs() -> None:
    net = Network()
    net.output("n", net.add(counter(3), net.input("i", i32(1)), name="loop"))
    text = to_dot(net.build())
    assert "body_graph : Graph(in0 -\\> out0, 1 layers)" in text
    assert repr(PLUS) == "Graph(in0 -> out0, 1 layers)"


def test_something_else_in_place_of_a_graph_is_refused() -> None:
    net = Network()
    i = net.input("i", i32(1))
    with pytest.raises(LayerValidationError, match=r"'body_graph' has the wrong form.*Subgraph"):
        net.add(While(below(3), "body"), i)  # type: ignore[arg-type]


def test_graphs_with_variables_are_refused_with_their_names() -> None:
    body = Network()
    i = body.input("i", i32(1))
    state = body.variable("state", i32(1))
    body.assign(state, body.add(ADD, i, state))
    body.output("i", i)
    outer = graph_of([i32(1)], lambda net, x: net.add(While(below(3), body.build()), x, name="l"))
    with pytest.raises(
        GraphValidationError, match=r"While 'l': the body graph has variables.*stat"
    ):
        nested_graphs(outer)


def test_inner_graphs_are_found_once_each() -> None:
    outer = chosen(loop(3), loop(4), i32(1))
    graphs = nested_graphs(outer)
    assert len(graphs) == 6
    shared = loop(3)
    assert len(nested_graphs(chosen(shared, shared, i32(1)))) == 3
    verify_graph(outer)


def test_graphs_may_lie_in_each_other_to_a_limit() -> None:
    graph = applied(ADD, floats(1), f32(1))
    for _ in range(MAX_NESTING):
        inner = graph
        graph = graph_of(
            [f32(1)],
            lambda net, x, g=inner: net.add(If(g, g), net.constant([True]), x),
        )
    assert len(nested_graphs(graph)) == MAX_NESTING
    inner = graph
    graph = graph_of([f32(1)], lambda net, x: net.add(If(inner, inner), net.constant([True]), x))
    with pytest.raises(GraphValidationError, match=f"at most {MAX_NESTING} levels"):
        nested_graphs(graph)
