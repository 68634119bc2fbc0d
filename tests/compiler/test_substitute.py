from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from armpy_reference import ReferenceBackend

from armpy.backend import OptimizationViews, Substitution
from armpy.compiler import optimize_graph
from armpy.compiler.substitute import apply_substitutions, offer
from armpy.errors import (
    ArmpyError,
    BackendCapabilityError,
    BackendError,
    LayerValidationError,
    MemoryLimitError,
)
from armpy.graph import Graph, SubgraphView, verify_graph
from armpy.graph.network import Network
from armpy.model import Model
from armpy.ops import ElementwiseBinary, PreCompiled
from armpy.plugins.proxy.guard import BackendProxy
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType
from armpy_testing.backends.fake_backends import CompilingBackend, FakeBackend, compiled, runtime_of
from armpy_testing.models.networks import (
    ADD,
    RELU,
    chain,
    diamond,
    f32,
    floats,
    graph_of_edges,
    placement_of,
)


def divided(graph: Graph, *parts: Sequence[int]) -> Callable[[SubgraphView], OptimizationViews]:
    """A divider that compiles some layers (by number in the view) together, part by part."""

    def divide(view: SubgraphView) -> OptimizationViews:
        chosen = [[view.layers[i] for i in part if i < len(view.layers)] for part in parts]
        assigned = {layer for part in chosen for layer in part}
        rest = [layer for layer in view.layers if layer not in assigned]
        return OptimizationViews(
            substitutions=[compiled(SubgraphView.of(graph, part)) for part in chosen if part],
            untouched=[SubgraphView.of(graph, rest)],
        )

    return divide


def whole(graph: Graph) -> SubgraphView:
    return SubgraphView.of(graph, graph.layers)


def test_a_substitution_runs_and_gives_the_same_results() -> None:
    compiler = CompilingBackend()
    model = Model(diamond(), runtime_of(compiler))
    x = floats(-1, 0, 2, 5)
    np.testing.assert_array_equal(model(x), Model(diamond(), runtime_of())(x))
    assert [len(view.layers) for view in compiler.offered] == [4]
    assert [layer.operation for layer in placement_of(model).layers] == ["PreCompiled"]


def test_parts_on_both_sides_of_a_foreign_layer_are_compiled_apart() -> None:
    compiler = CompilingBackend(operations={ElementwiseBinary})
    net = Network()
    x = net.input("x", f32(4))
    net.output("y", net.add(ADD, net.add(RELU, net.add(ADD, x, x)), x))
    model = Model(net, runtime_of(compiler))
    np.testing.assert_array_equal(model(floats(-1, 0, 2, 5)), [-1, 0, 6, 15])
    assert placement_of(model).num_partitions == 3


def test_a_part_of_a_view_can_be_substituted() -> None:
    graph = diamond()
    compiler = CompilingBackend(divider=divided(graph, [1, 2]))
    network = optimize_graph(graph, [compiler])
    assert [layer.operation.name for layer in network.graph.layers] == [
        "Activation",
        "PreCompiled",
        "ElementwiseBinary",
    ]
    assert network.origins == {0: (0,), 4: (1, 2), 3: (3,)}


def test_interleaved_substitutions_are_put_into_an_order_that_can_run() -> None:
    # Layers alternate between the two parts; the second reads what the first makes.
    edges = [[], [0], [0], [1, 2]]
    graph = graph_of_edges(edges)
    model = Model(graph, runtime_of(CompilingBackend(divider=divided(graph, [0, 2], [1, 3]))))
    expected = Model(graph, runtime_of()).run({"x": floats(1, 2, 3, 4)})
    for name, array in model.run({"x": floats(1, 2, 3, 4)}).items():
        np.testing.assert_array_equal(array, expected[name])


def test_a_late_part_that_an_early_layer_waits_for_runs_first() -> None:
    graph = graph_of_edges([[], [], [1], [0, 2]])
    view = SubgraphView.of(graph, [graph.layers[0], graph.layers[3]])
    applied, origins = apply_substitutions(graph, [compiled(view)])
    verify_graph(applied)
    assert [layer.id for layer in applied.layers] == [1, 2, 4]
    assert origins[4] == (0, 3)


