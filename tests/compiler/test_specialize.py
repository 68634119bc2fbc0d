from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest
from armpy_reference import ReferenceBackend

from armpy.compiler import Evaluator, specialize
from armpy.errors import BackendError, LayerValidationError
from armpy.execution import Runtime, RuntimeOptions
from armpy.graph import Graph, Value
from armpy.graph.nesting import graphs_of, nested_graphs
from armpy.graph.network import Network
from armpy.model import Model
from armpy.ops import (
    Activation,
    ActivationFunction,
    BroadcastTo,
    Concat,
    GatherNd,
    If,
    NonZero,
    Transpose,
    While,
)
from armpy.ops.composite import Composite, LayerBuilder
from armpy.tensor import Shape, TensorInfo
from armpy.types import DataType
from armpy_testing.backends.fake_backends import FakeBackend
from armpy_testing.models.control_flow import BOOL, graph_of
from armpy_testing.models.networks import (
    ADD,
    MUL,
    RELU,
    f32,
    floats,
)


@pytest.fixture(scope="module")
def evaluator() -> Evaluator:
    return Evaluator(ReferenceBackend())


def layer_names(graph: Graph) -> list[str]:
    return [layer.name for layer in graph.layers]


def test_what_a_variable_keeps_is_alive() -> None:
    net = Network()
    state = net.variable("v", f32(4))
    net.assign(state, net.add(RELU, state, name="next"))
    net.output("y", net.input("x", f32(1)))
    graph = specialize(net.build())
    assert layer_names(graph) == ["next"]
    assert graph.variables[0].next_value is graph.layers[0].outputs[0]


@pytest.mark.parametrize(
    ("size", "is_folded"), [(1 << 18, True), ((1 << 18) + 5, False)], ids=["1 MiB", "more"]
)
def test_folding_never_bloats_a_network(evaluator: Evaluator, size: int, is_folded: bool) -> None:
    net = Network()
    net.input("x", f32(1))
    net.output("y", net.add(BroadcastTo((size,)), net.constant(floats(1))))
    graph = specialize(net.build(), evaluator=evaluator)
    assert (graph.layers == ()) is is_folded


def test_folding_in_many_steps_bloats_a_network_no_more_than_in_one(evaluator: Evaluator) -> None:
    net = Network()
    value = net.constant(np.ones(1000, np.float32))
    for _ in range(20):
        value = net.add(Concat(axis=0), value, value)
    net.output("y", value)
    graph = specialize(net.build(), evaluator=evaluator)
    folded = sum(v.data.nbytes for v in graph.values() if v.data is not None)
    assert graph.layers
    assert folded < (1 << 20) + 5 * 4000


def test_what_the_evaluator_does_not_support_is_not_folded() -> None:
    net = Network()
    net.output("y", net.add(RELU, net.constant(floats(1)), name="relu"))
    graph = specialize(net.build(), evaluator=Evaluator(FakeBackend(operations=())))
    assert layer_names(graph) == ["relu"]


def test_constants_whose_result_has_no_known_shape_are_not_folded(evaluator: Evaluator) -> None:
    class Unknown(Activation):
        """Gives no shape, whatever it reads."""

        __slots__ = ()

        def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[None]:
            return (None,)

    net = Network()
    net.output("y", net.add(Unknown(), net.constant(floats(1)), name="unknown"))
    assert layer_names(specialize(net.build(), evaluator=evaluator)) == ["unknown"]


@pytest.mark.parametrize(
    ("fault", "kind", "text"),
    [
        (ValueError("oops"), BackendError, "'sum': .*raised ValueError"),
        (LayerValidationError("oops"), LayerValidationError, "'sum': oops"),
    ],
)
def test_an_error_while_folding_names_the_layer(
    fault: Exception, kind: type[Exception], text: str
) -> None:
    net = Network()
    net.output("y", net.add(ADD, net.constant(floats(1)), net.constant(floats(1)), name="sum"))
    with pytest.raises(kind, match=text):
        specialize(net.build(), evaluator=Evaluator(FakeBackend(faults={"execute": fault})))


def test_declared_types_and_quantisation_are_kept() -> None:
    from armpy.tensor import Quantization

    info = TensorInfo((2,), DataType.QASYMM_U8, Quantization.per_tensor(0.5, 3))
    other = TensorInfo(None, DataType.QASYMM_U8, Quantization.per_tensor(1.0, 4))
    net = Network()
    net.output("y", net.add(RELU, net.input("x", info), output=other))
    assert specialize(net.build()).outputs[0].info == other.with_shape((2,))


