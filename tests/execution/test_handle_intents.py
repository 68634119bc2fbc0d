"""Tensors go to a device and back once for each copy, whichever way its handles offer."""

from __future__ import annotations

import numpy as np
import pytest
from armpy_numba_acc.backend import NumbaBackend
from armpy_reference.factory import ReferenceWorkloadFactory

from armpy.backend import (
    IBackendInternal,
    ITensorHandleFactory,
    IWorkloadFactory,
    MemorySource,
    NetworkResources,
    WorkloadInfo,
)
from armpy.graph import Graph
from armpy.graph.network import Network
from armpy.model import Model
from armpy.ops import Activation, ElementwiseBinary, If
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy_testing.backends.device_memory import (
    CopyingDeviceHandle,
    DeviceBackend,
    DeviceFactory,
    DeviceHandle,
    Memory,
)
from armpy_testing.backends.fake_backends import runtime_of
from armpy_testing.models.control_flow import BOOL, graph_of
from armpy_testing.models.networks import ADD, RELU, chain, diamond, f32, floats, placement_of

X = floats(-1, 0, 2, 5)
KINDS = [DeviceHandle, CopyingDeviceHandle]


@pytest.mark.parametrize("kind", KINDS)
def test_four_runs_with_a_copy_each_way_are_four_uploads_and_four_downloads(
    kind: type[DeviceHandle],
) -> None:
    backend = DeviceBackend(kind=kind)
    model = Model(chain(3), runtime_of(backend))
    assert placement_of(model).num_copies == 2
    assert (backend.memory.uploads, backend.memory.downloads) == (0, 0)
    for _ in range(4):
        np.testing.assert_array_equal(model(X), X + 3)
    assert (backend.memory.uploads, backend.memory.downloads) == (4, 4)


@pytest.mark.parametrize("reader", KINDS)
@pytest.mark.parametrize("writer", KINDS)
def test_a_copy_between_two_devices_is_one_download_and_one_upload(
    writer: type[DeviceHandle], reader: type[DeviceHandle]
) -> None:
    npu = DeviceBackend("Npu", {Activation}, kind=writer)
    dsp = DeviceBackend("Dsp", {ElementwiseBinary}, kind=reader)
    model = Model(diamond(), runtime_of(npu, dsp))
    assert [p.layer for p in placement_of(model).layers if p.operation == "MemCopy"] == [
        "[ x host -> Npu ]",
        "[ top Npu -> Dsp ]",
        "[ bottom Dsp -> host ]",
    ]
    for _ in range(4):
        np.testing.assert_array_equal(model(X), [1, 1, 9, 21])
    assert (npu.memory.uploads, npu.memory.downloads) == (4, 4)
    assert (dsp.memory.uploads, dsp.memory.downloads) == (4, 4)


@pytest.mark.parametrize("kind", KINDS)
def test_a_bound_network_moves_no_more_than_one_that_is_called(kind: type[DeviceHandle]) -> None:
    backend = DeviceBackend(kind=kind)
    model = Model(chain(3), runtime_of(backend))
    execution = model.bind({"x": X})
    for _ in range(4):
        np.testing.assert_array_equal(execution()["y"], X + 3)
    assert (backend.memory.uploads, backend.memory.downloads) == (4, 4)


class Intents(DeviceHandle):
    """Notes what it is mapped for."""

    def __init__(self, memory: Memory, info: TensorInfo, region: Array) -> None:
        super().__init__(memory, info, region)
        self.wanted: list[tuple[bool, bool]] = []

    def map(self, *, read: bool = True, write: bool = True) -> Array:
        self.wanted.append((read, write))
        return super().map(read=read, write=write)


READ, WRITTEN = (True, False), (False, True)


@pytest.mark.slow
def test_every_workload_of_cpu_ref_says_what_it_maps_tensors_for() -> None:
    cases = pytest.importorskip(
        "armpy_conformance.cases", reason="armpy-conformance is not installed"
    )
    factory, compared = ReferenceWorkloadFactory(), 0
    for case in cases.operation_cases():
        items = case.inputs
        constants = tuple(i.data if i and i.is_constant else None for i in items)
        infos = tuple(None if i is None else i.info for i in items)
        if case.operation.has_data_dependent_outputs:
            continue
        workload = factory.create_workload(
            case.operation, WorkloadInfo("layer", infos, case.outputs, constants)
        )
        memory = Memory()
        read = [None if i is None else holding(memory, i.info, i.data) for i in items]
        written = [holding(memory, info) for info in case.outputs]
        workload.execute(read, written)
        assert all(set(h.wanted) == {READ} for h in read if h is not None and h.wanted), case.id
        assert all(h.wanted in ([], [WRITTEN]) for h in written), case.id
        assert memory.downloads == sum(len(h.wanted) for h in read if h is not None), case.id
        assert memory.uploads == sum(len(h.wanted) for h in written), case.id
        compared += 1
    assert compared > 1000


def holding(memory: Memory, info: TensorInfo, data: Array | None = None) -> Intents:
    """A tensor on the device, full of garbage if there are no elements."""
    handle = Intents(memory, info, np.full(info.size_bytes, 1, np.uint8))
    if data is not None:
        handle.elements[...] = data
    return handle


class HostFactory(DeviceFactory):
    """Memory that others may map."""

    import_sources = export_sources = MemorySource.MALLOC


class Mapping(DeviceBackend):
    """Maps the tensors that it computes with, and lets others map them."""

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        return ReferenceWorkloadFactory()

    def handle_factory(self, network: NetworkResources) -> ITensorHandleFactory:
        return HostFactory(self.memory, Intents)


def test_numba_acc_and_control_flow_say_what_they_map_tensors_for() -> None:
    """Each reads what another backend has written in memory that all may use."""
    for network, inputs, other in cases_with_shared_memory():
        backend = Mapping("Npu", {Activation})
        model = Model(network, runtime_of(backend, *other))
        assert placement_of(model).num_copies == 0
        np.testing.assert_array_equal(model(*inputs), [0.0, 0.0, 4.0, 10.0])
        (handle,) = backend.memory.arenas[0].handles
        assert isinstance(handle, Intents)
        assert (handle.wanted[0], {*handle.wanted[1:]}) == (WRITTEN, {READ})
        assert not handle.num_open


def cases_with_shared_memory() -> list[tuple[Graph, list[Array], list[IBackendInternal]]]:
    """``2 relu(x)`` by NumbaAcc and by control flow."""
    net = Network()
    top = net.add(RELU, net.input("x", f32(4)), name="top")
    net.output("y", net.add(ADD, top, top, name="sum"))
    double = graph_of([f32(4)], lambda net, x: net.add(ADD, x, x))
    inside = Network()
    condition = inside.input("condition", BOOL)
    inner_x = inside.input("x", f32(4))
    chosen = inside.add(If(double, double), condition, inside.add(RELU, inner_x, name="top"))
    inside.output("y", chosen)
    return [
        (net.build(), [X], [NumbaBackend()]),
        (inside.build(), [np.array([True]), X], []),
    ]