def test_variables_constants_and_passed_through_values_survive_a_substitution() -> None:
    net = Network()
    x = net.input("x", f32(2), default_shape=(2,))
    state = net.variable("v", f32(2), floats(1, 2))
    total = net.add(ADD, x, state, name="sum")
    net.assign(state, total)
    net.output("total", total)
    net.output("x_again", x)
    net.output("constant", net.constant(floats(7)))
    model = Model(net, runtime_of(CompilingBackend()))
    for expected in ([2, 3], [3, 4]):
        total_now, x_again, constant = model(floats(1, 1))
        np.testing.assert_array_equal(total_now, expected)
        np.testing.assert_array_equal(x_again, [1, 1])
        np.testing.assert_array_equal(constant, [7])


def test_a_replacement_may_have_several_layers_and_constants() -> None:
    def divide(view: SubgraphView) -> OptimizationViews:
        net = Network()
        x = net.input("x", view.inputs[0].info)
        net.output("y", net.add(RELU, net.add(ADD, x, net.constant(floats(3))), name="new"))
        return OptimizationViews(substitutions=[Substitution(view, net.build())])

    model = Model(chain(3), runtime_of(CompilingBackend(divider=divide)))
    np.testing.assert_array_equal(model(floats(-5, 0, 1, 2)), [0, 3, 4, 5])
    assert placement_of(model).layers_by_backend == {"Compiler": 3}


def test_failed_views_go_to_the_next_backend() -> None:
    graph = chain(3)

    def divide(view: SubgraphView) -> OptimizationViews:
        middle = [layer for layer in view.layers if layer.name == "add_1"]
        rest = [layer for layer in view.layers if layer not in middle]
        return OptimizationViews(
            substitutions=[compiled(SubgraphView.of(graph, [layer])) for layer in rest],
            failed=[SubgraphView.of(graph, middle)] if middle else [],
        )

    first = CompilingBackend("First", divider=divide)
    second = CompilingBackend("Second")
    network = optimize_graph(graph, [first, second, ReferenceBackend()])
    assert network.placement.layers_by_backend == {"First": 2, "Second": 1}
    (refusal,) = network.placement.refusals
    assert (refusal.layer, refusal.backend, refusal.code) == ("add_1", "First", "compilation")
    assert refusal.text == "the backend could not compile this part"


# Wrong answers of backends, and the errors about them.


def _lost(view: SubgraphView) -> object:
    return OptimizationViews()


def _twice(view: SubgraphView) -> object:
    return OptimizationViews(untouched=[view, view])


def _in_two_lists(view: SubgraphView) -> object:
    return OptimizationViews(substitutions=[compiled(view)], failed=[view])


def _foreign(view: SubgraphView) -> object:
    copies = tuple(replace(layer) for layer in view.layers)
    return OptimizationViews(untouched=[SubgraphView(copies, view.inputs, view.outputs)])


def _not_convex(view: SubgraphView) -> object:
    layers = (view.layers[0], view.layers[-1])
    outer = SubgraphView(layers, view.inputs, view.outputs)
    inner = SubgraphView(view.layers[1:-1], (), ())
    net = Network()
    net.input("x", view.inputs[0].info)
    net.output("y", net.add(RELU, net.input("z", f32(4))))
    return OptimizationViews(substitutions=[Substitution(outer, net.build())], untouched=[inner])


def _wrong_edge(view: SubgraphView) -> object:
    wrong = SubgraphView(view.layers, view.inputs, (*view.outputs, view.layers[0].outputs[0]))
    return OptimizationViews(substitutions=[compiled(wrong)])


def _empty(view: SubgraphView) -> object:
    net = Network()
    net.output("y", net.constant([1.0]))
    nothing = Substitution(SubgraphView((), (), ()), net.build())
    return OptimizationViews(substitutions=[nothing], untouched=[view])


def _replaced_by(make: Callable[[Network, SubgraphView], None]) -> Callable[[SubgraphView], object]:
    def divide(view: SubgraphView) -> object:
        net = Network()
        make(net, view)
        return OptimizationViews(substitutions=[Substitution(view, net.build())])

    return divide


def _other_shape(net: Network, view: SubgraphView) -> None:
    net.output("y", net.add(RELU, net.input("x", f32(5))))


def _other_output(net: Network, view: SubgraphView) -> None:
    net.input("x", f32(4))
    net.output("y", net.add(RELU, net.input("z", f32(4))))


