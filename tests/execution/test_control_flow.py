from __future__ import annotations

import gc
import tracemalloc
import weakref
from collections.abc import Sequence

import numpy as np
import pytest

from armpy.backend import (
    IWorkload,
    IWorkloadFactory,
    NetworkResources,
    ReasonCode,
    Support,
    WorkloadInfo,
)
from armpy.errors import (
    BackendError,
    GraphValidationError,
    InvalidArgumentError,
    LayerValidationError,
    MemoryLimitError,
)
from armpy.execution import LoadedNetwork
from armpy.graph import Graph, Value
from armpy.graph.network import Network
from armpy.model import Model
from armpy.ops import ElementwiseBinary, ExpandDims, If, While
from armpy.ops.operation import Array, OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_testing.backends.fake_backends import (
    FakeBackend,
    FakeFactory,
    FunctionWorkload,
    Handles,
    Outputs,
    runtime_of,
)
from armpy_testing.effort import effort
from armpy_testing.models.control_flow import (
    LESS,
    applied,
    below,
    chosen,
    counting,
    graph_of,
    growing,
    loaded,
    loop,
)
from armpy_testing.models.networks import ADD, MUL, RELU, f32, floats, i32, ints, placement_of

YES, NO = np.array([True]), np.array([False])
ANY = TensorInfo(None, DataType.FLOAT32)
PLUS, TIMES = applied(ADD, floats(1), f32(None)), applied(MUL, floats(2), f32(None))


def inner_networks(model: Model) -> list[LoadedNetwork]:
    """The networks that control flow of a model's latest program runs."""
    network = loaded(model)
    assert network.latest is not None
    return [inner for _, inner in network.subgraphs.within(network.latest.program)]


def run(graph: Graph, *inputs: Array) -> list[Array]:
    """All outputs of a network on CpuRef."""
    results = Model(graph, runtime_of())(*inputs)
    return list(results) if isinstance(results, tuple) else [results]


@pytest.mark.parametrize(("condition", "expected"), [(YES, [4, 5]), (NO, [6, 8])])
@pytest.mark.parametrize("info", [f32(2), f32(None), ANY], ids=str)
def test_the_condition_chooses_the_graph(
    condition: Array, expected: list[float], info: TensorInfo
) -> None:
    (result,) = run(chosen(PLUS, TIMES, info), condition, floats(3, 4))
    np.testing.assert_array_equal(result, expected)


def test_graphs_may_give_different_shapes_and_ranks() -> None:
    square = graph_of([f32(None)], lambda net, x: net.constant(np.ones((2, 2), np.float32)))
    model = Model(chosen(PLUS, square, f32(2)), runtime_of())
    for condition, shape in ((YES, (2,)), (NO, (2, 2)), (YES, (2,))):
        result = model(condition, floats(3, 4))
        assert isinstance(result, np.ndarray)
        assert result.shape == shape


def test_a_loop_runs_until_its_condition_is_false() -> None:
    np.testing.assert_array_equal(run(loop(10), ints(3))[0], [10])


def test_without_a_turn_a_loop_gives_its_inputs_and_leaves_them_alone() -> None:
    start = ints(30)
    (result,) = run(loop(10), start)
    np.testing.assert_array_equal(result, [30])
    assert not np.shares_memory(result, start)


def test_carried_values_may_change_places() -> None:
    """Fibonacci's numbers: (a, b) becomes (b, a + b)."""
    body = counting(i32(1), i32(1), body=lambda net, i, a, b: (b, net.add(ADD, a, b)))
    operation = While(below(10, i32(1), i32(1)), body)
    graph = graph_of([i32(1)] * 3, lambda net, *inputs: net.add_layer(operation, inputs).outputs)
    results = run(graph, ints(0), ints(0), ints(1))
    np.testing.assert_array_equal(np.concatenate(results), [10, 55, 89])


def test_a_carried_value_may_change_its_rank() -> None:
    body = counting(ANY, body=lambda net, i, x: (net.add(ExpandDims(0), x),))
    graph = graph_of(
        [i32(1), ANY],
        lambda net, *inputs: net.add_layer(While(below(3, ANY), body), inputs).outputs,
    )
    assert run(graph, ints(0), floats(1, 2))[1].shape == (1, 1, 1, 2)


