"""Constants are handed to a backend as it wants them, once per network."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
import pytest

from armpy.backend import (
    HostTensorHandle,
    ITensorHandle,
    IWorkload,
    IWorkloadFactory,
    NetworkResources,
    TensorHandleFactoryRegistry,
    WorkloadInfo,
)
from armpy.errors import MemoryLimitError
from armpy.graph import Graph
from armpy.graph.network import Network
from armpy.model import Model
from armpy.ops.operation import Array, Operation
from armpy.tensor import TensorInfo
from armpy.types import DataType
from tests.support.device_memory import DeviceBackend, DeviceFactory, DeviceHandle, Memory
from tests.support.fake_backends import FakeBackend, runtime_of
from tests.support.networks import ADD, MUL, f32, floats

X = floats(-1, 0, 2, 5)


class Copying(DeviceFactory):
    """Copies constants to the device."""

    def create_constant_handle(self, info: TensorInfo, elements: Array) -> ITensorHandle:
        self.memory.constants.append(info)
        handle = DeviceHandle(self.memory, info, self.memory.take(info.size_bytes))
        handle.elements[...] = elements
        return handle


class OwnConstants(DeviceBackend):
    """Has constants in its own memory as well."""

    def register_tensor_handle_factories(
        self, registry: TensorHandleFactoryRegistry, network: NetworkResources
    ) -> None:
        registry.register_factory(Copying(self.memory, self.kind))


def scaled(shape: int | None = 4) -> Graph:
    """``y = 3 x + 1 + 1``: two constants, one of which two layers read."""
    net = Network()
    one = net.constant(np.float32(1), name="one")
    x = net.input("x", TensorInfo((shape,), DataType.FLOAT32))
    value = net.add(MUL, x, net.constant(np.float32(3), name="three"))
    value = net.add(ADD, net.add(ADD, value, one), one)
    net.output("y", value)
    return net.build()


def test_each_constant_is_made_once_when_the_network_is_loaded() -> None:
    backend = OwnConstants()
    model = Model(scaled(), runtime_of(backend))
    assert len(backend.memory.constants) == 2
    held = model.create_working_memory()
    execution = model.bind({"x": X})
    threads = [threading.Thread(target=lambda: model(X)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(model(X), 3 * X + 2)
    np.testing.assert_array_equal(held.run({"x": X})["y"], 3 * X + 2)
    np.testing.assert_array_equal(execution()["y"], 3 * X + 2)
    assert len(backend.memory.constants) == 2


def test_it_is_not_made_again_for_other_shapes() -> None:
    backend = OwnConstants()
    model = Model(scaled(None), runtime_of(backend))
    for length in (4, 3, 2, 4):
        np.testing.assert_array_equal(model(X[:length]), 3 * X[:length] + 2)
    assert len(backend.memory.constants) == 2


def test_every_network_has_its_own() -> None:
    backend = OwnConstants()
    runtime = runtime_of(backend)
    models = [Model(scaled(), runtime) for _ in range(3)]
    assert len(backend.memory.constants) == 6
    for model in models:
        np.testing.assert_array_equal(model(X), 3 * X + 2)


def test_a_constant_for_which_the_device_has_no_room_costs_it_its_layers() -> None:
    backend = OwnConstants(memory=Memory(7))  # two of 4 bytes each
    model = Model(scaled(), runtime_of(backend))
    assert model.placement is not None
    assert model.placement.layers_by_backend == {"CpuRef": 3}
    assert all(
        "Npu / create_constant_handle: the device is full" in refusal.text
        for refusal in model.placement.refusals
    )
    np.testing.assert_array_equal(model(X), 3 * X + 2)
    with pytest.raises(MemoryLimitError, match=r"^Npu / .*create_constant_handle: the device is"):
        Model(scaled(), runtime_of(backend, backends=["Npu"]))


class Looking(FakeBackend):
    """Keeps the handles of what it reads as a constant."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[ITensorHandle] = []

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        right, seen = super().create_workload_factory(network), self.seen

        class Workload(IWorkload):
            def __init__(self, inner: IWorkload) -> None:
                self.inner = inner

            def execute(
                self, inputs: Sequence[ITensorHandle | None], outputs: Sequence[ITensorHandle]
            ) -> None:
                assert inputs[1] is not None
                seen.append(inputs[1])
                self.inner.execute(inputs, outputs)

        class Factory(IWorkloadFactory):
            def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
                return Workload(right.create_workload(operation, info))

        return Factory()


def test_backends_that_do_not_say_otherwise_read_constants_where_they_are() -> None:
    backend = Looking()
    three = np.full(4, 3, np.float32)
    net = Network()
    net.output("y", net.add(MUL, net.input("x", f32(4)), net.constant(three)))
    model = Model(net, runtime_of(backend))
    for _ in range(2):
        np.testing.assert_array_equal(model(X), 3 * X)
    np.testing.assert_array_equal(model.create_working_memory().run({"x": X})["y"], 3 * X)
    assert len(backend.seen) == 3
    (handle,) = set(backend.seen)
    assert type(handle) is HostTensorHandle
    assert np.shares_memory(handle.array, three)
