"""Writes to a tensor count only once it is unmapped."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from armpy_numba_acc.backend import NumbaBackend
from armpy_reference import ReferenceBackend
from armpy_reference.factory import ReferenceWorkloadFactory

from armpy.backend import (
    HostTensorHandle,
    IBackendInternal,
    ITensorHandle,
    ITensorHandleFactory,
    MemorySource,
    NetworkResources,
    TensorHandleFactoryRegistry,
    WorkloadInfo,
)
from armpy.execution import Runtime, RuntimeOptions
from armpy.graph.network import Network
from armpy.model import Model
from armpy.ops import (
    Activation,
    ElementwiseBinary,
    If,
    While,
)
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy_testing.backends.device_memory import (
    CopyingDeviceHandle,
    DeviceBackend,
    DeviceHandle,
)
from armpy_testing.backends.fake_backends import registry_of, runtime_of
from armpy_testing.models.control_flow import applied, below, counting
from armpy_testing.models.networks import ADD, RELU, diamond, f32, floats, ints, placement_of


class CopyingHandle(ITensorHandle):
    """A tensor whose mapped elements are a copy, which `unmap` writes back.

    `elements`: its contents; garbage if left out.
    """

    __slots__ = ("_copy", "_info", "elements", "num_open")

    def __init__(self, info: TensorInfo, elements: Array | None = None) -> None:
        self._info = info
        if elements is None:
            bytes_ = np.full(info.size_bytes, 1, np.uint8)
            elements = bytes_.view(info.data_type.dtype).reshape(info.known_shape)
        self.elements = elements
        self.num_open = 0
        self._copy = elements

    @property
    def info(self) -> TensorInfo:
        return self._info

    def map(self, *, read: bool = True, write: bool = True) -> Array:
        if not self.num_open:
            self._copy = self.elements.copy()
        self.num_open += 1
        return self._copy

    def unmap(self) -> None:
        if not self.num_open:
            raise RuntimeError(f"{self._info} is unmapped, but was not mapped")
        self.num_open -= 1
        self.elements = self._copy


class CopyingHandleFactory(ITensorHandleFactory):
    """Makes copying tensors, and keeps them; other backends may use them, too."""

    factory_id = "test/copying"
    import_sources = export_sources = MemorySource.MALLOC

    def __init__(self) -> None:
        self.made: list[CopyingHandle] = []

    def create_tensor_handle(self, info: TensorInfo, memory: Array) -> ITensorHandle:
        handle = CopyingHandle(info)
        self.made.append(handle)
        return handle


def copying(backend: IBackendInternal) -> tuple[IBackendInternal, CopyingHandleFactory]:
    """A backend whose tensors are copying ones, and what makes these."""
    factory = CopyingHandleFactory()

    def register(registry: TensorHandleFactoryRegistry, network: NetworkResources) -> None:
        registry.register_factory(factory)

    backend.register_tensor_handle_factories = register  # type: ignore[method-assign]
    backend.get_handle_factory_preferences = lambda: [factory.factory_id]  # type: ignore[method-assign]
    return backend, factory


EXAMPLES = Path(__file__).parents[2] / "backends" / "dynamic_examples"


@pytest.mark.slow
def test_every_workload_of_cpu_ref_ends_its_access() -> None:
    """Also where an input is handed in twice, and so mapped twice."""
    cases = pytest.importorskip(
        "armpy_conformance.cases", reason="armpy-conformance is not installed"
    )
    factory, compared = ReferenceWorkloadFactory(), 0
    for case in cases.operation_cases():
        if case.operation.has_data_dependent_outputs:
            continue
        items = case.inputs
        constants = tuple(i.data if i and i.is_constant else None for i in items)
        infos = tuple(None if i is None else i.info for i in items)
        workload = factory.create_workload(
            case.operation, WorkloadInfo("layer", infos, case.outputs, constants)
        )
        inputs = [None if i is None else CopyingHandle(i.info, i.data.copy()) for i in items]
        outputs = [CopyingHandle(info) for info in case.outputs]
        expected = [
            HostTensorHandle(info, np.zeros(info.known_shape, info.data_type.dtype))
            for info in case.outputs
        ]
        workload.execute(inputs, outputs)
        workload.execute(
            [None if i is None else HostTensorHandle(i.info, i.data.copy()) for i in items],
            expected,
        )
        for written, wanted in zip(outputs, expected, strict=True):
            np.testing.assert_array_equal(written.elements, wanted.array, case.id)
        opened = [handle for handle in (*inputs, *outputs) if handle is not None]
        assert not any(handle.num_open for handle in opened), case.id
        compared += 1
    assert compared > 1000


def test_an_access_that_fails_is_ended_too() -> None:
    factory = ReferenceWorkloadFactory()
    relu = WorkloadInfo("layer", (f32(2),), (f32(2),), (None,))
    workload = factory.create_workload(RELU, relu)
    source, target = CopyingHandle(f32(2)), CopyingHandle(f32(2), floats(1, 2, 3))
    with pytest.raises(ValueError, match="shape"):
        workload.execute([source], [target])
    assert not source.num_open
    assert not target.num_open


Make = Callable[[], IBackendInternal]


def runs(
    network: Network, backend: IBackendInternal, x: Array, *preferred: IBackendInternal
) -> tuple[list[Array], int]:
    """What a network gives on a backend of copying tensors, and how many of these there are."""
    changed, factory = copying(backend)
    backends = [*preferred, changed]
    if changed.get_id() != "CpuRef":
        backends.append(ReferenceBackend())
    ids = [backend_used.get_id() for backend_used in backends]
    options = RuntimeOptions(backends=ids, registry=registry_of(*backends))
    with Model(network, Runtime(options)) as model:
        results = [list(model.run({"x": x}).values()) for _ in range(2)]
    assert not any(handle.num_open for handle in factory.made)
    for first, second in zip(*results, strict=True):
        np.testing.assert_array_equal(first, second)
    return results[1], len(factory.made)


@pytest.mark.parametrize("make", [ReferenceBackend, NumbaBackend])
def test_control_flow_between_copying_tensors_is_right(make: Make) -> None:
    net = Network()
    x = net.add(RELU, net.input("x", f32(3)), name="before")
    choice = If(applied(ADD, floats(1, 1, 1), f32(3)), applied(ADD, floats(5, 5, 5), f32(3)))
    chosen = net.add(choice, net.constant(np.array([True])), x, name="choice")
    count = net.constant(ints(0))
    adding = While(below(3, f32(3)), counting(f32(3), body=lambda n, _, v: (n.add(ADD, v, v),)))
    _, last = net.add_layer(adding, [count, chosen]).outputs
    net.output("y", net.add(RELU, last, name="after"))
    results, _ = runs(net, make(), floats(-1, 2, 3))
    assert results[0].tolist() == [8, 24, 32]


def test_workloads_of_an_example_end_their_access() -> None:
    path = EXAMPLES / "single_file" / "Arm_SampleDynamic_backend.py"
    spec = importlib.util.spec_from_file_location("example", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    info = WorkloadInfo("layer", (f32(2), f32(2)), (f32(2),), (None, None))
    factory = module.backend_factory().create_workload_factory(None)
    inputs = [CopyingHandle(f32(2), floats(*numbers)) for numbers in ((1, 2), (10, 30))]
    output = CopyingHandle(f32(2))
    factory.create_workload(ADD, info).execute(inputs, [output])
    assert output.elements.tolist() == [11, 32]
    assert not any(handle.num_open for handle in (*inputs, output))


X = floats(-1, 0, 2, 5)
KINDS = [DeviceHandle, CopyingDeviceHandle]


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
