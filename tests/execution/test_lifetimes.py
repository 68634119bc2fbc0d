"""Closing a runtime closes everything, and notifies backends once."""

from __future__ import annotations

import gc
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from armpy_reference import ReferenceBackend

from armpy.backend import (
    BackendOption,
    IBackendContext,
    IBackendInternal,
    IBackendModelContext,
    IWorkloadFactory,
    NetworkResources,
    OptionScope,
    OptionValues,
)
from armpy.errors import ArmpyError, BackendError, InvalidArgumentError
from armpy.execution import Runtime, RuntimeOptions
from armpy.model import Model
from armpy.plugins import BackendRegistry
from armpy_testing.backends.fake_backends import (
    CompilingBackend,
    FakeBackend,
    Faults,
    Handles,
    Outputs,
    RecordingContext,
    Step,
    registry_of,
    runtime_of,
)
from armpy_testing.effort import effort
from armpy_testing.models.networks import chain, floats
from tests.support.sabotage import RAISED

X = floats(0, 1, 2, 3)
Log = list[tuple[str, str, int]]


class ClosingContext(RecordingContext):
    """Writes down that it was closed, too."""

    def close(self) -> None:
        self._note("close", -1)


class ModelContext(IBackendModelContext):
    """Writes down that it was closed."""

    def __init__(self, log: Log, faults: Faults) -> None:
        self._log = log
        self._faults = faults

    def close(self) -> None:
        self._log.append(("model", "close", -1))
        if fault := self._faults.get("close"):
            assert isinstance(fault, BaseException)
            raise fault


class Contextual(FakeBackend):
    """Makes contexts that record their notifications."""

    options = (
        BackendOption("mode", 0, "Whatever.", OptionScope.MODEL),
        BackendOption("power", 0, "Whatever.", minimum=0),
    )

    def __init__(self, log: Log, backend_id: str = "A", faults: Faults | None = None) -> None:
        super().__init__(backend_id, faults=faults)
        self.log = log

    def create_backend_context(self, options: OptionValues) -> IBackendContext:  # type: ignore[override]
        return ClosingContext(self.get_id(), self.log, self.faults)

    def create_backend_specific_model_context(
        self, model_options: OptionValues
    ) -> IBackendModelContext:
        return ModelContext(self.log, self.faults)


WITH_OPTIONS = {"A": {"mode": 1}}


@pytest.fixture
def log() -> Log:
    return []


@pytest.fixture
def without_collector() -> Iterator[None]:
    """References alone decide."""
    gc.disable()
    yield
    gc.enable()


def closed(log: Log) -> list[str]:
    """Whose contexts were closed, in order."""
    return [name for name, event, _ in log if event == "close"]


@pytest.mark.slow
def test_contexts_are_closed_once(log: Log) -> None:
    runtime = runtime_of(Contextual(log), Contextual(log, "B"))
    runtime.load_network(chain())
    runtime.close()
    runtime.close()
    del runtime
    gc.collect()
    unloads = [(n, f"{w}_unload_network", 0) for w in ("before", "after") for n in "AB"]
    assert log[-6:] == [*unloads, ("A", "close", -1), ("B", "close", -1)]
    assert closed(log) == ["A", "B"]


@pytest.mark.usefixtures("without_collector")
def test_a_runtime_lives_as_long_as_what_is_bound_on_it(log: Log) -> None:
    execution = Model(chain(), runtime_of(Contextual(log))).bind({"x": X})
    assert closed(log) == []
    np.testing.assert_array_equal(execution()["y"], X + 3)
    del execution
    assert closed(log) == ["A"]


@pytest.mark.parametrize("fault", RAISED)
def test_a_context_that_raises_when_it_is_closed_is_logged_and_all_else_is_closed(
    fault: type[BaseException], log: Log, caplog: pytest.LogCaptureFixture
) -> None:
    faults = {"close": fault("oops")}
    backends = [Contextual(log, faults=faults), Contextual(log, "B", faults)]
    runtime = runtime_of(*backends, backend_options=WITH_OPTIONS)
    runtime.load_network(chain())
    runtime.close()
    assert closed(log) == ["model", "A", "B"]
    assert caplog.text.count(f"A / close: the backend raised {fault.__name__}('oops')") == 2


def test_a_model_context_is_closed_if_nothing_can_be_made_with_it(log: Log) -> None:
    faults = {"create_workload_factory": ValueError("oops")}
    runtime = runtime_of(Contextual(log, faults=faults), backend_options=WITH_OPTIONS)
    network = runtime.load_network(chain())
    assert closed(log) == ["model"]
    assert runtime.get_network(network).placement is not None
    runtime.close()
    assert closed(log) == ["model", "A"]


