"""Options of runtimes and backends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

import armpy
from armpy.backend import (
    BackendOption,
    IBackendContext,
    IBackendInternal,
    IBackendModelContext,
    ILayerSupport,
    IWorkloadFactory,
    NetworkResources,
    OptimizationViews,
    OptionScope,
    OptionValues,
    PreparationRequest,
)
from armpy.errors import BackendError, BackendUnavailableError, InvalidArgumentError
from armpy.execution import Runtime, RuntimeOptions
from armpy.graph import SubgraphView
from armpy.plugins.hooks import hookimpl
from armpy_testing.backends.fake_backends import FakeBackend, registry_of, runtime_of
from armpy_testing.models.networks import chain, floats


class Plugin:
    """Answers with some options."""

    def __init__(self, answer: object) -> None:
        self.answer = answer
        self.seen: list[Mapping[str, object]] = []

    @hookimpl
    def armpy_configure_runtime(self, options: Mapping[str, object]) -> object:
        self.seen.append(options)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


class Configurable(FakeBackend):
    """A backend with options."""

    @property
    def options(self) -> tuple[BackendOption, ...]:
        size = BackendOption("size", 1, "How large.", minimum=0)
        return (size, BackendOption("name", "n", "Whose."))

    def create_backend_context(self, options: Mapping[str, object]) -> None:
        return None


def runtime(*answers: object, **options: Any) -> Runtime:
    """A runtime with two backends that is configured by plugins with these answers."""
    registry = registry_of(Configurable("A"), FakeBackend("B"))
    for number, answer in enumerate(answers):
        plugin = answer if isinstance(answer, Plugin) else Plugin(answer)
        registry.plugins.register(f"p{number}", plugin)
    return Runtime(RuntimeOptions(registry=registry, **options))


def problems(made: Runtime) -> list[tuple[str, str]]:
    """Plugin and reason of all that went wrong."""
    return [(c.backend_id, failure.reason) for c, _, failure in made.registry.plugins.problems]


def test_unset_options_are_the_plugins() -> None:
    configured = runtime({"num_threads": 3, "backends": ["B"]}, {"program_cache_size": 7})
    assert configured.options.num_threads == 3
    assert configured.options.program_cache_size == 7
    assert configured.get_device_spec().supported_backends == ("B",)
    assert problems(configured) == []


def test_what_the_application_has_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = {"num_threads": 3, "backends": ["B"]}
    configured = runtime(answer, num_threads=2, backends=["A"])
    assert (configured.options.num_threads, configured.options.backends) == (2, ["A"])
    monkeypatch.setenv("ARMPY_BACKENDS", "A")
    configured = runtime(answer)
    assert configured.options.num_threads == 3
    assert configured.get_device_spec().supported_backends == ("A",)


def test_of_two_plugins_the_first_counts() -> None:
    assert runtime({"num_threads": 3}, {"num_threads": 4}).options.num_threads == 3


def test_options_of_backends_are_joined_one_by_one() -> None:
    configured = runtime(
        {"backend_options": {"A": {"size": 5, "name": "plugin"}}},
        backend_options={"A": {"name": "mine"}},
    )
    assert configured.options.backend_options == {"A": {"size": 5, "name": "mine"}}


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"backends": ["C"]}, "no runtime can be set up with its answer: there is no backend 'C'"),
        (
            {"backends": []},
            "no runtime can be set up with its answer: backends: the list of backends is emp",
        ),
        ({"backend_options": {"A": {"size": -1}}}, "no runtime can be set up with its answer: A"),
        ({"trust_insecure_paths": True}, "trust_insecure_paths: this option is none that plugins"),
        ({"registry": None}, "registry: this option is none that plugins answer"),
        ({"memory_limit_bytes": 1 << 60}, "memory_limit_bytes: this option is none that plugins"),
        ({"num_threads": "4"}, "num_threads: the number of threads cannot be used"),
        ({"num_threads": 0}, "num_threads: the number of threads cannot be used"),
        ({"backend_options": 3}, "backend_options: the argument has the wrong type"),
        (["num_threads"], "it returned 'num_threads'. Expected Mapping"),
        (SystemExit(1), "SystemExit: 1"),
    ],
)
def test_a_wrong_answer_is_left_out_and_takes_no_other_along(answer: object, reason: str) -> None:
    configured = runtime({"on_fallback": "warn"}, answer, {"program_cache_size": 7})
    assert (configured.options.on_fallback, configured.options.program_cache_size) == ("warn", 7)
    assert configured.get_device_spec().supported_backends == ("A", "B")
    ((plugin, message),) = problems(configured)
    assert plugin == "p1"
    assert message.startswith(reason)


def test_the_applications_own_mistake_is_not_a_plugins() -> None:
    plugin = Plugin({"num_threads": 3})
    with pytest.raises(BackendUnavailableError, match="there is no backend 'C'"):
        runtime(plugin, backends=["C"])


# Options go where their declarations say, and the caller's mistakes are errors


DECLARED = (
    BackendOption("num_threads", 0, "Threads.", minimum=0),
    BackendOption("power", "high", "How fast.", choices=("low", "high")),
    BackendOption("mode", "fast", "How.", OptionScope.MODEL),
    BackendOption("cache", True, "Whether.", OptionScope.MODEL),
)


class Recording(FakeBackend):
    """Writes down which methods are called, with which options."""

    def __init__(
        self, backend_id: str = "Recording", declared: Sequence[BackendOption] = DECLARED
    ) -> None:
        super().__init__(backend_id)
        self._declared = declared
        self.calls: list[tuple[str, dict[str, object] | None]] = []

    def _record(self, method: str, options: Mapping[str, object] | None = None) -> None:
        self.calls.append((method, None if options is None else dict(options)))

    @property
    def options(self) -> Sequence[BackendOption]:
        return self._declared

    def create_backend_context(self, options: Mapping[str, object]) -> IBackendContext | None:
        self._record("context", options)
        return None

    def create_backend_specific_model_context(
        self, model_options: OptionValues
    ) -> IBackendModelContext:
        self._record("model context", model_options)
        return IBackendModelContext()

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        self._record("factory", network.model_options)
        return super().create_workload_factory(network)

    def get_layer_support(self, request: PreparationRequest) -> ILayerSupport:
        self._record("support", request.model_options)
        return super().get_layer_support(request)

    def optimize_subgraph_view(
        self, view: SubgraphView, request: PreparationRequest
    ) -> OptimizationViews:
        self._record("optimize", request.model_options)
        return super().optimize_subgraph_view(view, request)


def run(backend: FakeBackend, **options: object) -> float:
    """Load and run a network of three additions; its first result."""
    runtime = runtime_of(backend, **options)
    network = runtime.load_network(chain())
    result = runtime.enqueue_workload(network, {"x": floats(0, 0, 0, 0)})["y"]
    return float(result[0])


def test_without_model_options_requests_have_the_defaults() -> None:
    """A backend reads a declared option without asking whether it is there."""
    backend = Recording()
    assert run(backend, backend_options={"Recording": {"power": "low"}}) == 3
    assert backend.calls == [
        ("context", {"num_threads": 0, "power": "low"}),
        ("support", {"mode": "fast", "cache": True}),
        ("optimize", {"mode": "fast", "cache": True}),
        ("factory", {"mode": "fast", "cache": True}),
    ]


def test_the_number_of_threads_reaches_the_backends_that_declare_it_only() -> None:
    with_threads, without = Recording("With"), Recording("Without", DECLARED[1:])
    own = Recording("Own")
    runtime_of(
        with_threads, without, own, num_threads=3, backend_options={"Own": {"num_threads": 1}}
    )
    options_by_backend = [backend.calls[0][1] for backend in (with_threads, without, own)]
    assert options_by_backend == [
        {"num_threads": 3, "power": "high"},
        {"power": "high"},
        {"num_threads": 1, "power": "high"},
    ]


def test_the_number_of_threads_may_be_a_models_option() -> None:
    backend = Recording(declared=[BackendOption("num_threads", 0, "Threads.", OptionScope.MODEL)])
    run(backend, num_threads=3)
    assert ("factory", {"num_threads": 3}) in backend.calls


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
    backend = Recording(declared=declared)
    with pytest.raises(BackendError, match=f"^Recording / options: .*{text}"):
        runtime_of(backend)
    spec = runtime_of(backend, backends=None).get_device_spec()
    assert spec.supported_backends == ("CpuRef",)


# What a caller says has an effect, or is an error


class Fast(FakeBackend):
    """Declares an option, which it is given nowhere."""

    scope = OptionScope.MODEL

    @property
    def options(self) -> list[BackendOption]:
        return [BackendOption("fast", False, "Be fast.", self.scope)]


class FastAtRunTime(Fast):
    """Declares an option of the runtime's scope, which it is given nowhere."""

    scope = OptionScope.RUNTIME
    create_backend_context = IBackendInternal.create_backend_context  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("backends", ["CpuRef"]),
        ("num_threads", 1),
        ("on_fallback", "error"),
        ("trusted_keys", [b"\1" * 32]),
        ("code", "never"),
    ],
)
def test_options_beside_a_runtime_that_has_its_own_are_refused(option: str, value: object) -> None:
    runtime = Runtime(RuntimeOptions(backends=["CpuRef"]))
    text = rf"load: options cannot be combined with a runtime.*got {option}="
    with pytest.raises(InvalidArgumentError, match=text):
        armpy.load(b"", runtime=runtime, **{option: value})  # type: ignore[arg-type]


def test_an_option_that_a_backend_never_asks_for_is_an_error() -> None:
    text = "^A: the option 'fast' has no effect: the backend never asks for it"
    with pytest.raises(BackendError, match=text):
        runtime_of(FastAtRunTime("A"), backend_options={"A": {"fast": True}})
    runtime_of(FastAtRunTime("A"))  # nothing is lost where it is not given


def test_options_of_a_backend_that_cannot_be_loaded_here_are_no_error() -> None:
    def fail() -> FakeBackend:
        raise OSError("the device is not there")

    registry = registry_of(FakeBackend("A"))
    registry.register("B", fail)
    options = {"B": {"anything": 1}}
    Runtime(RuntimeOptions(backends=["A"], registry=registry, backend_options=options))
