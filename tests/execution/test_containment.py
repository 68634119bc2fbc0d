"""Whatever a plugin raises or answers wrongly stays its own."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from armpy_reference import ReferenceBackend

import armpy.backend
from armpy.backend import (
    IBackendCache,
    IBackendContext,
    IBackendInternal,
    IBackendModelContext,
    IBackendProfiling,
    ICompletion,
    ICustomAllocator,
    IDeviceMemory,
    IEngineBackend,
    IEngineProgram,
    IEnginePrograms,
    IMemoryOptimizerStrategy,
    IPrograms,
    IResizableProgram,
    ITensorHandle,
    ITensorHandleFactory,
    IWorkload,
)
from armpy.errors import ArmpyError, BackendError
from armpy.execution import Runtime, RuntimeOptions
from armpy.execution.calls.invocation import Invocation
from armpy.graph import Graph
from armpy.graph.network import Network
from armpy_testing.backends.device_memory import shared
from armpy_testing.backends.fake_backends import FakeBackend, registry_of
from armpy_testing.models.networks import ADD, RELU, f32, floats, placement_of
from tests.support.sabotage import (
    ANSWERED,
    CONTRACT,
    RAISED,
    CustomAllocator,
    CustomStrategy,
    Sabotage,
    Unspeakable,
    full_backend,
    members,
)

NOT_CALLED = {
    (IBackendInternal, "get_free_memory"),  # by the command line only
    (IBackendInternal, "get_diagnosis"),  # by the doctor only
    (IBackendInternal, "get_typical_figures"),  # by device facts only
    (IBackendInternal, "allocate_device_memory"),  # for described memory: test_memory_domains
    *((IDeviceMemory, member) for member in members(IDeviceMemory)),
    (IBackendInternal, "get_caches"),  # by the command line only, which has tests of its own
    *(
        (IPrograms, member) for member in members(IPrograms)
    ),  # see tests/compiler/test_compiled_cache.py
    *((IBackendCache, member) for member in members(IBackendCache)),
    (IBackendContext, "close"),  # when the runtime has gone; see test_lifetimes
    (ICustomAllocator, "allocate_external"),  # by backends, through what checks it
    (ICustomAllocator, "free_external"),
    (ICompletion, "cancel"),  # of executions that are stopped; see test_queues
    (ITensorHandle, "export_memory"),  # if there are two backends; see test_shared_tensors
    (ITensorHandle, "info"),
    (IMemoryOptimizerStrategy, "name"),  # the application's, and read before any backend is set up
    (IMemoryOptimizerStrategy, "packing_type"),
    # For shapes that are new to a known network; see the kit's planted faults of sizes.
    *((IResizableProgram, member) for member in members(IResizableProgram)),
}
CALLED_BY: dict[tuple[type, str], str] = {
    (IWorkload, "execute"): "backend raised",
    (IWorkload, "enqueue"): "backend raised",
    (ITensorHandle, "map"): "backend raised",  # the backend's own calls it first
    (ITensorHandle, "unmap"): "backend raised",
    (ITensorHandleFactory, "factory_id"): "register_tensor_handle_factories",
}
READ_ONCE = {
    "get_id",
    "get_api_version",
    "get_devices",
    "version",
    "options",
    "extensions",
    "supported_extensions",
    "get_capabilities",
    "for_runtime",
    "create_backend_context",
    "use_custom_memory_allocator",
}
MEMBERS = [(k, m) for k in CONTRACT for m in members(k) if (k, m) not in NOT_CALLED]
IDS = [f"{kind.__name__}.{member}" for kind, member in MEMBERS]
LATE = [(k, m) for k, m in MEMBERS if m not in READ_ONCE]
LATE_IDS = [f"{kind.__name__}.{member}" for kind, member in LATE]
FAULTS = pytest.mark.parametrize(
    "fault", [*RAISED, *ANSWERED], ids=lambda f: getattr(f, "__name__", type(f).__name__)
)


def sums() -> Graph:
    """``y = x + x + x + (-1, 2)``: three layers for the full backend."""
    net = Network()
    x = net.input("x", f32(2))
    value = net.add(ADD, x, x, name="first")
    value = net.add(ADD, value, x, name="second")
    net.output("y", net.add(ADD, value, net.constant(X), name="third"))
    return net.build()


def others() -> Graph:
    """``y = relu(x)``: nothing for the full backend."""
    net = Network()
    net.output("y", net.add(RELU, net.input("x", f32(2)), name="relu"))
    return net.build()


X = floats(-1, 2)


def options_for(sabotage: Sabotage, **given: object) -> RuntimeOptions:
    """Options that make the core call the sabotaged member."""
    member, kind = sabotage.member, sabotage.kind
    registry = registry_of(full_backend(sabotage), ReferenceBackend())
    wants_model_options = "model_context" in member or kind is IBackendModelContext
    return RuntimeOptions(
        registry=registry,
        profiling=True,
        backend_options={"Full": {"fast": True}} if wants_model_options else {},
        custom_allocators=(
            {"Full": CustomAllocator()} if member == "use_custom_memory_allocator" else {}
        ),
        memory_strategies=(
            {"Full": sabotage.of(CustomStrategy)()} if kind is IMemoryOptimizerStrategy else {}
        ),
        **given,  # type: ignore[arg-type]  # names of options
    )


class Attempt:
    """Loads, runs, profiles and unloads, and keeps what was said about it."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.errors: list[ArmpyError] = []
        self.reasons: list[str] = []
        self.results: list[list[float]] = []

    @contextmanager
    def _step(self) -> Iterator[None]:
        try:
            yield
        except ArmpyError as error:  # anything else fails the test
            self.errors.append(error)

    def make(self) -> None:
        """Use a network that the full backend takes."""
        with self._step():
            network_id = self.runtime.load_network(sums())
            network = self.runtime.get_network(network_id)
            self.reasons += [refusal.text for refusal in placement_of(network).refusals]
            with self._step():
                results = self.runtime.enqueue_workload(network_id, {"x": X})
                self.results.append(results["y"].tolist())
            with self._step():
                self.results.append(network.bind(Invocation({"x": X}))()["y"].tolist())
            with self._step():
                imported = network.imported.by_name({"x": shared(X)}, is_output=False)
                results = self.runtime.enqueue_workload(network_id, imported)
                self.results.append(results["y"].tolist())
            network.free_working_memory()
            with self._step():
                assert network.profiler is not None
                assert network.profiler.events
            with self._step():
                self.runtime.unload_network(network_id)

    @property
    def said(self) -> list[str]:
        """Errors and reasons as text."""
        return [*map(str, self.errors), *self.reasons]


