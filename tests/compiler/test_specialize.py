from __future__ import annotations

import gc
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from weakref import getweakrefcount

import numpy as np
import pytest
from armpy_reference import ReferenceBackend

from armpy.compiler import Evaluator, specialize
from armpy.errors import BackendError, LayerValidationError
from armpy.execution import Runtime, RuntimeOptions
from armpy.graph import Graph, Value
from armpy.graph.nesting import graphs_of
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
    Reshape,
    Shape,
    Transpose,
)
from armpy.ops.composite import Composite, LayerBuilder
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_testing.backends.fake_backends import FakeBackend
from armpy_testing.models.control_flow import BOOL, graph_of
from armpy_testing.models.networks import (
    ADD,
    MUL,
    RELU,
    chain,
    f32,
    flatten_as_keras_writes_it,
    floats,
    i32,
    ints,
)


@pytest.fixture(scope="module")
def evaluator() -> Evaluator:
    return Evaluator(ReferenceBackend())


def layer_names(graph: Graph) -> list[str]:
    return [layer.name for layer in graph.layers]


def flatten_graph(batch: int | None, channels: int | None = 4) -> Graph:
    net = Network()
    x = net.input("x", f32(batch, 2, 3, channels))
    net.output("y", net.add(RELU, flatten_as_keras_writes_it(net, x), name="relu"))
    return net.build()


def test_shapes_are_bound_and_flow_through_the_graph() -> None:
    graph = specialize(chain(2, (None, 3)), [(5, 3)])
    assert graph.is_fully_shaped
    assert [value.info.shape for value in graph.outputs] == [(5, 3)]
    assert graph.default_shapes == ((5, 3),)


def test_inputs_without_a_shape_stay_as_they_are() -> None:
    graph = specialize(chain(1, (None, 3)), [None])
    assert graph.inputs[0].info.shape == (None, 3)


def test_ids_names_and_origins_of_layers_are_kept(evaluator: Evaluator) -> None:
    net = Network()
    x = net.input("x", f32(4))
    net.add(RELU, x, name="dead")
    layer = net.add_layer(ADD, [x, x], name="sum", output_names=["total"], origins=("a", "b"))
    net.output("y", layer.outputs[0])
    (single,) = specialize(net.build(), evaluator=evaluator).layers
    assert (single.id, single.name, single.origins) == (1, "sum", ("a", "b"))
    assert single.outputs[0].name == "total"


def test_layers_that_no_result_depends_on_are_removed() -> None:
    net = Network()
    x = net.input("x", f32(4))
    net.add(ADD, net.add(RELU, x, name="dead_1"), x, name="dead_2")
    net.output("y", net.add(RELU, x, name="alive"))
    assert layer_names(specialize(net.build())) == ["alive"]


def test_layers_that_only_fed_a_folded_one_are_removed(evaluator: Evaluator) -> None:
    net = Network()
    x = net.input("x", f32(2, 3))
    net.output("y", net.add(Shape(), net.add(RELU, x)))
    graph = specialize(net.build(), evaluator=evaluator)
    assert graph.layers == ()
    np.testing.assert_array_equal(graph.outputs[0].data, [2, 3])


def test_what_a_variable_keeps_is_alive() -> None:
    net = Network()
    state = net.variable("v", f32(4))
    net.assign(state, net.add(RELU, state, name="next"))
    net.output("y", net.input("x", f32(1)))
    graph = specialize(net.build())
    assert layer_names(graph) == ["next"]
    assert graph.variables[0].next_value is graph.layers[0].outputs[0]


def test_an_identity_is_removed_and_its_readers_read_its_input() -> None:
    net = Network()
    x = net.input("x", f32(2, 3))
    same = net.add(Reshape((2, 3)), x, name="identity")
    net.output("y", net.add(RELU, same, name="relu"))
    graph = specialize(net.build())
    assert layer_names(graph) == ["relu"]
    assert graph.layers[0].inputs == graph.inputs


