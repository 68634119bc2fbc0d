from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from armpy_reference import ReferenceBackend

from armpy.backend import (
    BACKEND_API_VERSION,
    DefaultAllocator,
    HostTensorHandle,
    IBackendContext,
    IBackendInternal,
    IBackendProfilingContext,
    ILayerSupport,
    IMemoryManager,
    IWorkloadFactory,
    MemorySource,
    PerformanceFigures,
    ReasonCode,
    Substitution,
    Support,
    TensorHandleFactoryRegistry,
)
from armpy.errors import BackendCapabilityError
from armpy.execution.steps.backend_profiling import BackendProfiling
from armpy.graph import SubgraphView
from armpy.ops import PreCompiled
from armpy.plugins.proxy.guard import BackendProxy
from armpy.profiling import Profiler
from armpy.types import DataType, DeviceType
from tests.support.networks import chain, diamond, f32, floats


class Smallest(IBackendInternal):
    """Writes only what has to be written."""

    @property
    def backend_id(self) -> str:
        return "Smallest"

    def create_workload_factory(self, memory_manager: IMemoryManager | None) -> IWorkloadFactory:
        return ReferenceBackend().create_workload_factory(memory_manager)

    def get_layer_support(self) -> ILayerSupport:
        return ReferenceBackend().get_layer_support()


SILENT = BackendProfiling(Profiler(), "Smallest")


def test_three_methods_make_a_backend() -> None:
    backend = Smallest()
    graph = chain()
    view = SubgraphView.of(graph, graph.layers)
    assert IBackendInternal.__abstractmethods__ == {
        "backend_id",
        "create_workload_factory",
        "get_layer_support",
    }
    assert backend.api_version == BACKEND_API_VERSION
    assert backend.device_type is DeviceType.OTHER
    assert backend.version == ""
    assert list(backend.options) == []
    assert list(backend.extensions) == []
    assert list(backend.supported_extensions) == []
    assert backend.number_of_cache_files == 0
    assert list(backend.get_caches()) == []
    assert backend.get_capabilities() == {}
    assert backend.get_performance(DataType.FLOAT32) == PerformanceFigures(1.0, 1.0)
    assert list(backend.get_handle_factory_preferences()) == []
    assert backend.create_memory_manager() is None
    assert backend.create_backend_context({}) is None
    assert backend.create_backend_model_context({}) is None
    assert backend.create_backend_profiling_context({}, SILENT) is None
    assert backend.get_default_allocator() is None
    answer = backend.optimize_subgraph(view)
    assert (answer.substitutions, answer.failed, answer.untouched) == ([], [], [view])
    with pytest.raises(BackendCapabilityError, match=r"^Smallest: .*does not use custom memory"):
        backend.use_custom_memory_allocator(DefaultAllocator())


def test_the_methods_with_options_forward_to_those_without() -> None:
    backend = Smallest()
    graph = chain()
    view = SubgraphView.of(graph, graph.layers)
    factory = backend.create_workload_factory_with_options(None, {"a": 1})
    assert type(factory) is type(backend.create_workload_factory(None))
    support = backend.get_layer_support_with_options({"a": 1})
    assert type(support) is type(backend.get_layer_support())
    assert backend.optimize_subgraph_with_options(view, {"a": 1}).untouched == [view]


def test_a_guarded_backend_says_what_the_backend_says() -> None:
    class Talkative(Smallest):
        @property
        def version(self) -> str:
            return "1.2.3"

        @property
        def device_type(self) -> DeviceType:
            return DeviceType.GPU

        @property
        def supported_extensions(self) -> Sequence[str]:
            return ["com.example.ops"]

        @property
        def number_of_cache_files(self) -> int:
            return 2

    guarded = BackendProxy(Talkative())
    assert (guarded.backend_id, guarded.version) == ("Smallest", "1.2.3")
    assert guarded.api_version == BACKEND_API_VERSION
    assert guarded.device_type is DeviceType.GPU
    assert list(guarded.supported_extensions) == ["com.example.ops"]
    assert guarded.number_of_cache_files == 2


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


def test_an_answer_is_true_or_false_and_false_has_a_reason() -> None:
    assert Support.yes()
    no = Support.no(ReasonCode.RANK, "rank 5")
    assert not no
    assert (no.code, no.text) == (ReasonCode.RANK, "rank 5")


def test_a_host_tensor_is_the_array_itself() -> None:
    array = floats(1, 2)
    handle = HostTensorHandle(f32(2), array)
    assert handle.info == f32(2)
    assert handle.map() is array
    handle.copy_in_from(floats(3, 4))
    np.testing.assert_array_equal(array, [3, 4])
    target = floats(0, 0)
    handle.copy_out_to(target)
    np.testing.assert_array_equal(target, [3, 4])


def test_without_a_factory_of_its_own_a_backends_handles_are_on_planned_host_memory() -> None:
    memory = np.zeros(8, np.uint8)
    registry = TensorHandleFactoryRegistry()
    Smallest().register_tensor_handle_factories(registry)
    factory = registry.first_of(Smallest().get_handle_factory_preferences())
    handle = factory.create_tensor_handle(f32(2), memory)
    handle.map()[:] = [1, 2]
    np.testing.assert_array_equal(memory.view(np.float32), [1, 2])


def test_one_operation_takes_the_place_of_a_subgraph_with_its_edges() -> None:
    graph = diamond()
    view = SubgraphView.of(graph, graph.layers[:3])
    operation = PreCompiled("program", tuple(v.info.known_shape for v in view.outputs))
    for name, expected in (("", "top+left+right"), ("fused", "fused")):
        replacement = Substitution.by_operation(view, operation, name).replacement
        (layer,) = replacement.layers
        assert (layer.name, layer.origins) == (expected, ("top", "left", "right"))
        assert [v.info for v in replacement.inputs] == [v.info for v in view.inputs]
        assert [v.info for v in replacement.outputs] == [v.info for v in view.outputs]
