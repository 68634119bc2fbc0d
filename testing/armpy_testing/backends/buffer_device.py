"""Devices that make buffers of their own for tensors, as configured."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from armpy.backend import (
    DeviceMemoryRequest,
    ExternalMemory,
    IDeviceMemory,
    ITensorHandle,
    ITensorHandleFactory,
    MemorySource,
    NetworkResources,
    ReasonCode,
    Support,
)
from armpy.errors import MemoryImportError
from armpy.ops import BinaryOperation
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy_testing.backends.device_memory import DeviceHandle, Memory
from armpy_testing.backends.importing_device import ImportingDevice, ImportingFactory


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
