from __future__ import annotations

import numpy as np
from armpy_reference import ReferenceBackend

from armpy.backend import (
    HostTensorHandle,
    IBackendContext,
    IBackendInternal,
    ILayerSupport,
    IMemoryManager,
    IWorkloadFactory,
    ReasonCode,
    Substitution,
    Support,
)
from armpy.graph import SubgraphView
from armpy.ops import PreCompiled
from armpy.types import DeviceType
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


def test_three_methods_make_a_backend() -> None:
    backend = Smallest()
    graph = chain()
    view = SubgraphView.of(graph, graph.layers)
    assert backend.device_type is DeviceType.OTHER
    assert backend.shares_host_memory
    assert backend.create_memory_manager() is None
    assert backend.create_backend_context({}) is None
    answer = backend.optimize_subgraph(view)
    assert (answer.substitutions, answer.failed, answer.untouched) == ([], [], [view])


def test_a_context_may_leave_everything_out() -> None:
    context = IBackendContext()
    context.before_load_network(0)
    context.after_load_network(0)
    context.before_unload_network(0)
    context.after_unload_network(0)


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


def test_a_factory_makes_handles_on_planned_memory() -> None:
    memory = np.zeros(8, np.uint8)
    handle = Smallest().create_workload_factory(None).create_tensor_handle(f32(2), memory)
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
