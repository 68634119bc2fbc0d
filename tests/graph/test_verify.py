from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from armpy.errors import GraphValidationError
from armpy.graph import Graph, Layer, Value, Variable, verify_graph
from armpy.graph.network import Network
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_testing.models.networks import RELU, chain, diamond, f32, floats


@pytest.mark.parametrize("graph", [chain(), diamond()])
def test_a_sound_graph_passes(graph: Graph) -> None:
    verify_graph(graph)


def test_layers_out_of_order_are_found() -> None:
    graph = chain(2)
    text = "'add_1': input 0 is read before it is written"
    with pytest.raises(GraphValidationError, match=text):
        verify_graph(replace(graph, layers=graph.layers[::-1]))


def test_a_cycle_is_found() -> None:
    graph = chain(2)
    first, second = graph.layers
    looped = replace(first, inputs=(second.outputs[0], first.inputs[1]))
    with pytest.raises(GraphValidationError, match="'add_0': input 0 is read before"):
        verify_graph(replace(graph, layers=(looped, second)))


def test_a_dangling_value_is_found() -> None:
    graph = chain(1)
    layer = replace(graph.layers[0], inputs=(Value(99, f32(4), "lost"), None))
    with pytest.raises(GraphValidationError, match=r"input 0.*got Value\(99, 'lost'"):
        verify_graph(replace(graph, layers=(layer,)))


def test_a_value_written_twice_is_found() -> None:
    graph = chain(2)
    first, second = graph.layers
    twice = replace(second, outputs=first.outputs)
    with pytest.raises(GraphValidationError, match=r"'add_1': Value.*'add_0'.* is written twice"):
        verify_graph(replace(graph, layers=(first, twice)))


def test_a_graph_input_that_is_written_is_found() -> None:
    graph = chain(1)
    layer = replace(graph.layers[0], outputs=graph.inputs)
    with pytest.raises(GraphValidationError, match=r"'x'.* is written twice"):
        verify_graph(replace(graph, layers=(layer,)))


def test_an_unwritten_output_is_found() -> None:
    graph = replace(chain(1), outputs=(Value(99, f32(4), "lost"),))
    with pytest.raises(GraphValidationError, match=r"output is never written.*'lost'"):
        verify_graph(graph)


def test_a_variable_with_an_unwritten_next_value_is_found() -> None:
    state = Value(98, f32(4), "v")
    variable = Variable(state, Value(99, f32(4), "lost"), np.zeros(4, np.float32))
    with pytest.raises(GraphValidationError, match=r"never written.*'lost'"):
        verify_graph(replace(chain(1), variables=(variable,)))


def test_one_value_as_two_inputs_is_found() -> None:
    graph = chain(1)
    twice = replace(graph, inputs=graph.inputs * 2, default_shapes=(None, None))
    with pytest.raises(GraphValidationError, match="the source of two inputs"):
        verify_graph(twice)


def test_repeated_value_ids_are_found() -> None:
    graph = chain(1)
    layer = replace(graph.layers[0], outputs=(replace(graph.outputs[0], id=0),))
    with pytest.raises(GraphValidationError, match="value ids repeat: 0"):
        verify_graph(replace(graph, layers=(layer,), outputs=layer.outputs))


def test_repeated_layer_ids_are_found() -> None:
    graph = chain(2)
    first, second = graph.layers
    with pytest.raises(GraphValidationError, match="layer ids repeat: 0"):
        verify_graph(replace(graph, layers=(first, replace(second, id=0))))


def test_repeated_input_names_are_found() -> None:
    graph = replace(chain(1), inputs=(Value(97, f32(1), "x"), *chain(1).inputs), layers=())
    broken = replace(graph, outputs=graph.inputs[:1], default_shapes=(None, None))
    with pytest.raises(GraphValidationError, match="input names repeat: x"):
        verify_graph(broken)


def test_repeated_output_names_are_found() -> None:
    graph = chain(1)
    twice = replace(
        graph, outputs=graph.outputs * 2, output_names=("y", "y"), output_shapes=(None, None)
    )
    with pytest.raises(GraphValidationError, match="output names repeat: y"):
        verify_graph(twice)


def test_a_missing_output_name_is_found() -> None:
    with pytest.raises(GraphValidationError, match="Expected 1 names; got 0"):
        verify_graph(replace(chain(1), output_names=()))


def test_missing_default_shapes_are_found_unless_there_are_none() -> None:
    graph = chain(1)
    assert replace(graph, default_shapes=()).default_shapes == (None,)
    with pytest.raises(GraphValidationError, match="Expected 1 default shapes; got 2"):
        verify_graph(replace(graph, default_shapes=(None, None)))


def test_missing_output_shapes_are_found_unless_there_are_none() -> None:
    graph = chain(1)
    assert replace(graph, output_shapes=()).output_shapes == (None,)
    with pytest.raises(GraphValidationError, match="Expected 1 declared shapes; got 2"):
        verify_graph(replace(graph, output_shapes=(None, None)))


@pytest.mark.parametrize(
    ("info", "text"),
    [
        (TensorInfo((2,), DataType.FLOAT32, is_constant=True), r"got float32 \(3,\)"),
        (TensorInfo((3,), DataType.SIGNED32, is_constant=True), "SIGNED32.*got float32"),
        (TensorInfo((3,), DataType.FLOAT32), "marked as constant"),
    ],
)
def test_a_constant_whose_elements_do_not_fit_is_found(info: TensorInfo, text: str) -> None:
    x = Value(0, f32(3), "x")
    constant = Value(1, info, "w", floats(1, 2, 3))
    layer = Layer(0, "relu", RELU, (constant,), (Value(2, f32(3), "y"),))
    graph = Graph((x,), layer.outputs, ("y",), (layer,))
    with pytest.raises(GraphValidationError, match="constant 'w' do not match.*" + text):
        verify_graph(graph)


def test_two_variables_of_one_key_are_refused() -> None:
    net = Network()
    states = [net.variable(name, f32(1), key=("k", 1)) for name in "ab"]
    net.output("y", net.add(RELU, states[0]))
    with pytest.raises(GraphValidationError, match=r"keys of variables repeat: \('k', 1\)"):
        verify_graph(net.build())
