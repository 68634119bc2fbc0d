"""Handles, arenas, constants, imports and exports."""

from __future__ import annotations

import mmap
import os
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from armpy_example_device import Device, ExampleDeviceBackend
from armpy_example_device.memory import DeviceHandleFactory
from armpy_example_device.queue import Command

from armpy.backend import (
    DefaultAllocator,
    ExternalMemory,
    IBackendInternal,
    ITensorHandle,
    ITensorHandleFactory,
    IWorkload,
    MemorySource,
    NetworkResources,
    TensorHandleFactoryRegistry,
    WorkloadInfo,
)
from armpy.errors import (
    BackendCapabilityError,
    BackendError,
    LayerValidationError,
    MemoryExportError,
    MemoryImportError,
)
from armpy.ops import Activation, ActivationFunction, ElementwiseBinary
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy.types import DataType

INFO = TensorInfo((4,), DataType.FLOAT32)
NO_MEMORY: Array = np.empty(16, np.uint8)
SOURCES = MemorySource.MALLOC | MemorySource.SHARED_MEMORY
needs_memfd = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="no memfd_create")


def factory_of(
    backend: IBackendInternal, network: NetworkResources | None = None
) -> ITensorHandleFactory:
    registry = TensorHandleFactoryRegistry()
    backend.register_tensor_handle_factories(registry, network or NetworkResources())
    return registry.first_of(backend.get_handle_factory_preferences())


@pytest.fixture
def device() -> Device:
    return Device(1 << 16)


@pytest.fixture
def factory(device: Device) -> ITensorHandleFactory:
    return factory_of(ExampleDeviceBackend(device), NetworkResources(input_sources=SOURCES))


def transfers(device: Device) -> tuple[int, int]:
    return device.counters.uploads, device.counters.downloads


def workload(device: Device) -> IWorkload:
    """``y = x + x``."""
    info = WorkloadInfo("sum", (INFO, INFO), (INFO,), (None, None))
    backend = ExampleDeviceBackend(device)
    return backend.create_workload_factory(NetworkResources()).create_workload(
        ElementwiseBinary(), info
    )


def elements(handle: ITensorHandle) -> list[float]:
    target = np.zeros(4, np.float32)
    handle.copy_out_to(target)
    return list(target.tolist())


@pytest.mark.parametrize(
    ("read", "write", "expected"),
    [(True, True, (1, 1)), (False, True, (1, 0)), (True, False, (0, 1))],
)
def test_a_map_transfers_what_it_is_for(
    read: bool, write: bool, expected: tuple[int, int], device: Device, factory: DeviceHandleFactory
) -> None:
    handle = factory.create_tensor_handle(INFO, NO_MEMORY)
    array = handle.map(read=read, write=write)
    array[...] = 7
    handle.unmap()
    assert transfers(device) == expected
    assert (elements(handle) == [7, 7, 7, 7]) == write


def test_copies_are_one_transfer_each(device: Device, factory: DeviceHandleFactory) -> None:
    handle = factory.create_tensor_handle(INFO, NO_MEMORY)
    handle.copy_in_from(np.arange(8, dtype=np.float32)[::2])
    assert elements(handle) == [0, 2, 4, 6]
    assert transfers(device) == (1, 1)
    with pytest.raises(LayerValidationError, match=r"Expected \(4,\); got \(3,\)"):
        handle.copy_in_from(np.zeros(3, np.float32))


def test_an_unmap_without_a_map_is_an_error(factory: DeviceHandleFactory) -> None:
    with pytest.raises(BackendError, match="the tensor is not mapped"):
        factory.create_tensor_handle(INFO, NO_MEMORY).unmap()


def test_a_constant_is_uploaded_once_for_any_number_of_executions(
    device: Device, factory: DeviceHandleFactory
) -> None:
    constant = factory.create_constant_handle(INFO, np.full(4, 3, np.float32))
    output = factory.create_tensor_handle(INFO, NO_MEMORY)
    layer = workload(device)
    for _ in range(5):
        layer.execute([constant, constant], [output])
    assert transfers(device) == (1, 0)
    assert elements(output) == [6, 6, 6, 6]


def test_a_released_arena_gives_its_memory_back_and_no_more_tensors(
    device: Device, factory: DeviceHandleFactory
) -> None:
    arena = factory.create_arena(128)
    assert arena is not None
    assert device.allocated_bytes == 128
    arena.release()
    assert device.allocated_bytes == 0
    with pytest.raises(BackendError, match="the arena was released"):
        arena.create_tensor_handle(INFO, (0, 1), 0)


def test_an_arena_of_the_application_s_memory_is_used_where_it_lies(device: Device) -> None:
    class Counting(DefaultAllocator):
        def __init__(self) -> None:
            self.taken: list[Array] = []

        def allocate(self, size_bytes: int, alignment_bytes: int = 64) -> Array:
            self.taken.append(super().allocate(size_bytes, alignment_bytes))
            return self.taken[-1]

        def free(self, memory: Array) -> None:
            assert memory is self.taken.pop()

    allocator = Counting()
    backend = ExampleDeviceBackend(device)
    assert backend.use_custom_memory_allocator(allocator)
    arena = factory_of(backend, NetworkResources(allocator=allocator)).create_arena(128)
    assert arena is not None
    handles = [arena.create_tensor_handle(INFO, (0, 1), offset) for offset in (0, 64)]
    handles[0].copy_in_from(np.full(4, 5, np.float32))
    workload(device).execute([handles[0], handles[0]], [handles[1]])
    assert allocator.taken[0][64:80].view(np.float32).tolist() == [10, 10, 10, 10]
    assert transfers(device) == (0, 0)
    assert device.allocated_bytes == 0
    arena.release()
    arena.release()
    assert allocator.taken == []