def test_an_identity_between_an_input_and_an_output_is_removed() -> None:
    net = Network()
    net.output("y", net.add(Reshape((2, 3)), net.input("x", f32(2, 3))))
    graph = specialize(net.build())
    assert graph.layers == ()
    assert graph.outputs == graph.inputs
    assert graph.output_names == ("y",)


def test_an_identity_of_a_constant_is_the_constant() -> None:
    net = Network()
    net.output("y", net.add(Reshape((2,)), net.constant(floats(1, 2))))
    graph = specialize(net.build())
    np.testing.assert_array_equal(graph.outputs[0].data, [1, 2])


def test_a_reshape_of_an_open_shape_is_no_identity_yet() -> None:
    net = Network()
    net.output("y", net.add(Reshape((-1, 3)), net.input("x", f32(None, 3)), name="reshape"))
    graph = net.build()
    assert layer_names(specialize(graph)) == ["reshape"]
    assert specialize(graph, [(2, 3)]).layers == ()


def test_layers_of_constants_are_folded(evaluator: Evaluator) -> None:
    net = Network()
    x = net.input("x", f32(2))
    total = net.add(ADD, net.constant(floats(1, 2)), net.constant(floats(10, 20)), name="sum")
    net.output("y", net.add(ADD, x, net.add(RELU, total), name="last"))
    graph = specialize(net.build(), evaluator=evaluator)
    assert layer_names(graph) == ["last"]
    folded = graph.layers[0].inputs[1]
    assert folded is not None
    np.testing.assert_array_equal(folded.data, [11, 22])


def test_without_an_evaluator_only_what_follows_from_shapes_is_folded() -> None:
    net = Network()
    x = net.input("x", f32(2))
    net.output("shape", net.add(Shape(), x))
    net.output("sum", net.add(ADD, net.constant(floats(1)), net.constant(floats(2)), name="sum"))
    assert layer_names(specialize(net.build())) == ["sum"]


def test_constant_operands_become_attributes() -> None:
    net = Network()
    x = net.input("x", f32(2, 3))
    net.output("y", net.add(Reshape(), x, net.constant(ints(3, -1))))
    net.output("z", net.add(Transpose(), x, net.constant(ints(1, 0))))
    reshape, transpose = specialize(net.build()).layers
    assert reshape.operation == Reshape((3, -1))
    assert transpose.operation.attributes() == {"perm": (1, 0)}
    assert [len(layer.inputs) for layer in (reshape, transpose)] == [1, 1]


def test_the_flatten_that_keras_writes_becomes_one_reshape_for_a_known_batch(
    evaluator: Evaluator,
) -> None:
    graph = specialize(flatten_graph(5), evaluator=evaluator)
    assert layer_names(graph) == ["flatten", "relu"]
    assert graph.layers[0].operation == Reshape((5, -1))
    assert graph.outputs[0].info.shape == (5, 24)


def test_the_flatten_that_keras_writes_stays_open_until_the_batch_is_known(
    evaluator: Evaluator,
) -> None:
    graph = specialize(flatten_graph(None), evaluator=evaluator)
    assert layer_names(graph) == ["shape", "strided_slice", "stack", "flatten", "relu"]
    assert not graph.is_fully_shaped
    bound = specialize(graph, [(7, 2, 3, 4)], evaluator=evaluator)
    assert layer_names(bound) == ["flatten", "relu"]
    assert bound.outputs[0].info.shape == (7, 24)
    assert bound.is_fully_shaped


def test_values_of_inputs_that_are_known_fold_what_depends_on_them(evaluator: Evaluator) -> None:
    net = Network()
    x = net.input("x", f32(2, 3))
    shape = net.input("shape", i32(2))
    net.output("y", net.add(Reshape(), x, net.add(ADD, shape, net.constant(ints(1, 1)))))
    graph = specialize(net.build(), values=[None, ints(2, 1)], evaluator=evaluator)
    assert [value.name for value in graph.inputs] == ["x", "shape"]
    assert graph.outputs[0].info.shape == (3, 2)


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


