"""Devices with memory of their own, which count what goes in and out.

`DeviceBackend` has memory of a given size. `ImportingDevice` imports the memory of others, and
`BufferDevice` also makes buffers for tensors that stay there.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from armpy.backend import (
    DeviceMemoryRequest,
    ExternalMemory,
    HostTensorHandle,
    IDeviceMemory,
    ITensorArena,
    ITensorHandle,
    ITensorHandleFactory,
    IWorkloadFactory,
    Lifetime,
    MemorySource,
    NetworkResources,
    ReasonCode,
    Support,
)
from armpy.errors import ArmpyError, MemoryImportError, MemoryLimitError
from armpy.ops import BinaryOperation, ElementwiseBinary
from armpy.ops.operation import Array, OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy_testing.backends.fake_backends import FakeBackend, Handles, Outputs, Step

MIB = 1 << 20

SHARED = MemorySource.SHARED_MEMORY


class Memory:
    """The device's memory.

    `size_bytes`: all that there is of it.
    """

    def __init__(self, size_bytes: int = 64 * MIB) -> None:
        self.size_bytes = size_bytes
        self.used_bytes = self.most_bytes = 0
        self.uploads = self.downloads = 0
        self.arenas: list[Arena] = []
        self.constants: list[TensorInfo] = []
        self.error: ArmpyError | None = None

    def take(self, size_bytes: int) -> Array:
        """Some of it, full of garbage."""
        if self.error is not None:
            raise self.error
        if self.used_bytes + size_bytes > self.size_bytes:
            raise MemoryLimitError(
                "the device is full", actual=f"{self.used_bytes} of {self.size_bytes} bytes taken"
            )
        self.used_bytes += size_bytes
        self.most_bytes = max(self.most_bytes, self.used_bytes)
        return np.full(size_bytes, 0x7F, np.uint8)


class DeviceHandle(ITensorHandle):
    """A tensor that the host sees through a staging copy only."""

    def __init__(self, memory: Memory, info: TensorInfo, region: Array) -> None:
        self.memory = memory
        self._info = info
        self.elements = region.view(info.data_type.dtype).reshape(info.known_shape)
        self._open: list[tuple[Array, bool]] = []

    @property
    def info(self) -> TensorInfo:
        return self._info

    def map(self, *, read: bool = True, write: bool = True) -> Array:
        staging = np.full(self._info.known_shape, 3, self._info.data_type.dtype)
        if read:
            self.memory.downloads += 1
            staging[...] = self.elements
        if not write:
            staging.setflags(write=False)
        self._open.append((staging, write))
        return staging

    def unmap(self) -> None:
        staging, write = self._open.pop()
        if write:
            self.memory.uploads += 1
            self.elements[...] = staging

    @property
    def num_open(self) -> int:
        """How many accesses have not ended."""
        return len(self._open)


class CopyingDeviceHandle(DeviceHandle):
    """One that the host reaches by explicit uploads and downloads."""

    def copy_in_from(self, source: Array) -> None:
        self.memory.uploads += 1
        self.elements[...] = source

    def copy_out_to(self, target: Array) -> None:
        self.memory.downloads += 1
        target[...] = self.elements


class Arena(ITensorArena):
    """Part of the device's memory, which records its calls."""

    def __init__(self, memory: Memory, size_bytes: int, kind: type[DeviceHandle]) -> None:
        self._memory = memory
        self._kind = kind
        self._bytes = memory.take(size_bytes)
        self.size_bytes = size_bytes
        self.tensors: list[tuple[TensorInfo, Lifetime, int]] = []
        self.handles: list[DeviceHandle] = []
        self.is_released = False

    def create_tensor_handle(
        self, info: TensorInfo, lifetime: Lifetime, offset_bytes: int
    ) -> ITensorHandle:
        self.tensors.append((info, lifetime, offset_bytes))
        region = self._bytes[offset_bytes : offset_bytes + info.size_bytes]
        assert region.nbytes == info.size_bytes
        self.handles.append(self._kind(self._memory, info, region))
        return self.handles[-1]

    def release(self) -> None:
        assert not self.is_released
        self.is_released = True
        self._memory.used_bytes -= self.size_bytes


