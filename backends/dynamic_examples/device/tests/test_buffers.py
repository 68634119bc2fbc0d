"""Buffers of the device's own, through the Neural Networks API."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from armpy_example_device import Device, ExampleDeviceBackend
from armpy_example_device.memory import DeviceBuffer

from armpy import DataType, TensorInfo
from armpy.backend import DeviceMemoryRequest, ExternalMemory
from armpy.execution import RuntimeOptions
from armpy.plugins import BackendRegistry
from armpy_nnapi import (
    Compilation,
    DeviceManager,
    Execution,
    FuseCode,
    Memory,
    MemoryDesc,
    ModelBuilder,
)

INFO = TensorInfo((4,), DataType.FLOAT32)


@pytest.fixture
def device() -> Device:
    return Device(1 << 16)


@pytest.fixture
def manager(device: Device) -> Iterator[DeviceManager]:
    installed = BackendRegistry.discover()
    registry = BackendRegistry()
    registry.register("ExampleDevice", lambda: ExampleDeviceBackend(device))
    registry.register("CpuRef", lambda: installed.get("CpuRef"))
    options = RuntimeOptions(backends=["ExampleDevice", "CpuRef"], registry=registry)
    with DeviceManager(options) as manager:
        yield manager


def doubled(manager: DeviceManager) -> Compilation:
    """``y = x + x``."""
    builder = ModelBuilder(manager)
    x = builder.input(np.float32, (4,))
    compilation = Compilation(builder.finish(builder.add(x, x, activation=FuseCode.NONE)))
    compilation.finish()
    return compilation


def test_a_tensor_stays_on_the_device_between_networks(
    device: Device, manager: DeviceManager
) -> None:
    first, second = doubled(manager), doubled(manager)
    desc = MemoryDesc()
    for compilation in (first, second):
        desc.add_input_role(compilation, 0, 1.0)
        desc.add_output_role(compilation, 0, 1.0)
    desc.finish()
    source, other = Memory.create_from_desc(desc), Memory.create_from_desc(desc)
    assert source.device == "ExampleDevice"
    numbers = Memory.shared(16)
    numbers.data[:] = np.float32([1, 2, 3, 4]).tobytes()
    Memory.copy(numbers, source)
    before = device.counters.uploads, device.counters.downloads
    for number in range(6):
        execution = Execution((first, second)[number % 2])
        execution.set_input_from_memory(0, source, 0, 0)
        execution.set_output_from_memory(0, other, 0, 0)
        execution.compute()
        source, other = other, source
    assert (device.counters.uploads, device.counters.downloads) == before
    Memory.copy(source, numbers)
    assert np.frombuffer(numbers.data, np.float32).tolist() == [64, 128, 192, 256]


def test_a_full_device_leaves_ordinary_memory(device: Device, manager: DeviceManager) -> None:
    compilation = doubled(manager)
    device.faults.add("out_of_memory")
    desc = MemoryDesc()
    desc.add_output_role(compilation, 0, 1.0)
    desc.finish()
    assert Memory.create_from_desc(desc).device == ""


def test_there_are_no_buffers_for_tensors_of_unknown_size(device: Device) -> None:
    request = DeviceMemoryRequest(TensorInfo((None,), DataType.FLOAT32))
    assert ExampleDeviceBackend(device).allocate_device_memory(request) is None


def test_a_device_uses_no_other_device_s_buffers(device: Device) -> None:
    from armpy.backend import NetworkResources, TensorHandleFactoryRegistry

    registry, backend = TensorHandleFactoryRegistry(), ExampleDeviceBackend(device)
    backend.register_tensor_handle_factories(registry, NetworkResources())
    factory = registry.first_of(backend.get_handle_factory_preferences())
    for owner, text in ((device, ""), (Device(1 << 16), "the buffer is another device's")):
        memory = ExternalMemory.of_device(DeviceBuffer(INFO, owner), 16)
        assert factory.can_import(INFO, memory).text == text
    small = TensorInfo((2,), DataType.FLOAT32)
    memory = ExternalMemory.of_device(DeviceBuffer(small, device), 16)
    assert factory.can_import(INFO, memory).text == "the buffer has 8 bytes, the tensor 16"


def test_memory_goes_with_its_buffer(device: Device, manager: DeviceManager) -> None:
    compilation = doubled(manager)
    before = device.allocated_bytes
    desc = MemoryDesc()
    desc.add_output_role(compilation, 0, 1.0)
    desc.finish()
    memory = Memory.create_from_desc(desc)
    assert device.allocated_bytes > before
    memory.close()
    assert device.allocated_bytes == before