def test_a_value_that_may_not_grow_is_an_error_of_the_body() -> None:
    text = r"While 'grow' / condition / input 'in1': .*Expected \(2,\); got \(3,\)"
    with pytest.raises(InvalidArgumentError, match=text):
        run(growing(5, f32(2)), ints(0), floats(9, 8))


def test_control_flow_lies_in_control_flow() -> None:
    """The sum of 1 to 4 by counting up each number in an inner loop; odd ones are doubled."""
    inner = While(
        graph_of([i32(1), i32(1)], lambda net, i, end: net.add(LESS, i, end)),
        graph_of([i32(1), i32(1)], lambda net, i, end: net.add(ADD, i, net.constant(ints(1)))),
    )

    def body(net: Network, i: Value, total: Value) -> tuple[Value, ...]:
        number = net.add(inner, net.constant(ints(0)), i, name="inner")
        doubled = net.add(
            If(applied(MUL, ints(2), i32(1)), applied(ADD, ints(0), i32(1))),
            net.add(LESS, number, net.constant(ints(2))),
            number,
            name="choice",
        )
        return (net.add(ADD, total, doubled),)

    operation = While(below(4, i32(1)), counting(i32(1), body=body))
    graph = graph_of(
        [i32(1), i32(1)],
        lambda net, *inputs: net.add_layer(operation, inputs, name="outer").outputs,
    )
    model = Model(graph, runtime_of())
    np.testing.assert_array_equal(model(ints(1), ints(0))[1], [1 * 2 + 2 + 3])
    inside = {layer.inside for layer in placement_of(model).layers}
    assert {"", "outer/condition", "outer/body", "outer/body/inner/condition"} <= inside
    assert {"outer/body/choice/then", "outer/body/choice/else"} <= inside


def chosen_again(graph: Graph) -> Graph:
    """``x -> graph(x)`` by an If whose condition is true."""
    return graph_of([f32(None)], lambda net, x: net.add(If(graph, graph), net.constant([True]), x))


class TestInvalidBranches:
    """A graph that cannot run for some shapes matters only if it has to run."""

    graph = chosen(PLUS, applied(ADD, floats(1, 2, 3), f32(None)), f32(None))

    def test_one_that_is_taken_is_an_error_that_says_where(self) -> None:
        model = Model(self.graph, runtime_of())
        for _ in range(2):
            with pytest.raises(
                LayerValidationError, match=r"If 'choice' / else / ElementwiseBinary 'inner'"
            ):
                model(NO, floats(3, 4))
        np.testing.assert_array_equal(model(NO, floats(3, 4, 5)), [4, 6, 8])

    def test_a_body_that_gets_no_turn_does_not_matter(self) -> None:
        body = counting(f32(None), body=lambda net, i, x: (net.add(ADD, x, _three(net)),))
        operation = While(below(3, f32(None)), body)
        graph = graph_of(
            [i32(1), f32(None)],
            lambda net, *inputs: net.add_layer(operation, inputs, name="loop").outputs,
        )
        model = Model(graph, runtime_of())
        np.testing.assert_array_equal(model(ints(9), floats(1, 2))[1], [1, 2])
        with pytest.raises(LayerValidationError, match=r"While 'loop' / body / Elementwise"):
            model(ints(0), floats(1, 2))


def test_malformed_graphs_are_refused_when_the_network_is_loaded() -> None:
    good = loop(3)
    bad = Graph(good.inputs, good.outputs, good.output_names, ())
    with pytest.raises(GraphValidationError, match=r"a graph output is never written"):
        Model(chosen(good, bad, i32(1)), runtime_of())


