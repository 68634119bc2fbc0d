from __future__ import annotations

from itertools import combinations

import pytest

from armpy import ops
from armpy.errors import GraphValidationError
from armpy.graph import Graph, Layer, SubgraphView, Value, nested_graphs, to_dot
from armpy.graph.network import Network
from armpy.tensor import Shape, TensorInfo
from armpy.types import DataType
from armpy_testing.models.networks import RELU, chain, diamond, f32, graph_of_edges, i32


def test_layers_and_values_show_what_they_are() -> None:
    graph = chain(1)
    assert repr(graph.layers[0]) == "Layer(0, ElementwiseBinary 'add_0')"
    assert repr(graph.inputs[0]) == "Value(0, 'x', FLOAT32 (4,))"


def test_a_layer_gives_its_operands_infos_and_none_for_those_left_out() -> None:
    net = Network()
    x = net.input("x", f32(1, 4, 4, 1))
    w = net.input("w", f32(1, 1, 1, 1))
    from armpy.ops import Convolution2d

    layer = net.add_layer(Convolution2d(), [x, w, None])
    assert layer.input_infos == (x.info, w.info)
    assert layer.output_infos == (f32(1, 4, 4, 1),)


def test_an_operand_left_out_in_the_middle_has_no_reader() -> None:
    from armpy.ops import Pad

    net = Network()
    x, padding = net.input("x", f32(2)), net.input("padding", i32(1, 2))
    net.output("y", net.add(Pad(), x, None, padding))
    graph = net.build()
    assert set(graph.consumers) == {x, padding}
    assert graph.layers[0].input_infos == (x.info, None, padding.info)
    assert SubgraphView.of(graph, graph.layers).inputs == (x, padding)
    assert to_dot(graph).count("->") == 3


def test_a_view_reads_what_others_make_and_gives_what_others_read() -> None:
    graph = diamond()
    top, left, right, bottom = graph.layers
    view = SubgraphView.of(graph, [left, top])
    assert view.layers == (top, left)
    assert view.inputs == graph.inputs
    assert view.outputs == (top.outputs[0], left.outputs[0])
    assert SubgraphView.of(graph, [right, bottom]).inputs == (top.outputs[0], left.outputs[0])


def test_a_value_read_inside_and_handed_to_the_caller_is_an_output_of_the_view() -> None:
    graph = graph_of_edges([[], [0]])
    view = SubgraphView.of(graph, graph.layers)
    assert view.outputs == graph.outputs


def test_an_unread_value_is_not_an_output_of_the_view() -> None:
    net = Network()
    x = net.input("x", f32(1))
    net.add(RELU, x, name="dead")
    net.output("y", net.add(RELU, x))
    graph = net.build()
    assert SubgraphView.of(graph, graph.layers).outputs == graph.outputs


def test_what_a_variable_keeps_is_an_output_of_the_view() -> None:
    net = Network()
    state = net.variable("v", f32(1))
    following = net.add(RELU, state)
    net.assign(state, following)
    net.output("y", net.add(RELU, following))
    graph = net.build()
    view = SubgraphView.of(graph, graph.layers)
    assert view.inputs == (state,)
    assert following in view.outputs


def test_a_view_is_convex_unless_a_path_leaves_it_and_comes_back() -> None:
    graph = diamond()
    top, left, right, bottom = graph.layers
    assert SubgraphView.of(graph, [top, left, right, bottom]).is_convex_in(graph)
    assert SubgraphView.of(graph, [top, left]).is_convex_in(graph)
    assert SubgraphView.of(graph, [left, right]).is_convex_in(graph)
    assert not SubgraphView.of(graph, [top, left, bottom]).is_convex_in(graph)


def test_convexity_sees_paths_over_several_layers() -> None:
    graph = graph_of_edges([[], [0], [1], [0, 2]])
    first, _, _, last = graph.layers
    assert not SubgraphView.of(graph, [first, last]).is_convex_in(graph)


def test_a_part_of_a_view_is_the_view_of_its_layers() -> None:
    graph = diamond()
    view = SubgraphView.of(graph, graph.layers)
    for count in range(1, 5):
        for layers in combinations(graph.layers, count):
            part, expected = view.part(layers), SubgraphView.of(graph, layers)
            assert part.layers == expected.layers
            assert part.inputs == expected.inputs
            assert part.outputs == expected.outputs
            assert part.is_convex_in(view) is expected.is_convex_in(graph)


def test_a_part_of_a_view_gives_what_the_view_gives_and_no_more() -> None:
    graph = graph_of_edges([[], [0], [1]])
    first, second, third = graph.layers
    view = SubgraphView((first, second), graph.inputs, second.outputs)
    assert view.part([first]).outputs == first.outputs
    assert view.part([first, second]).outputs == second.outputs
    assert view.part([first, third]).layers == (first,)


@pytest.mark.parametrize(
    ("inferred", "declared", "described"),
    [
        (None, (None, 3), (None, 3)),
        ((None, None), (None, 3), (None, 3)),
        ((2, None), (None, 3), (2, 3)),
        ((2, 4), (None, 3), (2, 4)),  # the file is wrong
        ((None, None), (3,), (None, None)),
        ((None, 4), None, (None, 4)),
    ],
)
def test_declared_output_shapes_describe_what_inference_leaves_open(
    inferred: Shape | None, declared: Shape | None, described: Shape | None
) -> None:
    net = Network()
    x = net.input("x", TensorInfo(inferred, DataType.FLOAT32))
    net.output("y", x, declared_shape=declared)
    graph = net.build()
    assert [info.shape for info in graph.described_outputs] == [described]
    assert graph.output_infos == (x.info,)  # nothing relies on the declaration


def looping(condition: Graph, body: Graph) -> Graph:
    """A graph with one loop."""
    x, y = Value(0, f32(2), "x"), Value(1, f32(2), "y")
    return Graph((x,), (y,), ("y",), (Layer(0, "l", ops.While(condition, body), (x,), (y,)),))


def test_a_graph_that_several_run_is_named_once_and_before_them() -> None:
    shared = chain()
    middle = looping(shared, shared)
    outer = looping(middle, looping(shared, middle))
    graphs = nested_graphs(outer)
    assert len(graphs) == len(set(graphs)) == 3
    assert graphs.index(shared) < graphs.index(middle)


def test_a_graph_that_lies_in_itself_is_refused() -> None:
    inner = looping(chain(), chain())
    outer = looping(chain(), inner)
    loop = Layer(0, "l", ops.While(chain(), outer), outer.inputs, outer.outputs)
    object.__setattr__(inner, "layers", (loop,))  # no caller can make one otherwise
    with pytest.raises(GraphValidationError, match="control flow runs a graph that it is in"):
        nested_graphs(outer)