def check_said(attempt: Attempt, sabotage: Sabotage, log: str) -> None:
    """Check that a raised fault is reported by an error, reason or log line with its names."""
    texts = [*attempt.said, *log.splitlines()]
    member = CALLED_BY.get((sabotage.kind, sabotage.member), sabotage.member)
    owner = "Custom" if sabotage.kind is IMemoryOptimizerStrategy else "Full"
    named = [text for text in texts if owner in text and member in text]
    assert named, texts
    assert any("sabotage" in text for text in named)


def check_results(attempt: Attempt, sabotage: Sabotage) -> None:
    """Check that every result that came is right."""
    if sabotage.kind is IWorkload or sabotage.member in ("map", "copy_in_from", "copy_out_to"):
        return  # it need not have done its work, and that cannot be seen
    assert all(result == [-4, 8] for result in attempt.results)


@pytest.mark.slow
@pytest.mark.sampled(5)
@FAULTS
@pytest.mark.parametrize(("kind", "member"), MEMBERS, ids=IDS)
def test_a_fault_that_is_there_from_the_start_is_named_and_all_else_works(
    kind: type, member: str, fault: object, caplog: pytest.LogCaptureFixture
) -> None:
    sabotage = Sabotage(kind, member, fault)
    options = options_for(sabotage)
    sabotage.active = True
    runtime = Runtime(options)
    attempt = Attempt(runtime)
    attempt.make()
    del attempt.runtime
    for candidate in runtime.get_device_spec().candidates:
        texts = candidate.backend_id, candidate.reason, candidate.traceback
        attempt.reasons.append(" ".join(texts))
    assert sabotage.hits
    check_results(attempt, sabotage)
    if fault in RAISED:
        check_said(attempt, sabotage, caplog.text)
    sabotage.active = False
    good = runtime.load_network(others())
    np.testing.assert_array_equal(runtime.enqueue_workload(good, {"x": X})["y"], [0, 2])


