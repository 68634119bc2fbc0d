from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from typing import Any, Never

import pytest
from armpy_reference import ReferenceBackend

from armpy.backend import IBackendInternal, ILayerSupport, PreparationRequest, ReasonCode, Support
from armpy.compiler import OptimizerOptions, optimize_graph
from armpy.compiler.assign import Exclusions, SupportOracle, assign_backends
from armpy.errors import (
    BackendCapabilityError,
    BackendError,
    GraphValidationError,
    InvalidArgumentError,
)
from armpy.graph import Graph, Layer, Value
from armpy.graph.network import Network
from armpy.ops import Activation, ElementwiseBinary, If, Pad, Softmax
from armpy.ops.operation import Operation
from armpy.plugins.proxy.guard import BackendProxy
from armpy_testing.backends.fake_backends import CompilingBackend, FakeBackend
from armpy_testing.models.control_flow import BOOL, graph_of
from armpy_testing.models.networks import ADD, RELU, chain, diamond, f32

CPU = ReferenceBackend()


def test_each_layer_goes_to_the_first_backend_that_takes_it() -> None:
    first = FakeBackend("First", {Activation})
    second = FakeBackend("Second")
    network = optimize_graph(diamond(), [first, second, CPU])
    assert network.backend_ids == {0: "First", 1: "Second", 2: "Second", 3: "Second"}
    assert network.placement.layers_by_backend == {"First": 1, "Second": 3}


def test_the_order_of_preference_decides() -> None:
    a, b = FakeBackend("A"), FakeBackend("B")
    assert set(optimize_graph(chain(), [a, b]).backend_ids.values()) == {"A"}
    assert set(optimize_graph(chain(), [b, a]).backend_ids.values()) == {"B"}


def test_every_refusal_is_kept_with_code_and_text() -> None:
    network = optimize_graph(diamond(), [FakeBackend("First", {ElementwiseBinary}), CPU])
    (refusal,) = network.placement.refusals
    assert (refusal.layer_id, refusal.layer, refusal.operation) == (0, "top", "Activation")
    assert (refusal.backend, refusal.code) == ("First", "operation")
    assert refusal.text == "First does not do Activation"


@pytest.mark.parametrize(
    ("faults", "text"),
    [
        ({"get_layer_support": ValueError("oops")}, r"raised ValueError\('oops'\)"),
        (
            {"get_layer_support": None},
            "get_layer_support: the answer has the wrong type. Expected ILayerSupport; got None",
        ),
        ({"is_layer_supported": ValueError("oops")}, r"raised ValueError\('oops'\)"),
        (
            {"is_layer_supported": True},
            "is_layer_supported: the answer has the wrong type. Expected Support; got True",
        ),
        (
            {"is_layer_supported": None},
            "is_layer_supported: the answer has the wrong type. Expected Support; got None",
        ),
        ({"is_layer_supported": Support(False)}, "no reason given"),
        ({"is_layer_supported": Support(None)}, "neither yes nor no. Got None"),  # type: ignore[arg-type]
        ({"is_layer_supported": Support(False, "odd", "text")}, "text"),  # type: ignore[arg-type]
    ],
)
def test_a_wrong_answer_about_a_layer_is_a_refusal(faults: dict[str, object], text: str) -> None:
    network = optimize_graph(chain(1), [BackendProxy(FakeBackend(faults=faults)), CPU])
    assert network.backend_ids == {0: "CpuRef"}
    (refusal,) = network.placement.refusals
    assert refusal.code == "other"
    with pytest.raises(BackendCapabilityError, match=f"'add_0': .*Fake: .*{text}"):
        optimize_graph(chain(1), [BackendProxy(FakeBackend(faults=faults))])
    assert json.loads(network.placement.to_json())["refusals"][0]["backend"] == "Fake"