class TestMemory:
    """What a loop needs does not grow with its turns."""

    @pytest.mark.slow
    def test_memory_does_not_grow_with_many_turns(self) -> None:
        turns = effort(20_000)
        model = Model(loop(turns), runtime_of(loop_timeout_s=None))
        model(ints(turns - 1_000))
        gc.collect()
        tracemalloc.start()
        try:
            model(ints(turns - 100))
            before = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
            model(ints(turns // 2))
            after, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert after - before < 10_000
        assert peak - before < 50_000

    def test_programs_of_a_growing_loop_are_kept_to_a_number(self) -> None:
        model = Model(
            growing(60, is_read=True), runtime_of(program_cache_size=3, loop_timeout_s=None)
        )
        model(ints(0), floats(0))
        # The condition reads the counter only.
        assert [len(inner.program_cache.programs) for inner in inner_networks(model)] == [1, 3]

    def test_a_closed_network_lets_inner_networks_go(self) -> None:
        model = Model(loop(3), runtime_of())
        model(ints(0))
        inner = [*map(weakref.ref, inner_networks(model))]
        assert len(inner) == 2
        model.close()
        gc.collect()
        assert [network() for network in inner] == [None, None]


class TestPlacement:
    """Control flow is the core's; the layers in its graphs are placed like any others."""

    def test_a_backend_needs_to_support_what_is_inside_to_get_control_flow(self) -> None:
        asked = ControlFlowBackend({If, ElementwiseBinary})
        fixed = applied(ADD, floats(1), f32(2))
        model = Model(chosen(fixed, fixed, f32(2)), runtime_of(asked))
        assert placement_of(model).layers_by_backend == {"Fake": 1}
        with pytest.raises(BackendError, match=r"Fake / If 'choice': .*ran the graphs itself"):
            model(YES, floats(1, 2))
        other = fixed, graph_of([f32(2)], _relu)
        model = Model(chosen(*other, f32(2)), runtime_of(asked))
        np.testing.assert_array_equal(model(YES, floats(1, 2)), [2, 3])
        assert placement_of(model).layers_by_backend["host"] == 1
        deep = chosen_again(chosen_again(graph_of([f32(None)], _relu)))
        np.testing.assert_array_equal(Model(deep, runtime_of(asked))(floats(-1, 2)), [0, 2])

    def test_a_backend_that_cannot_prepare_control_flow_loses_it_to_the_core(self) -> None:
        backend = ControlFlowBackend({If, ElementwiseBinary}, prepares=False)
        fixed = applied(ADD, floats(1), f32(2))
        model = Model(chosen(fixed, fixed, f32(2)), runtime_of(backend))
        np.testing.assert_array_equal(model(YES, floats(1, 2)), [2, 3])


def test_outputs_of_unknown_shape_are_written_to_arrays_that_fit() -> None:
    model = Model(growing(3), runtime_of())
    inputs: dict[str, object] = {"in0": ints(1), "in1": floats(5)}
    array = np.zeros(3, np.float32)
    assert model.run(inputs, {"out1": array})["out1"] is array
    np.testing.assert_array_equal(array, [5, 1, 1])
    with pytest.raises(InvalidArgumentError, match=r"output 'out1'|shape \(3,\); got float32 \(4,"):
        model.run(inputs, {"out1": np.zeros(4, np.float32)})


def _three(net: Network) -> Value:
    return net.constant(floats(1, 2, 3))


def _relu(net: Network, x: Value) -> Value:
    return net.add(RELU, x)


class ControlFlowBackend(FakeBackend):
    """Says that it runs control flow, and fails when it is to do so."""

    def __init__(self, operations: set[type], *, prepares: bool = True) -> None:
        super().__init__("Fake", operations)
        self._prepares = prepares

    def supports(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        if type(operation) in (self._operations or ()):
            return Support.yes()
        return Support.no(ReasonCode.OPERATION, "not here")

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        return _Factory(self._prepares)


class _Factory(FakeFactory):
    def __init__(self, prepares: bool) -> None:
        super().__init__()
        self._prepares = prepares

    def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        if isinstance(operation, If) and self._prepares:
            return FunctionWorkload(_run_graphs)
        return super().create_workload(operation, info)


def _run_graphs(inputs: Handles, outputs: Outputs) -> None:
    raise RuntimeError("it ran the graphs itself")


def test_what_a_loop_appends_is_limited() -> None:
    model = Model(growing(1 << 20), runtime_of(memory_limit_bytes=4096, loop_timeout_s=None))
    with pytest.raises(
        MemoryLimitError,
        match=r"'grow' / body / Concat 'append': .* at most 4096 bytes .*after 1025 turns",
    ):
        model(ints(0), np.empty(0, np.float32))