def test_outputs_whose_shapes_follow_from_constants_are_folded(evaluator: Evaluator) -> None:
    net = Network()
    x = net.input("x", f32(2, 3))
    marked = net.constant(np.array([[True, False, True], [False, True, False]]))
    places = net.add(Transpose((1, 0)), net.add(NonZero(), marked))
    net.output("y", net.add(GatherNd(), x, places, name="gather"))
    graph = specialize(net.build(), [(2, 3)], evaluator=evaluator)
    assert layer_names(graph) == ["gather"]
    indices = graph.layers[0].inputs[1]
    assert indices is not None
    assert indices.data is not None
    assert indices.data.tolist() == [[0, 0], [0, 2], [1, 1]]
    assert graph.outputs[0].info.shape == (3,)


def test_what_comes_to_be_too_large_is_left_to_the_execution(evaluator: Evaluator) -> None:
    net = Network()
    marked = net.constant(np.ones((1, 1, 1, 1, 1, 1, 1 << 16), np.bool_))
    net.output("y", net.add(NonZero(), marked, name="search"))
    assert layer_names(specialize(net.build(), [], evaluator=evaluator)) == ["search"]


@dataclass(frozen=True, slots=True)
class Steps(Composite):
    """So many activations one after the other, of which only the last one is read."""

    count: int

    def decides(self, index: int) -> bool:
        return False

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        return (inputs[0].shape,)

    def expand(self, build: LayerBuilder, inputs: Sequence[Any]) -> Sequence[Any]:
        (value,) = inputs
        for number in range(self.count):
            (value,) = build.add_layer(RELU, [value], name=f"step_{number}")
        return [value]


def test_constants_on_the_way_through_a_composite_count_only_there(evaluator: Evaluator) -> None:
    # A graph of 1.6 MB may grow by 7.4 MB, and by twice as much within an expansion.
    net = Network()
    weights = net.constant(np.zeros(400_000, np.float32))
    for number in range(4):
        net.output(f"y_{number}", net.add(Steps(10), weights, name=f"steps_{number}"))
    graph = specialize(net.build(), evaluator=evaluator)
    assert graph.layers == ()


def test_an_expansion_whose_constants_take_too_much_keeps_layers(evaluator: Evaluator) -> None:
    net = Network()
    weights = net.constant(np.zeros(400_000, np.float32))
    net.output("y", net.add(Steps(20), weights, name="steps"))
    graph = specialize(net.build(), evaluator=evaluator)
    assert 0 < len(graph.layers) < 20


@pytest.mark.parametrize("kind", [If, While])
@pytest.mark.parametrize("depth", [1, 2])
def test_composites_in_nested_graphs_of_known_shapes_are_expanded(
    kind: type[If | While], depth: int
) -> None:
    def body(net: Network, flag: Value, x: Value, number: int) -> tuple[Value, ...]:
        if number == 1:
            return flag, net.add(Steps(2), x)
        choice = If(*[graph_of(infos, partial(body, number=number - 1))] * 2)
        return net.add_layer(choice, (flag, flag, x)).outputs

    infos = [BOOL, f32(3)]
    inner = graph_of(infos, partial(body, number=depth))
    condition = graph_of(infos, lambda net, flag, x: flag)
    net = Network()
    flag, x = (net.input(name, info) for name, info in zip("fx", infos, strict=True))
    operation = If(inner, inner) if kind is If else While(condition, inner)
    values = (flag, flag, x) if kind is If else (flag, x)
    net.output("y", net.add_layer(operation, values).outputs[1])
    graphs = nested_graphs(specialize(net.build()))
    kinds = {type(layer.operation) for graph in graphs for layer in graph.layers}
    assert kinds == ({Activation} if depth == 1 else {If, Activation})


def test_branches_know_the_shapes_and_constants_of_their_arguments() -> None:
    info = f32(None)
    then_graph, else_graph = (
        graph_of([info, info], lambda net, x, y, operation=operation: net.add(operation, x, y))
        for operation in (ADD, MUL)
    )

    def build(net: Network, condition: Value, x: Value) -> Value:
        constant = net.constant(floats(1, 2, 3))
        return net.add(If(then_graph, else_graph), condition, x, constant)

    (choice,) = specialize(graph_of([BOOL, f32(3)], build)).layers
    for (_, branch), operation in zip(graphs_of(choice.operation), (ADD, MUL), strict=True):
        (layer,) = branch.layers
        assert layer.operation == operation
        shapes = [value.info.shape for value in (layer["lhs"], layer["rhs"], layer.output)]
        assert shapes == [(3,)] * 3
        np.testing.assert_array_equal(layer.constant("rhs"), [1, 2, 3])


def test_large_constants_of_attributes_with_other_signs_of_zero_are_apart() -> None:
    net = Network()
    table = net.constant(np.full((128, 256), -1, np.float32))
    for slope in (0.0, -0.0):
        operation = Activation(ActivationFunction.LEAKY_RELU, slope)
        net.output(f"y{slope}", net.add(operation, table))
    outputs = Model(net, Runtime(RuntimeOptions(["CpuRef"]))).run({})
    assert np.signbit(outputs["y0.0"]).all()
    assert not np.signbit(outputs["y-0.0"]).any()