@pytest.mark.parametrize("is_together", [False, True])
def test_an_answer_reaches_the_assignment_as_the_object_that_the_backend_made(
    is_together: bool,
) -> None:
    refusal = Support.no(ReasonCode.OTHER, "never")
    backend: IBackendInternal = FakeBackend("Fake", faults={"is_layer_supported": refusal})
    if is_together:
        backend = Batching(lambda layers: [refusal] * len(layers))
    graph = chain(1)
    oracle = SupportOracle([backend, CPU])
    assert oracle.ask(backend, graph.layers[0], graph) is refusal


def test_each_question_is_asked_once() -> None:
    asked = []

    class Asked(FakeBackend):
        def get_layer_support(self, request: PreparationRequest):  # type: ignore[no-untyped-def]  # as the base class
            asked.append(1)
            return super().get_layer_support(request)

    oracle = SupportOracle([Asked()])
    graph = chain(3)
    for _ in range(2):
        assign_backends(graph, oracle, {})
    assert asked == [1]
    assert oracle.ask(oracle.backends[0], graph.layers[0])


class AllButActivations(ILayerSupport):
    """Takes control flow, as CpuRef does not."""

    def is_layer_supported(self, operation: Operation, *about: object) -> Support:
        refused = isinstance(operation, Activation)
        return Support.no(ReasonCode.OPERATION, "no") if refused else Support.yes()


def test_layers_of_branches_that_nothing_reads_are_asked_about_as_well() -> None:
    def add_with_unread_layer(net: Network, x: Value) -> Value:
        net.add(RELU, x, name="unread")
        return net.add(ADD, x, x)

    branch = graph_of([f32(3)], add_with_unread_layer)
    graph = graph_of([BOOL, f32(3)], lambda net, flag, x: net.add(If(branch, branch), flag, x))
    backend = FakeBackend(faults={"get_layer_support": AllButActivations()})
    answer = SupportOracle([]).ask(backend, graph.layers[0])
    assert (answer.is_supported, answer.text) == (
        False,
        "Activation 'unread' in the then graph: no",
    )


class Fusing(FakeBackend):
    """Takes activations only after layers of its own."""

    def __init__(self, fault: Exception | None = None) -> None:
        super().__init__("Fusing")
        self.fault = fault

    def get_layer_support(self, request: PreparationRequest) -> ILayerSupport:
        fault, right = self.fault, super().get_layer_support(request)

        class Beside(ILayerSupport):
            def is_layer_supported(self, *about: Any) -> Support:
                return right.is_layer_supported(*about)

            def is_layer_supported_in(self, layer: Layer, graph: Graph) -> Support:
                if fault is not None:
                    raise fault
                if not isinstance(layer.operation, Activation):
                    return Support.yes()
                before = [graph.producers.get(value) for value in layer.inputs if value]
                if any(
                    producer and isinstance(producer.operation, ElementwiseBinary)
                    for producer in before
                ):
                    return Support.yes()
                return Support.no(ReasonCode.OTHER, "an activation is fused with a sum before it")

        return Beside()


def test_what_the_question_about_neighbours_raises_is_a_refusal() -> None:
    network = optimize_graph(chain(1), [Fusing(ValueError("no idea")), CPU])
    (refusal,) = network.placement.refusals
    assert "Fusing / is_layer_supported_in" in refusal.text
    assert "no idea" in refusal.text


class Batching(FakeBackend):
    """Answers about all layers of a network at once, with what a test gives."""

    def __init__(self, answer: Callable[[Sequence[Layer]], object]) -> None:
        super().__init__("Batching")
        self.answers = answer
        self.questions: list[list[str]] = []

    def get_layer_support(self, request: PreparationRequest) -> ILayerSupport:
        backend, alone = self, super().get_layer_support(request)

        class Together(ILayerSupport):
            def is_layer_supported(self, *about: Any) -> Support:
                backend.questions.append(["alone"])
                return alone.is_layer_supported(*about)

            def are_layers_supported(self, layers: Sequence[Layer]) -> Any:
                backend.questions.append([layer.name for layer in layers])
                return backend.answers(layers)

        return Together()