@pytest.mark.slow
@pytest.mark.sampled(5)
@FAULTS
@pytest.mark.parametrize(("kind", "member"), LATE, ids=LATE_IDS)
def test_a_fault_that_comes_later_loses_no_other_networks_result(
    kind: type, member: str, fault: object, caplog: pytest.LogCaptureFixture
) -> None:
    sabotage = Sabotage(kind, member, fault)
    runtime = Runtime(options_for(sabotage, backends=["Full", "CpuRef"]))
    other = runtime.load_network(others())
    sabotage.active = True
    attempt = Attempt(runtime)
    with running(runtime, other) as results:
        attempt.make()
        attempt.make()
    assert len(results) > 1
    assert all(result == [0, 2] for result in results)
    np.testing.assert_array_equal(runtime.enqueue_workload(other, {"x": X})["y"], [0, 2])
    assert sabotage.hits
    check_results(attempt, sabotage)
    if fault in RAISED:
        check_said(attempt, sabotage, caplog.text)
    sabotage.active = False
    again = Attempt(runtime)
    again.make()
    assert (again.said, again.results) == ([], [[-4, 8]] * 3)


@contextmanager
def running(runtime: Runtime, network_id: int) -> Iterator[list[object]]:
    """A thread that executes a network over and over; its results or what it raised."""
    results: list[object] = []
    enough, started = threading.Event(), threading.Event()

    def execute() -> None:
        while not enough.is_set() or len(results) < 2:
            try:
                results.append(runtime.enqueue_workload(network_id, {"x": X})["y"].tolist())
            except BaseException as error:  # noqa: BLE001 - the test looks at it
                results.append(error)
                break
            finally:
                started.set()

    thread = threading.Thread(target=execute)
    thread.start()
    started.wait()
    try:
        yield results
    finally:
        enough.set()
        thread.join()


@pytest.mark.parametrize("fault", [*RAISED, None, 5, Unspeakable()])
@pytest.mark.parametrize("member", ["name", "packing_type"])
def test_an_applications_strategy_that_does_not_say_what_it_is_is_an_error(
    member: str, fault: object
) -> None:
    sabotage = Sabotage(IMemoryOptimizerStrategy, member, fault)
    options = options_for(sabotage)
    sabotage.active = True
    with pytest.raises(BackendError, match=rf"^memory strategy.* / {member}: "):
        Runtime(options)


class Unhashable(FakeBackend):
    """Says that it equals everything, and cannot be a key."""

    __hash__ = None  # type: ignore[assignment]  # as a class with __eq__ alone has it

    def __eq__(self, other: object) -> bool:
        raise SystemExit("no equal")


def test_a_backend_is_never_compared_or_hashed() -> None:
    runtime = Runtime(RuntimeOptions(registry=registry_of(Unhashable(), ReferenceBackend())))
    assert runtime.get_device_spec().supported_backends == ("Fake", "CpuRef")
    network = runtime.load_network(sums())
    assert runtime.enqueue_workload(network, {"x": X})["y"].tolist() == [-4, 8]


def test_a_backend_that_changes_its_id_is_left_out() -> None:
    class Fickle(FakeBackend):
        now = "Fake"

        def get_id(self) -> str:
            return self.now

    backend = Fickle()
    registry = registry_of(backend, ReferenceBackend())
    assert registry.get("Fake") is backend
    backend.now = "CpuRef"
    spec = Runtime(RuntimeOptions(registry=registry)).get_device_spec()
    assert spec.supported_backends == ("CpuRef",)
    reasons = {candidate.backend_id: candidate.reason for candidate in spec.candidates}
    assert "Expected 'Fake'; got 'CpuRef'" in reasons["Fake"]


def test_every_interface_that_a_plugin_implements_is_in_the_list() -> None:
    names = [n for n in dir(armpy.backend) if n[0] == "I" and n[1:2].isupper()]
    interfaces = {getattr(armpy.backend, name) for name in names}
    without_members = {kind for kind in interfaces if not members(kind)}
    # The core implements the first, which plugins call; the others are called by the toolbox only.
    not_called = {IBackendProfiling, IEngineBackend, IEngineProgram, IEnginePrograms}
    assert interfaces - without_members - not_called == set(CONTRACT)