class DeviceFactory(ITensorHandleFactory):
    """Makes tensors in the device's memory."""

    factory_id = "test/device"

    def __init__(self, memory: Memory, kind: type[DeviceHandle]) -> None:
        self.memory = memory
        self._kind = kind

    def create_tensor_handle(self, info: TensorInfo, memory: Array) -> ITensorHandle:
        raise AssertionError("a tensor in an arena of the core's")

    def create_arena(self, size_bytes: int) -> ITensorArena | None:
        arena = Arena(self.memory, size_bytes, self._kind)
        self.memory.arenas.append(arena)
        return arena


class DeviceBackend(FakeBackend):
    """Runs CpuRef's workloads on tensors in a device's memory."""

    def __init__(
        self,
        backend_id: str = "Npu",
        operations: Collection[type] | None = None,
        *,
        memory: Memory | None = None,
        kind: type[DeviceHandle] = DeviceHandle,
    ) -> None:
        super().__init__(backend_id, operations)
        self.memory = memory or Memory()
        self.kind = kind

    def execute(self, step: Step, inputs: Handles, outputs: Outputs) -> None:
        pairs = zip(inputs, step.info.constants, strict=True)
        read = [None if h is None else self._at(h, c is not None) for h, c in pairs]
        step.right.execute(read, [self._at(handle, False) for handle in outputs])

    def _at(self, handle: ITensorHandle, is_constant: bool) -> ITensorHandle:
        """What a handle of the device stands for."""
        if is_constant and isinstance(handle, HostTensorHandle):
            return handle
        assert isinstance(handle, DeviceHandle), handle
        assert handle.memory is self.memory
        assert not handle.num_open
        return HostTensorHandle(handle.info, handle.elements)

    def handle_factory(self, network: NetworkResources) -> ITensorHandleFactory:
        return DeviceFactory(self.memory, self.kind)


class ImportedHandle(DeviceHandle):
    """A tensor in memory that the device has imported."""


class ImportingFactory(DeviceFactory):
    """Imports memory, and records its calls."""

    import_sources = MemorySource.UNDEFINED

    def __init__(self, backend: ImportingDevice) -> None:
        super().__init__(backend.memory, DeviceHandle)
        self._backend = backend
        self.factory_id = f"test/{backend.get_id()}"
        self.import_sources = backend.sources

    def can_import(self, info: TensorInfo, memory: ExternalMemory) -> Support:
        self._backend.asked.append(memory)
        if self._backend.refusal:
            return Support.no(ReasonCode.OTHER, self._backend.refusal)
        return Support.yes()

    def import_memory(
        self, info: TensorInfo, memory: ExternalMemory, *, read: bool = True, write: bool = False
    ) -> ITensorHandle:
        if self._backend.fault is not None:
            raise self._backend.fault
        region = memory.map(write=write)[: info.size_bytes]
        handle = ImportedHandle(self.memory, info, region)
        self._backend.imported.append((handle, read, write))
        return handle

    def unimport(self, handle: ITensorHandle) -> None:
        self._backend.unimported.append(handle)


