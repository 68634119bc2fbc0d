"""Plugins and backends that decide where layers go."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable

import numpy as np
import pytest
from armpy_reference import ReferenceBackend

from armpy.backend import (
    Capability,
    DeviceFigures,
    HostTensorHandle,
    IBackendInternal,
    NetworkResources,
    PerformanceFigures,
    PreparationRequest,
    WorkloadInfo,
)
from armpy.compiler import Placement
from armpy.compiler.devices import DeviceFacts, FigureSource
from armpy.errors import BackendCapabilityError, InvalidArgumentError
from armpy.execution import Runtime, RuntimeOptions
from armpy.graph import Graph
from armpy.ops import Activation
from armpy.plugins import BackendRegistry
from armpy.plugins.hooks import (
    Alternative,
    PlacementDecision,
    PlacementQuestion,
    Placer,
    hookimpl,
)
from armpy.types import DataType, Preference
from armpy_testing.backends.fake_backends import FakeBackend, registry_of
from armpy_testing.backends.scripted_backend import ScriptedBackend, declaration
from armpy_testing.models.networks import ADD, chain, diamond, f32, floats

Decide = Callable[[PlacementQuestion], PlacementDecision | None]


class Plugin:
    """A plugin with one placer."""

    def __init__(self, placer: Placer) -> None:
        self.placer = placer

    @hookimpl
    def armpy_register_placer(self) -> Placer:
        return self.placer


def registry_with(
    decide: Decide | None, *backends: ScriptedBackend | FakeBackend
) -> BackendRegistry:
    registry = registry_of(*backends, ReferenceBackend())
    if decide is not None:
        registry.plugins.register("mine", Plugin(Placer(decide)))
    return registry


def runtime_with(decide: Decide | None, *backends: ScriptedBackend | FakeBackend) -> Runtime:
    registry = registry_with(decide, *backends)
    ids = [*(backend.get_id() for backend in backends), "CpuRef"]
    return Runtime(RuntimeOptions(ids, registry=registry, preference=Preference.SUSTAINED))


def placement_of(runtime: Runtime, graph: Graph) -> Placement:
    with runtime:
        placement = runtime.get_network(runtime.load_network(graph)).placement
    assert placement is not None
    return placement


def test_a_plugin_places_layers_and_gives_the_reason() -> None:
    alternatives = (Alternative("all on B", {"B": 3}, 1.0, is_chosen=True),)

    def decide(question: PlacementQuestion) -> PlacementDecision:
        backends = {layer.id: "B" for layer in question.graph.layers}
        return PlacementDecision(backends, "by its letter", alternatives)

    placement = placement_of(runtime_with(decide, FakeBackend("A"), FakeBackend("B")), chain())
    assert placement.layers_by_backend == {"B": 3}
    assert placement.fallbacks == 0
    assert (placement.preference, placement.basis) == ("sustained", "by its letter")
    assert placement.alternatives == alternatives


def question_about(graph: Graph, *backends: ScriptedBackend | FakeBackend) -> PlacementQuestion:
    asked: list[PlacementQuestion] = []

    def decide(question: PlacementQuestion) -> None:
        asked.append(question)

    placement = placement_of(runtime_with(decide, *backends), graph)
    assert (placement.preference, placement.basis) == ("preference", "order")
    (question,) = asked
    return question


def test_a_backend_that_wants_all_layers_and_refuses_one_is_no_choice() -> None:
    declared = declaration(capabilities={Capability.ALL_OR_NOTHING: True})
    wants = ScriptedBackend("Wants", operations=[Activation], declared=declared)
    assert set(question_about(diamond(), wants).choices.values()) == {("CpuRef",)}


def raising(question: PlacementQuestion) -> PlacementDecision:
    raise ValueError("no idea")


def incomplete(question: PlacementQuestion) -> PlacementDecision:
    return PlacementDecision({}, "by chance")


def unsupported(question: PlacementQuestion) -> PlacementDecision:
    return PlacementDecision(dict.fromkeys(question.choices, "Other"), "by chance")


def nonsense(question: PlacementQuestion) -> PlacementDecision:
    return "everywhere"  # type: ignore[return-value]  # the test's point


@pytest.mark.parametrize(
    ("decide", "reason"),
    [
        (raising, "ValueError: no idea"),
        (incomplete, "is placed on None. Expected A or CpuRef"),
        (unsupported, "is placed on 'Other'. Expected A or CpuRef"),
        (nonsense, "it decided 'everywhere'. Expected PlacementDecision or None"),
    ],
)
def test_an_answer_that_cannot_be_used_is_logged_and_the_order_decides(
    decide: Decide, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    placement = placement_of(runtime_with(decide, FakeBackend("A")), chain())
    assert placement.layers_by_backend == {"A": 3}
    assert "armpy_register_placer of plugin 'mine'" in caplog.text
    assert reason in caplog.text


def test_a_layer_that_no_backend_takes_is_an_error_as_ever() -> None:
    def decide(question: PlacementQuestion) -> PlacementDecision:
        raise AssertionError("there is nothing to decide")

    registry = registry_with(decide, FakeBackend("A", {Activation}))
    options = RuntimeOptions(["A"], registry=registry, preference=Preference.SUSTAINED)
    with (
        Runtime(options) as runtime,
        pytest.raises(BackendCapabilityError, match="no allowed backend supports this layer: A"),
    ):
        runtime.load_network(chain())


@pytest.fixture
def no_extensions(monkeypatch: pytest.MonkeyPatch) -> None:
    """No plugin is installed."""
    monkeypatch.setattr(BackendRegistry, "discover", lambda options=None: BackendRegistry(options))


@pytest.mark.usefixtures("no_extensions")
def test_without_a_plugin_a_preference_names_the_extension_that_has_one() -> None:
    with (
        runtime_with(None, FakeBackend("A")) as runtime,
        pytest.raises(
            InvalidArgumentError,
            match=r"preference: placement by cost needs armpy-tools.*Expected 'preference'.*"
            r"got 'sustained'\. Run: pip install \.[/\\]extensions[/\\]conformance "
            r"\.[/\\]extensions[/\\]tools",
        ),
    ):
        runtime.load_network(chain())


def devices_with(placer: Placer, *backends: FakeBackend) -> tuple[DeviceFacts, ...]:
    """The devices of backends, in a runtime whose registry has a placer."""
    registry = registry_of(*backends)
    registry.plugins.register("mine", Plugin(placer))
    ids = [backend.get_id() for backend in backends]
    with Runtime(RuntimeOptions(ids, registry=registry)) as runtime:
        return runtime.devices


def test_figures_that_a_plugin_has_measured_are_facts_about_the_device() -> None:
    figures = DeviceFigures({DataType.FLOAT32: PerformanceFigures(0.5, 0.25)})
    known = {("A", FakeBackend("A").version): figures}
    placer = Placer(incomplete, lambda *about: known.get(about))
    a, b = devices_with(placer, FakeBackend("A"), FakeBackend("B"))
    assert (a.figures, a.figures_source) == (figures, FigureSource.MEASURED)
    assert b.figures is None


def test_measured_figures_that_cannot_be_are_not_used(caplog: pytest.LogCaptureFixture) -> None:
    wrong = DeviceFigures({DataType.FLOAT32: PerformanceFigures(-1.0)})
    (device,) = devices_with(Placer(incomplete, lambda *_: wrong), FakeBackend("A"))
    assert device.figures is None
    assert "exec_time is not a number" in caplog.text


# Backends that go before what they have made


@pytest.mark.slow
@pytest.mark.parametrize("make", [ReferenceBackend, FakeBackend])
def test_what_a_backend_has_made_outlives_it(make: Callable[[], IBackendInternal]) -> None:
    backend = make()
    gone = weakref.ref(backend)
    support, factory = (
        backend.get_layer_support(PreparationRequest()),
        backend.create_workload_factory(NetworkResources()),
    )
    del backend
    gc.collect()
    assert gone() is None
    info = f32(2)
    assert support.is_layer_supported(ADD, (info, info), (info,))
    about = WorkloadInfo("add", (info, info), (info,), (None, None))
    workload = factory.create_workload(ADD, about)
    del factory, support
    gc.collect()
    y = np.zeros(2, np.float32)
    handles = [HostTensorHandle(info, array) for array in (floats(1, 2), floats(3, 4), y)]
    workload.execute(handles[:2], handles[2:])
    assert y.tolist() == [4, 6]