def test_a_model_context_is_closed_if_the_network_cannot_be_loaded(log: Log) -> None:
    backend = Contextual(log, faults={"create_workload": ArmpyError("oops")})
    options = RuntimeOptions(["A"], registry=registry_of(backend), backend_options=WITH_OPTIONS)
    runtime = Runtime(options)
    with pytest.raises(ArmpyError, match="oops") as caught:  # whose traceback keeps its frames
        runtime.load_network(chain())
    assert closed(log) == ["model"]
    del caught


def test_a_model_context_is_closed_if_another_context_refuses_the_load(log: Log) -> None:
    faults = {"after_load_network": ValueError("oops")}
    runtime = runtime_of(Contextual(log, faults=faults), backend_options=WITH_OPTIONS)
    with pytest.raises(BackendError, match="oops"):
        runtime.load_network(chain())
    assert closed(log) == ["model"]


class Waiting(Contextual):
    """Its workloads, or their making, wait to be let go."""

    def __init__(self, log: Log) -> None:
        super().__init__(log)
        self.reached, self.go_on = threading.Event(), threading.Event()
        self.waits_at = "execute"

    def wait(self, method: str) -> None:
        if method == self.waits_at:
            self.reached.set()
            assert self.go_on.wait(30)

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        self.wait("create_workload_factory")
        return super().create_workload_factory(network)

    def execute(self, step: Step, inputs: Handles, outputs: Outputs) -> None:
        self.wait("execute")
        step.right.execute(inputs, outputs)


def in_thread(call: Callable[[], object]) -> tuple[threading.Thread, list[object]]:
    """Something that runs meanwhile, and what comes of it."""
    results: list[object] = []

    def run() -> None:
        try:
            results.append(call())
        except ArmpyError as error:
            results.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, results


@pytest.mark.sampled(5)
@pytest.mark.parametrize("end", ["unload", "close", "drop"])
def test_a_model_context_outlives_executions_under_way(end: str, log: Log) -> None:
    backend = Waiting(log)
    runtime = runtime_of(backend, backend_options=WITH_OPTIONS)
    network_id = runtime.load_network(chain())
    network = runtime.get_network(network_id)
    thread, results = in_thread(lambda run=network.run: run([X])[0].tolist())  # type: ignore[misc]
    assert backend.reached.wait(30)
    if end == "unload":
        runtime.unload_network(network_id)
    elif end == "close":
        runtime.close()
    del runtime
    assert closed(log) == ["A"]
    backend.go_on.set()
    thread.join()
    del network, thread
    gc.collect()
    assert results == [[3, 4, 5, 6]]
    assert closed(log) == ["A", "model"]


def test_a_runtime_that_is_closed_waits_for_loads_in_other_threads(log: Log) -> None:
    backend = Waiting(log)
    backend.waits_at = "create_workload_factory"
    runtime = runtime_of(backend)
    loading, _ = in_thread(lambda: runtime.load_network(chain()))
    assert backend.reached.wait(30)
    closing, _ = in_thread(runtime.close)
    while not runtime.is_closed:
        pass
    with pytest.raises(InvalidArgumentError, match="the runtime is closed"):
        runtime.load_network(chain())
    assert closed(log) == []
    backend.go_on.set()
    loading.join()
    closing.join()
    events = [
        f"{when}_{action}_network" for action in ("load", "unload") for when in ("before", "after")
    ]
    assert [event for _, event, _ in log] == [*events, "close"]


def test_a_context_that_closes_the_runtime_from_within_ends_well(log: Log) -> None:
    class Impatient(ClosingContext):
        def before_unload_network(self, network_id: int) -> None:
            super().before_unload_network(network_id)
            runtime.close()

    runtime = runtime_of(FakeBackend("A", context=Impatient("A", log)))
    networks = [runtime.load_network(chain()) for _ in range(2)]
    runtime.unload_network(networks[0])
    assert closed(log) == ["A"]
    for network in networks:
        with pytest.raises(InvalidArgumentError, match="no network is loaded"):
            runtime.get_network(network)