class ImportingDevice(FakeBackend):
    """A backend with memory of its own.

    `functions`: the functions that it takes.
    `sources`: the memory that it imports.
    `refusal`: why it cannot import anything; empty if it can.
    `fault`: its error on import.
    `imported`: handle, read, and write of all that it has imported.
    """

    def __init__(
        self,
        backend_id: str = "Npu",
        functions: Collection[BinaryOperation] = (BinaryOperation.ADD,),
        sources: MemorySource = SHARED,
    ) -> None:
        super().__init__(backend_id)
        self._functions = functions
        self.sources = sources
        self.memory = Memory()
        self.refusal = ""
        self.fault: Exception | None = None
        self.asked: list[ExternalMemory] = []
        self.imported: list[tuple[ITensorHandle, bool, bool]] = []
        self.unimported: list[ITensorHandle] = []
        self.resources: list[NetworkResources] = []

    def supports(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        if isinstance(operation, ElementwiseBinary) and operation.operation in self._functions:
            return Support.yes()
        return Support.no(ReasonCode.OPERATION, "another function")

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        self.resources.append(network)
        return super().create_workload_factory(network)

    def execute(self, step: Step, inputs: Handles, outputs: Outputs) -> None:
        """Compute on the device's own memory, which is never mapped."""
        ins = [None if handle is None else _seen(handle) for handle in inputs]
        step.right.execute(ins, [_seen(handle) for handle in outputs])

    def handle_factory(self, network: NetworkResources) -> ITensorHandleFactory:
        return ImportingFactory(self)

    @property
    def transfers(self) -> tuple[int, int]:
        """Uploads and downloads since the last time."""
        counts = self.memory.uploads, self.memory.downloads
        self.memory.uploads = self.memory.downloads = 0
        return counts


def _seen(handle: ITensorHandle) -> ITensorHandle:
    """A tensor as the device sees it."""
    if isinstance(handle, DeviceHandle):
        return HostTensorHandle(handle.info, handle.elements)
    return handle


def shared(elements: Array) -> ExternalMemory:
    """Shared memory with some elements."""
    memory = ExternalMemory.shared(elements.nbytes)
    memory.map()[:] = elements.reshape(-1).view(np.uint8)
    return memory


def raising() -> MemoryImportError:
    """What a device may raise that imports nothing after all."""
    return MemoryImportError("the bus is too narrow", where="bus")


class Buffer(IDeviceMemory):
    """Part of a device's memory, which counts copies to and from the host."""

    def __init__(self, memory: Memory, request: DeviceMemoryRequest) -> None:
        self.memory = memory
        self.request = request
        self.elements: Array = np.empty(0, np.uint8)

    def region(self, size_bytes: int) -> Array:
        """The bytes for a tensor of a size; the present ones stay if they are of this size."""
        if self.elements.nbytes != size_bytes:
            self.elements = np.full(size_bytes, 0x7F, np.uint8)
        return self.elements

    def copy_in_from(self, source: Array) -> None:
        self.memory.uploads += 1
        self.region(source.nbytes)[:] = source.reshape(-1).view(np.uint8)

    def copy_out_to(self, target: Array) -> None:
        self.memory.downloads += 1
        target.reshape(-1).view(np.uint8)[:] = self.elements


class BufferFactory(ImportingFactory):
    """Imports the buffers of its device."""

    def can_import(self, info: TensorInfo, memory: ExternalMemory) -> Support:
        device = memory.device
        if device is not None and getattr(device, "memory", None) is not self.memory:
            return Support.no(ReasonCode.OTHER, "the buffer is another device's")
        return super().can_import(info, memory)

    def import_memory(
        self, info: TensorInfo, memory: ExternalMemory, *, read: bool = True, write: bool = False
    ) -> ITensorHandle:
        buffer = memory.device
        if not isinstance(buffer, Buffer):
            return super().import_memory(info, memory, read=read, write=write)
        if self._backend.fault is not None:
            raise self._backend.fault
        handle = DeviceHandle(self.memory, info, buffer.region(info.size_bytes))
        self._backend.imported.append((handle, read, write))
        return handle


class BufferDevice(ImportingDevice):
    """A device with memory of its own.

    `functions`: the functions that it takes.
    `buffers`: all that it has made.
    `gives`: its answer or error in place of a new buffer, if that is not "right".
    """

    def __init__(
        self,
        backend_id: str = "Npu",
        functions: Collection[BinaryOperation] = tuple(BinaryOperation),
    ) -> None:
        super().__init__(backend_id, functions, MemorySource.SHARED_MEMORY | MemorySource.DEVICE)
        self.buffers: list[Buffer] = []
        self.gives: object = "right"

    def allocate_device_memory(self, request: DeviceMemoryRequest) -> IDeviceMemory | None:
        if isinstance(self.gives, BaseException):
            raise self.gives
        if self.gives != "right":
            return self.gives  # type: ignore[return-value]  # tests may want anything
        self.buffers.append(Buffer(self.memory, request))
        return self.buffers[-1]

    def handle_factory(self, network: NetworkResources) -> ITensorHandleFactory:
        return BufferFactory(self)


def too_small() -> MemoryImportError:
    """What a device may raise that has no room."""
    return MemoryImportError("the device is full", where="device")