def _too_many_outputs(net: Network, view: SubgraphView) -> None:
    x = net.input("x", f32(4))
    net.output("y", net.add(RELU, x))
    net.output("z", net.add(RELU, x))


def _finer_quantisation(net: Network, view: SubgraphView) -> None:
    x = net.input("x", TensorInfo((4,), DataType.FLOAT32, Quantization.per_tensor(1.0000001)))
    net.output("y", net.add(RELU, x))


def _variables(net: Network, view: SubgraphView) -> None:
    net.variable("v", f32(4))
    net.output("y", net.add(RELU, net.input("x", f32(4))))


def _damaged(view: SubgraphView) -> object:
    replacement = replace(compiled(view).replacement, layers=())
    return OptimizationViews(substitutions=[Substitution(view, replacement)])


def _other_than_inferred(view: SubgraphView) -> object:
    replacement = compiled(view).replacement
    (layer,) = replacement.layers
    wrong = replace(layer, operation=PreCompiled(view, ((9,),)))
    return OptimizationViews(
        substitutions=[Substitution(view, replace(replacement, layers=(wrong,)))]
    )


def _raises(view: SubgraphView) -> object:
    raise ValueError("oops")


def _raises_its_own(view: SubgraphView) -> object:
    raise BackendError("the compiler is gone")


class _Trap(list[SubgraphView]):
    """A list that raises when it is read."""

    def __iter__(self) -> Iterator[SubgraphView]:
        raise SystemExit("trap")


def _trap(view: SubgraphView) -> object:
    return OptimizationViews(failed=_Trap([view]))


def _deleted_with_other_edges(view: SubgraphView) -> object:
    first, *rest = view.layers
    wrong = SubgraphView((first,), view.inputs, view.outputs)
    others = SubgraphView(tuple(rest), (), ())
    return OptimizationViews(deleted=[wrong], untouched=[others])


def _deleted_and_untouched(view: SubgraphView) -> object:
    return OptimizationViews(deleted=[view], untouched=[view])


def _untyped(item: object) -> list[Any]:  # Any: wrong on purpose
    return [item]


def offered(graph: Graph, backend: CompilingBackend) -> OptimizationViews:
    """The checked answer of a backend that is offered a whole graph."""
    return offer(graph, BackendProxy(backend), whole(graph))


