"""Options go where their declarations say, and the caller's mistakes are errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from armpy.backend import (
    BackendOption,
    IBackendContext,
    IBackendModelContext,
    ILayerSupport,
    IWorkloadFactory,
    NetworkResources,
    OptimizationViews,
    OptionScope,
    OptionValues,
    PreparationRequest,
)
from armpy.errors import BackendError, InvalidArgumentError
from armpy.execution import Runtime, RuntimeOptions
from armpy.graph import SubgraphView
from tests.support.fake_backends import FakeBackend, registry_of, runtime_of
from tests.support.networks import chain, floats

DECLARED = (
    BackendOption("num_threads", 0, "Threads.", minimum=0),
    BackendOption("power", "high", "How fast.", choices=("low", "high")),
    BackendOption("mode", "fast", "How.", OptionScope.MODEL),
    BackendOption("cache", True, "Whether.", OptionScope.MODEL),
)


class Telling(FakeBackend):
    """Writes down which methods are called, with which options."""

    def __init__(
        self, backend_id: str = "Telling", declared: Sequence[BackendOption] = DECLARED
    ) -> None:
        super().__init__(backend_id)
        self._declared = declared
        self.calls: list[tuple[str, dict[str, object] | None]] = []

    def _tell(self, method: str, options: Mapping[str, object] | None = None) -> None:
        self.calls.append((method, None if options is None else dict(options)))

    @property
    def options(self) -> Sequence[BackendOption]:
        return self._declared

    def create_backend_context(self, options: Mapping[str, object]) -> IBackendContext | None:
        self._tell("context", options)
        return None

    def create_backend_specific_model_context(
        self, model_options: OptionValues
    ) -> IBackendModelContext:
        self._tell("model context", model_options)
        return IBackendModelContext()

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        self._tell("factory", network.model_options)
        return super().create_workload_factory(network)

    def get_layer_support(self, request: PreparationRequest) -> ILayerSupport:
        self._tell("support", request.model_options)
        return super().get_layer_support(request)

    def optimize_subgraph_view(
        self, view: SubgraphView, request: PreparationRequest
    ) -> OptimizationViews:
        self._tell("optimize", request.model_options)
        return super().optimize_subgraph_view(view, request)


def run(backend: FakeBackend, **options: object) -> float:
    """Load and run a network of three additions; its first result."""
    runtime = runtime_of(backend, **options)
    network = runtime.load_network(chain())
    result = runtime.enqueue_workload(network, {"x": floats(0, 0, 0, 0)})["y"]
    return float(result[0])


def test_without_model_options_requests_have_the_defaults() -> None:
    """A backend reads a declared option without asking whether it is there."""
    backend = Telling()
    assert run(backend, backend_options={"Telling": {"power": "low"}}) == 3
    assert backend.calls == [
        ("context", {"num_threads": 0, "power": "low"}),
        ("support", {"mode": "fast", "cache": True}),
        ("optimize", {"mode": "fast", "cache": True}),
        ("factory", {"mode": "fast", "cache": True}),
    ]


def test_model_options_are_completed_and_reach_the_methods() -> None:
    backend = Telling()
    assert run(backend, backend_options={"Telling": {"mode": "exact"}}) == 3
    complete = {"mode": "exact", "cache": True}
    assert backend.calls == [
        ("context", {"num_threads": 0, "power": "high"}),
        ("support", complete),
        ("optimize", complete),
        ("model context", complete),
        ("factory", complete),
    ]


def test_the_number_of_threads_reaches_the_backends_that_declare_it_only() -> None:
    with_threads, without = Telling("With"), Telling("Without", DECLARED[1:])
    own = Telling("Own")
    runtime_of(
        with_threads, without, own, num_threads=3, backend_options={"Own": {"num_threads": 1}}
    )
    told = [backend.calls[0][1] for backend in (with_threads, without, own)]
    assert told == [
        {"num_threads": 3, "power": "high"},
        {"power": "high"},
        {"num_threads": 1, "power": "high"},
    ]


def test_the_number_of_threads_may_be_a_models_option() -> None:
    backend = Telling(declared=[BackendOption("num_threads", 0, "Threads.", OptionScope.MODEL)])
    run(backend, num_threads=3)
    assert ("factory", {"num_threads": 3}) in backend.calls


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"Telling": {"pwr": "low"}}, "^Telling: .* no option 'pwr'.*Did you mean 'power'"),
        ({"Telling": {"power": "off"}}, "^Telling: the option 'power' cannot.*got 'off'"),
        ({"Telling": {"num_threads": True}}, "^Telling: the option 'num_threads'.*got True"),
        ({"CpuRef": {"x": 1}}, "^CpuRef: the backend has no option 'x'.*it has none"),
        ({"Npu": {}}, "^backend_options: there is no backend 'Npu'. Expected CpuRef, Telling"),
        ({"Telling": None}, r"backend_options\['Telling'\]: .*Expected Mapping; got NoneType"),
    ],
)
def test_the_callers_mistakes_are_errors_also_where_backends_are_chosen_automatically(
    options: dict[str, dict[str, object]], text: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=text):
        runtime_of(Telling(), backend_options=options)
    with pytest.raises(InvalidArgumentError, match=text):
        runtime_of(Telling(), backends=None, backend_options=options)


def test_options_of_a_backend_that_is_not_chosen_are_no_mistake() -> None:
    registry = registry_of(Telling(), FakeBackend("A"))
    options = {"Telling": {"power": "low"}}
    runtime = Runtime(RuntimeOptions(["A"], registry=registry, backend_options=options))
    assert runtime.get_device_spec().supported_backends == ("A",)


@pytest.mark.parametrize(
    ("declared", "text"),
    [
        ("power", "Expected tuple; got 'power'"),
        (["power"], "an entry has the wrong type. Expected BackendOption; got 'power'"),
        ([BackendOption("", 1, "")], "the name of an option is not an identifier"),
        ([BackendOption(5, 1, "")], "is not an identifier"),  # type: ignore[arg-type]
        ([BackendOption("a", 1, "", "model")], "'model' in place of a OptionScope"),  # type: ignore[arg-type]
        ([BackendOption("a", 1, "", choices=[1])], "in place of a tuple"),  # type: ignore[arg-type]
        ([BackendOption("a", 1, "", minimum=2)], "default .* not allowed.*at least 2; got 1"),
        ([BackendOption("a", None, "")], "the default of an option is not allowed"),  # type: ignore[arg-type]
        ([BackendOption("a", 1, "", minimum="0")], "raised TypeError"),  # type: ignore[arg-type]
        ([DECLARED[0], DECLARED[0]], "two options have the same name"),
    ],
)
def test_a_backend_that_declares_wrongly_is_left_out(
    declared: list[BackendOption], text: str
) -> None:
    backend = Telling(declared=declared)
    with pytest.raises(BackendError, match=f"^Telling / options: .*{text}"):
        runtime_of(backend)
    spec = runtime_of(backend, backends=None).get_device_spec()
    assert spec.supported_backends == ("CpuRef",)
