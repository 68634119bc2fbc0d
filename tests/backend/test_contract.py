from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from armpy_reference import ReferenceBackend

import armpy
from armpy.backend import (
    BACKEND_API_VERSION,
    Capability,
    Counter,
    DefaultAllocator,
    DeviceInfo,
    HostTensorHandle,
    IBackendContext,
    IBackendInternal,
    IBackendProfiling,
    IBackendProfilingContext,
    ILayerSupport,
    IWorkloadFactory,
    Measurement,
    MemorySource,
    NetworkResources,
    PreparationRequest,
    TensorHandleFactoryRegistry,
)
from armpy.errors import BackendUnavailableError, UnimplementedError
from armpy.graph import SubgraphView
from armpy.plugins import BackendRegistry
from armpy.types import DeviceType
from armpy_testing.models.networks import chain, f32, floats


class Smallest(IBackendInternal):
    """Writes only what has to be written."""

    def get_id(self) -> str:
        return "Smallest"

    def get_api_version(self) -> str:
        return "2.8"

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        return ReferenceBackend().create_workload_factory(network)

    def get_layer_support(self, request: PreparationRequest) -> ILayerSupport:
        return ReferenceBackend().get_layer_support(request)


class Silent(IBackendProfiling):
    """A profile that keeps nothing."""

    def declare_counter(self, counter: Counter) -> None:
        """Keep no counter."""

    def add_to_counter(self, name: str, value: float) -> None:
        """Count nothing."""

    def add_event(self, event: Measurement) -> None:
        """Keep no event."""


def test_four_methods_make_a_backend() -> None:
    backend = Smallest()
    graph = chain()
    view = SubgraphView.of(graph, graph.layers)
    assert IBackendInternal.__abstractmethods__ == {
        "get_id",
        "create_workload_factory",
        "get_layer_support",
    }
    assert backend.get_devices() == (DeviceInfo(device_type=DeviceType.OTHER),)
    assert backend.get_free_memory("") is None
    assert backend.get_typical_figures("") is None
    assert list(backend.get_diagnosis()) == []
    assert backend.get_programs() is None
    assert backend.version == ""
    assert list(backend.options) == []
    assert list(backend.extensions) == []
    assert list(backend.supported_extensions) == []
    assert list(backend.get_caches()) == []
    assert backend.get_capabilities() == {}
    assert list(backend.get_handle_factory_preferences()) == []
    assert backend.create_memory_manager() is None
    assert backend.create_backend_context({}) is None
    assert backend.create_backend_specific_model_context({}) is None
    assert backend.create_backend_profiling_context({}, Silent()) is None
    assert backend.get_default_allocator() is None
    answer = backend.optimize_subgraph_view(view, PreparationRequest())
    assert (answer.substitutions, answer.failed, answer.untouched) == ([], [], [view])
    assert backend.use_custom_memory_allocator(DefaultAllocator()) is False


def test_a_backend_that_states_no_version_is_refused() -> None:
    """Its version would be that of whatever core is beside it."""

    class Versionless(ReferenceBackend):
        get_api_version = IBackendInternal.get_api_version

    text = (
        rf'it has no get_api_version. Write it; for this version it returns "{BACKEND_API_VERSION}"'
    )
    with pytest.raises(UnimplementedError, match=text):
        Versionless()
    registry = BackendRegistry()
    registry.register("CpuRef", Versionless)
    with pytest.raises(BackendUnavailableError, match="it has no get_api_version"):
        registry.get("CpuRef")
    backend = object.__new__(Versionless)
    with pytest.raises(UnimplementedError, match="does not state the version"):
        backend.get_api_version()


def test_what_lacks_a_method_is_refused_in_words() -> None:
    class Incomplete(IBackendInternal):
        def get_id(self) -> str:
            return "Incomplete"

    text = "no get_api_version, no create_workload_factory, no get_layer_support.*Write them"
    with pytest.raises(UnimplementedError, match=text):
        Incomplete()  # type: ignore[abstract]  # the test's point


def test_the_error_for_a_backend_of_contract_1_names_the_page() -> None:
    class Old(IBackendInternal):
        backend_id = "Old"

        def create_workload_factory(self, memory_manager: object) -> IWorkloadFactory:
            raise AssertionError("it is never called")

        def get_layer_support(self) -> ILayerSupport:  # type: ignore[override]
            raise AssertionError("it is never called")

    with pytest.raises(UnimplementedError, match=r"contract 1\.x; the page 'A backend from 1\.x"):
        Old()  # type: ignore[abstract]  # the test's point


def test_host_memory_begins_where_it_should_and_says_what_it_is() -> None:
    allocator = DefaultAllocator()
    for alignment in (1, 64, 4096):
        memory = allocator.allocate(100, alignment)
        assert memory.dtype == np.uint8
        assert memory.shape == (100,)
        assert memory.ctypes.data % alignment == 0
        allocator.free(memory)
    assert allocator.memory_source is MemorySource.MALLOC


def test_a_profiling_context_may_leave_everything_out() -> None:
    context = IBackendProfilingContext()
    context.enable_profiling(True)
    assert context.take_measurements() == {}


def test_a_context_may_leave_everything_out() -> None:
    context = IBackendContext()
    events = [name for name in vars(IBackendContext) if name.startswith(("before_", "after_"))]
    assert len(events) == 5
    assert [getattr(context, event)(0) for event in events] == [None] * 5


def test_a_host_tensor_is_the_array_itself() -> None:
    array = floats(1, 2)
    handle = HostTensorHandle(f32(2), array)
    assert handle.info == f32(2)
    assert handle.map() is array
    assert not handle.map(write=False).flags.writeable
    handle.copy_in_from(floats(3, 4))
    np.testing.assert_array_equal(array, [3, 4])
    target = floats(0, 0)
    handle.copy_out_to(target)
    np.testing.assert_array_equal(target, [3, 4])


def test_without_a_factory_of_its_own_a_backends_handles_are_on_planned_host_memory() -> None:
    memory = np.zeros(8, np.uint8)
    registry = TensorHandleFactoryRegistry()
    Smallest().register_tensor_handle_factories(registry, NetworkResources())
    factory = registry.first_of(Smallest().get_handle_factory_preferences())
    handle = factory.create_tensor_handle(f32(2), memory)
    handle.map()[:] = [1, 2]
    np.testing.assert_array_equal(memory.view(np.float32), [1, 2])


SOURCES = Path(armpy.__file__).parent
OWN = SOURCES / "backend" / "capabilities.py"
HANDED_ON = SOURCES / "plugins" / "isolation" / "backend.py"
"""Names those that it does not hand on."""


def test_the_core_asks_about_every_capability() -> None:
    files = [path for path in sorted(SOURCES.rglob("*.py")) if path not in (OWN, HANDED_ON)]
    text = "".join(path.read_text() for path in files)
    assert [
        capability.name for capability in Capability if f"Capability.{capability.name}" not in text
    ] == []