def test_sizes_fold_after_other_constants_have_used_up_what_folding_may_add(
    evaluator: Evaluator,
) -> None:
    # A MiB and four times the constants may be added: an int32 remains.
    net, size = Network(), (1 << 18) + 4 * 3 - 1
    x = net.input("x", f32(6))
    net.output("mask", net.add(BroadcastTo((size,)), net.constant(floats(1))))
    shape = net.add(Concat(axis=0), net.constant(ints(2)), net.constant(ints(3)))
    net.output("y", net.add(Reshape(), x, shape))
    graph = specialize(net.build(), evaluator=evaluator)
    assert [value.info.shape for value in graph.outputs] == [(size,), (2, 3)]
    assert graph.outputs[0].data is not None


def test_large_constants_fold_where_the_result_is_not_much_larger(evaluator: Evaluator) -> None:
    net = Network()
    net.output("y", net.add(RELU, net.constant(np.zeros(100_000, np.float32))))
    assert specialize(net.build(), evaluator=evaluator).layers == ()


def test_what_the_evaluator_does_not_support_is_not_folded() -> None:
    net = Network()
    net.output("y", net.add(RELU, net.constant(floats(1)), name="relu"))
    graph = specialize(net.build(), evaluator=Evaluator(FakeBackend(operations=())))
    assert layer_names(graph) == ["relu"]


def test_an_output_of_unknown_shape_is_not_folded(evaluator: Evaluator) -> None:
    net = Network()
    shape = net.input("shape", i32(1))
    net.output("y", net.add(Reshape(), net.constant(floats(1, 2)), shape, name="reshape"))
    assert layer_names(specialize(net.build(), evaluator=evaluator)) == ["reshape"]


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


def test_shapes_that_do_not_go_together_name_the_layer() -> None:
    net = Network()
    a, b = net.input("a", f32(None)), net.input("b", f32(None))
    net.output("y", net.add(ADD, a, b, name="sum"))
    with pytest.raises(LayerValidationError, match=r"ElementwiseBinary 'sum'.*\(2,\) and \(3,\)"):
        specialize(net.build(), [(2,), (3,)])


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

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[tuple[int, ...] | None, ...]:
        return (None,)

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


def test_a_large_constant_is_folded_once_while_the_result_is_used(evaluator: Evaluator) -> None:
    net = Network()
    table = net.constant(np.random.default_rng(1).normal(size=(128, 256)).astype(np.float32))
    net.output("y", net.add(ADD, net.input("x", f32(None, 128)), net.add(Transpose((1, 0)), table)))
    graph = net.build()
    assert table.data is not None
    before = getweakrefcount(table.data)
    first, second = (specialize(graph, [(256, 128)], evaluator=evaluator) for _ in range(2))
    (one,), (other,) = (
        [value.data for value in each.layers[0].inputs if value is not None and value.is_constant]
        for each in (first, second)
    )
    assert np.shares_memory(one, other)
    np.testing.assert_array_equal(one, np.asarray(table.data).T)
    assert getweakrefcount(table.data) > before
    del first, second, one, other
    gc.collect()
    assert getweakrefcount(table.data) == before  # the evaluator has forgotten it


def test_large_constants_of_attributes_with_other_signs_of_zero_are_apart() -> None:
    net = Network()
    table = net.constant(np.full((128, 256), -1, np.float32))
    for slope in (0.0, -0.0):
        operation = Activation(ActivationFunction.LEAKY_RELU, slope)
        net.output(f"y{slope}", net.add(operation, table))
    outputs = Model(net, Runtime(RuntimeOptions(["CpuRef"]))).run({})
    assert np.signbit(outputs["y0.0"]).all()
    assert not np.signbit(outputs["y-0.0"]).any()