WRONG = {
    "raises": (_raises, r"the backend raised ValueError\('oops'\)"),
    "raises an ArmpyError": (_raises_its_own, "the compiler is gone"),
    "none": (
        lambda view: None,
        "the answer has the wrong type. Expected OptimizationViews; got None",
    ),
    "untyped views": (lambda view: OptimizationViews(untouched=_untyped(None)), "cannot be read"),
    "a list that raises": (_trap, r"the answer cannot be read: SystemExit\('trap'\)"),
    "deleted with other edges": (_deleted_with_other_edges, "are not those of its layers"),
    "deleted and untouched": (_deleted_and_untouched, "exactly once"),
    "untyped deleted views": (lambda view: OptimizationViews(deleted=_untyped(5)), "cannot be"),
    "untyped substitutions": (
        lambda view: OptimizationViews(substitutions=_untyped("x")),
        "cannot be",
    ),
    "lost layers": (_lost, r"exactly once. Expected layers \[0, 1, 2, 3\]; got layers \[\]"),
    "layers twice": (_twice, r"got layers \[0, 0, 1, 1, 2, 2, 3, 3\]"),
    "in two lists": (_in_two_lists, "exactly once"),
    "foreign layers": (_foreign, "some of them not the offered ones"),
    "not convex": (_not_convex, "a path leaves the substituted subgraph and comes back"),
    "wrong edge": (_wrong_edge, "inputs or outputs are not those of its layers"),
    "empty": (_empty, "a substituted subgraph has no layers"),
    "other shape": (_replaced_by(_other_shape), r"inputs differ.*\(4,\).*got .*\(5,\)"),
    "too many inputs": (_replaced_by(_other_output), "inputs differ"),
    "too many outputs": (_replaced_by(_too_many_outputs), "outputs differ"),
    "quantisation": (_replaced_by(_finer_quantisation), "inputs differ"),
    "variables": (_replaced_by(_variables), "variables of its own"),
    "damaged": (_damaged, "replacement is not well formed: .*never written"),
    "not as inferred": (_other_than_inferred, r"not well formed: .*Expected \(9,\)"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_answer_is_rejected_by_name_and_the_network_runs_elsewhere(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    divide, text = WRONG[name]
    compiler = CompilingBackend(divider=divide)  # type: ignore[arg-type]  # wrong on purpose
    graph = diamond()
    with pytest.raises(BackendError, match="^Compiler / optimize_subgraph_view: .*" + text):
        offered(graph, compiler)
    x = floats(-1, 0, 2, 5)
    model = Model(graph, runtime_of(compiler))
    np.testing.assert_array_equal(model(x), [1, 1, 9, 21])
    assert placement_of(model).layers_by_backend == {"CpuRef": 4}
    assert {refusal.code for refusal in placement_of(model).refusals} == {"compilation"}
    assert "its 4 layers fall back" in caplog.text


@pytest.mark.parametrize("error", [LayerValidationError, BackendCapabilityError, MemoryLimitError])
def test_an_armpy_error_of_any_kind_keeps_its_kind_and_the_network_runs_elsewhere(
    error: type[ArmpyError],
) -> None:
    graph = chain(3)
    compiler = CompilingBackend(faults={"optimize_subgraph_view": error("too large")})
    compiler.optimize_subgraph_view = partial(  # type: ignore[method-assign]  # with faults
        FakeBackend.optimize_subgraph_view, compiler
    )
    with pytest.raises(error, match=r"^Compiler / optimize_subgraph_view: too large"):
        offered(graph, compiler)
    model = Model(graph, runtime_of(compiler))
    assert placement_of(model).layers_by_backend == {"CpuRef": 3}
    assert "optimize_subgraph_view: too large" in placement_of(model).refusals[0].text


@pytest.mark.parametrize(
    ("graph", "text"),
    [
        (diamond(), ""),
        (graph_of_edges([[], []]), "outputs differ"),  # one input, two outputs
    ],
)
def test_layers_are_deleted_only_if_each_output_has_an_input_like_it(
    graph: Graph, text: str
) -> None:
    compiler = CompilingBackend(divider=lambda view: OptimizationViews(deleted=[view]))
    if not text:
        assert offered(graph, compiler).substitutions
        return
    with pytest.raises(BackendError, match=f"^Compiler / optimize_subgraph_view: .*{text}"):
        offered(graph, compiler)


def test_all_four_kinds_of_answers_can_come_together() -> None:
    graph = chain(4)

    def divide(view: SubgraphView) -> OptimizationViews:
        parts = [view.part([layer]) for layer in view.layers]
        if len(parts) < 4:
            return OptimizationViews(untouched=parts)
        return OptimizationViews([compiled(parts[0])], [parts[1]], [parts[2]], [parts[3]])

    model = Model(graph, runtime_of(CompilingBackend(divider=divide)))
    # What is untouched or deleted is offered again without the failed layer, and then untouched.
    np.testing.assert_array_equal(model(floats(0, 0, 0, 0)), [4, 4, 4, 4])
    assert placement_of(model).layers_by_backend == {"Compiler": 3, "CpuRef": 1}


def test_substitutions_that_wait_for_each_other_are_rejected() -> None:
    # n0 -> n3 and n1 -> n2; {n0, n2} and {n1, n3} are convex one by one.
    graph = graph_of_edges([[], [], [0, 1], [1, 0]])
    compiler = CompilingBackend(divider=divided(graph, [0, 2], [1, 3]))
    with pytest.raises(BackendError, match="depend on each other in a cycle"):
        offered(graph, compiler)


def test_a_wrong_answer_of_the_only_backend_is_an_error_with_its_reason() -> None:
    with pytest.raises(BackendCapabilityError, match=r"'add_0': .*Compiler: .*exactly once"):
        optimize_graph(chain(), [CompilingBackend(divider=_lost)])  # type: ignore[arg-type]


def test_the_reason_for_a_failed_part_is_in_the_placement() -> None:
    def divide(view: SubgraphView) -> OptimizationViews:
        views = OptimizationViews()
        views.fail(view, "the device has 4 registers")
        return views

    network = optimize_graph(chain(1), [CompilingBackend(divider=divide), ReferenceBackend()])
    assert [r.text for r in network.placement.refusals] == ["the device has 4 registers"]