@pytest.mark.parametrize("answer", [[], [Support.yes()] * 3, [True, True], None])
def test_wrong_answers_about_all_layers_have_each_asked_about(answer: object) -> None:
    backend = Batching(lambda layers: answer)
    assignment = assign_backends(chain(2), SupportOracle([backend, CPU]), {})
    assert {backend.get_id() for backend in assignment.backends.values()} == {"Batching"}
    assert backend.questions[1:] == [["alone"], ["alone"]]


def test_a_layer_without_a_backend_is_an_error_with_every_backends_reason() -> None:
    backends = [FakeBackend("A", ()), FakeBackend("B", ())]
    text = (
        "ElementwiseBinary 'add_0': no allowed backend supports this layer: "
        r"A: A does not do ElementwiseBinary; B: B does not do ElementwiseBinary\. "
        r"Add another backend, such as CpuRef\."
    )
    with pytest.raises(BackendCapabilityError, match=text):
        optimize_graph(chain(), backends)


def test_an_excluded_pair_is_refused_with_the_reason_of_the_exclusion() -> None:
    excluded: Exclusions = {(1, "Fake"): Support.no(ReasonCode.PREPARATION, "it broke")}
    network = optimize_graph(chain(3), [FakeBackend(), CPU], excluded=excluded)
    assert network.backend_ids == {0: "Fake", 1: "CpuRef", 2: "Fake"}
    (refusal,) = network.placement.refusals
    assert (refusal.layer_id, refusal.code, refusal.text) == (1, "preparation", "it broke")


def test_fallback_can_be_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    optimize_graph(diamond(), [FakeBackend("First", {Activation}), CPU], OptimizerOptions("warn"))
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "3 fell back: ElementwiseBinary x3 refused by First" in record.message


def test_fallback_can_be_an_error() -> None:
    text = (
        "on_fallback='error': 3 layers do not run on First. Expected First to run every layer; got "
        "ElementwiseBinary 'left', refused by First: First does not do ElementwiseBinary"
    )
    with pytest.raises(BackendCapabilityError, match=text):
        optimize_graph(
            diamond(), [FakeBackend("First", {Activation}), CPU], OptimizerOptions("error")
        )


def test_other_choices_for_fallback_are_rejected() -> None:
    with pytest.raises(InvalidArgumentError, match="'allow', 'warn' or 'error'; got 'never'"):
        OptimizerOptions("never")


def test_a_damaged_graph_is_rejected_before_any_backend_is_asked() -> None:
    from dataclasses import replace

    graph = chain(2)
    backend = CompilingBackend()
    with pytest.raises(GraphValidationError, match="read before it is written"):
        optimize_graph(replace(graph, layers=graph.layers[::-1]), [backend])
    assert backend.offered == []


def test_the_text_of_a_report_names_the_commonest_reasons_and_counts_the_others() -> None:
    backends = [FakeBackend(name, ()) for name in "ABCDE"]
    text = str(optimize_graph(chain(1), [*backends, CPU]).placement)
    assert text.endswith("2 more reasons in the placement report")


def test_the_text_of_a_report_has_a_reason_of_several_operations_once() -> None:
    class Broken(FakeBackend):
        def optimize_subgraph_view(self, *arguments: object, **options: object) -> Never:
            raise BackendError("no such thing")

    net = Network()
    value = net.input("x", f32(4))
    for operation in (RELU, ADD, Softmax(), Pad(((0, 1),))):
        value = net.add(operation, *[value] * (2 if operation is ADD else 1))
    net.output("y", value)
    text = str(optimize_graph(net.build(), [Broken("Broken"), CPU]).placement)
    fallbacks = text.partition("4 fell back: ")[2]
    start, _, reason = fallbacks.partition(" refused by Broken (")
    assert start == "Activation x1, ElementwiseBinary x1, Softmax x1 and 1 more"
    assert reason.count("no such thing") == 1
    assert "refused by" not in reason