def test_an_allocator_of_other_memory_is_refused_with_the_reason() -> None:
    class Protected(DefaultAllocator):
        memory_source = MemorySource.DMA_BUF_PROTECTED

    with pytest.raises(BackendCapabilityError, match=r"cannot use MemorySource\.DMA_BUF_PROTECTED"):
        ExampleDeviceBackend().use_custom_memory_allocator(Protected())


def test_memory_is_refused_that_is_too_small_not_aligned_or_not_writable(
    factory: DeviceHandleFactory,
) -> None:
    bytes_ = np.zeros(64, np.uint8)
    for array, text in ((bytes_[:8], "8 bytes, the tensor 16"), (bytes_[1:33], "not aligned")):
        memory = ExternalMemory.of_array(array)
        assert text in factory.can_import(INFO, memory).text
        with pytest.raises(MemoryImportError, match=text):
            factory.import_memory(INFO, memory)
    bytes_.flags.writeable = False
    memory = ExternalMemory.of_array(bytes_)
    assert factory.import_memory(INFO, memory).map(write=False).tolist() == [0, 0, 0, 0]
    with pytest.raises(MemoryImportError, match="read-only"):
        factory.import_memory(INFO, memory, write=True)


def test_host_memory_is_not_imported_unless_the_application_says_that_it_gives_some(
    device: Device,
) -> None:
    factory = factory_of(ExampleDeviceBackend(device))
    memory = ExternalMemory(MemorySource.MALLOC, 16, np.zeros(16, np.uint8))
    assert factory.import_sources == MemorySource.SHARED_MEMORY | MemorySource.DEVICE
    assert not factory.can_import(INFO, memory)


def test_memory_that_cannot_be_mapped_is_not_exported(factory: DeviceHandleFactory) -> None:
    assert factory.export_sources == MemorySource.UNDEFINED
    handle = factory.create_tensor_handle(INFO, NO_MEMORY)
    with pytest.raises(MemoryExportError, match="the device's memory is not of this kind"):
        handle.export_memory(MemorySource.SHARED_MEMORY)


@needs_memfd
def test_a_file_s_memory_is_used_at_any_offset_of_whole_elements(
    device: Device, factory: DeviceHandleFactory
) -> None:
    descriptor = os.memfd_create("test")
    offset = mmap.ALLOCATIONGRANULARITY + 20
    os.truncate(descriptor, offset + 16)
    memory = ExternalMemory(
        MemorySource.SHARED_MEMORY, 16, file_descriptor=descriptor, offset_bytes=offset
    )
    source = factory.create_constant_handle(INFO, np.arange(4, dtype=np.float32))
    output = factory.import_memory(INFO, memory, write=True)
    workload(device).execute([source, source], [output])
    assert np.frombuffer(os.pread(descriptor, 16, offset), np.float32).tolist() == [0, 2, 4, 6]
    factory.unimport(output)
    with pytest.raises(ValueError, match="reshape"):
        output.map()
    short = ExternalMemory(
        MemorySource.SHARED_MEMORY, 16, file_descriptor=descriptor, offset_bytes=offset + 4
    )
    assert "the memory has 12 bytes" in factory.can_import(INFO, short).text
    os.close(descriptor)


def test_workloads_refuse_tensors_that_are_not_where_the_device_could_use_them(
    device: Device,
) -> None:
    class Elsewhere(ITensorHandle):
        info = INFO

        def map(self, *, read: bool = True, write: bool = True) -> Array:
            raise AssertionError

    info = WorkloadInfo("relu", (INFO,), (INFO,), (None,))
    backend = ExampleDeviceBackend(device)
    layer = backend.create_workload_factory(NetworkResources()).create_workload(
        Activation(ActivationFunction.RELU), info
    )
    with pytest.raises(BackendError, match="ExampleDevice / relu: the tensor is not where"):
        layer.execute([Elsewhere()], [Elsewhere()])


def test_what_is_enqueued_runs_while_the_host_goes_on(
    device: Device, factory: DeviceHandleFactory
) -> None:
    constant = factory.create_constant_handle(INFO, np.ones(4, np.float32))
    handles = [factory.create_tensor_handle(INFO, NO_MEMORY) for _ in range(3)]
    layer = workload(device)
    may_go_on = threading.Event()

    def wait() -> Iterator[None]:
        may_go_on.wait(60)
        yield

    device.queue.submit(Command("wait", wait, np.zeros(1, np.float32)))
    before = [constant, *handles]
    completions = [layer.enqueue([a, a], [b]) for a, b in zip(before, handles, strict=False)]
    assert all(completion is not None and not completion.wait(0) for completion in completions)
    may_go_on.set()
    assert completions[-1] is not None
    assert completions[-1].wait(10)
    assert elements(handles[-1]) == [8, 8, 8, 8]