class TestForRuntime:
    """The runtime's own backend, which its options have made."""

    class Powered(Contextual):
        """Is another object for each runtime."""

        power = 0
        made: list[FakeBackend]
        made_id = "A"

        def for_runtime(self, options: OptionValues) -> IBackendInternal:
            own = type(self)(self.log, self.made_id)
            own.power = int(options["power"])
            self.made.append(own)
            return own

        def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
            self.log.append(("power", str(self.power), 0))
            return super().create_workload_factory(network)

    @pytest.fixture
    def backend(self, log: Log) -> Powered:
        backend = self.Powered(log)
        backend.made = []
        return backend

    def test_a_backend_whose_id_differs_in_a_runtime_is_left_out(self, backend: Powered) -> None:
        backend.made_id = "B"
        text = r"^A / for_runtime: .*id differs in this runtime\. Expected 'A'; got 'B'"
        with pytest.raises(BackendError, match=text):
            runtime_of(backend)
        spec = runtime_of(backend, backends=None).get_device_spec()
        assert spec.supported_backends == ("CpuRef",)

    @pytest.mark.slow
    def test_what_is_made_for_a_runtime_goes_with_it(self, backend: Powered) -> None:
        runtime = runtime_of(backend)
        Model(chain(), runtime)(X)
        reference = weakref.ref(backend.made.pop())
        assert reference() is not None
        del runtime
        gc.collect()
        assert reference() is None


def num_descriptors() -> int:
    """Files that this process has open; 0 where that is unknown."""
    path = Path("/proc/self/fd")
    return len(os.listdir(path)) if path.exists() else 0


def make(registry: BackendRegistry, **given: object) -> Runtime:
    options = {"A": {"mode": 1, "power": 2}}
    return Runtime(RuntimeOptions(registry=registry, backend_options=options, **given))  # type: ignore[arg-type]


def bare(registry: BackendRegistry) -> list[object]:
    return [make(registry)]


def with_networks(registry: BackendRegistry) -> list[object]:
    runtime = make(registry)
    return [runtime, *map(runtime.get_network, [runtime.load_network(GRAPH) for _ in range(2)])]


def with_executions(registry: BackendRegistry) -> list[object]:
    model = Model(GRAPH, make(registry))
    model(X)
    return [model, model.runtime, model.runtime.get_network(model.network_id)]


def in_a_ring(registry: BackendRegistry) -> list[object]:
    objects = with_executions(registry)
    objects[0].itself = objects  # type: ignore[attr-defined]
    return objects


def that_are_closed(registry: BackendRegistry) -> list[object]:
    model = Model(GRAPH, make(registry), closes_runtime=True)
    model(X)
    objects = [model, model.runtime, model.runtime.get_network(model.network_id)]
    model.close()
    return objects


def that_fail(registry: BackendRegistry) -> list[object]:
    runtime = make(registry, backends=["A"])
    backend = registry.get("A")
    assert isinstance(backend, FakeBackend)
    backend.faults = {"create_workload": ArmpyError("oops")}
    with pytest.raises(ArmpyError, match="oops"):
        runtime.load_network(GRAPH)
    backend.faults = {}
    return [runtime]


def num_threads() -> int:
    """How many threads there are, without the process's own that looks now and then at memory."""
    return sum(thread.name != "armpy-idling" for thread in threading.enumerate())


GRAPH = chain()
USES = [bare, with_networks, with_executions, in_a_ring, that_are_closed, that_fail]


@pytest.mark.slow
@pytest.mark.parametrize("use", USES)
def test_many_runtimes_leave_nothing(use: Callable[[BackendRegistry], list[object]]) -> None:
    log: Log = []
    count = effort(200)
    registry = registry_of(Contextual(log), CompilingBackend(), ReferenceBackend())
    modules, threads = set(sys.modules), num_threads()
    alive: list[weakref.ref[object]] = []
    for number in range(count + 10):
        if number == 10:  # what is made once for the process has been made
            gc.collect()
            log.clear()
            alive.clear()
            gc.collect()  # which also empties the interpreter's own stores
            modules, descriptors = set(sys.modules), num_descriptors()
            objects, blocks = len(gc.get_objects()), sys.getallocatedblocks()
        alive.extend(map(weakref.ref, use(registry)))
        if number % 100 == 99:
            gc.collect()
            assert [reference() for reference in alive if reference() is not None] == []
            alive.clear()
    gc.collect()
    assert [reference() for reference in alive if reference() is not None] == []
    events = [event for _, event, _ in log]
    assert closed(log).count("A") == count
    assert events.count("after_unload_network") == events.count("before_load_network")
    assert closed(log).count("model") == events.count("before_load_network")
    del events
    log.clear()
    alive.clear()
    gc.collect()
    assert len(gc.get_objects()) < objects + 100
    assert sys.getallocatedblocks() < blocks + 500
    assert set(sys.modules) == modules
    assert num_threads() <= threads
    assert num_descriptors() <= descriptors
