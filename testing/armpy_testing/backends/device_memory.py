"""A backend with memory of its own, of a given size, that counts what goes in and out."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from armpy.backend import (
    HostTensorHandle,
    ITensorArena,
    ITensorHandle,
    ITensorHandleFactory,
    Lifetime,
    NetworkResources,
)
from armpy.errors import ArmpyError, MemoryLimitError
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy_testing.backends.fake_backends import FakeBackend, Handles, Outputs, Step

MIB = 1 << 20


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
