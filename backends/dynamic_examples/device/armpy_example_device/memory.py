"""Tensors in the device's memory, and in memory that the device was given."""

from __future__ import annotations

import os
import weakref

import numpy as np

from armpy.backend import (
    ALIGNMENT_BYTES,
    ExternalMemory,
    ICustomAllocator,
    IDeviceMemory,
    ITensorArena,
    ITensorHandle,
    ITensorHandleFactory,
    Lifetime,
    MemorySource,
    ReasonCode,
    Support,
)
from armpy.errors import BackendError, LayerValidationError, MemoryExportError, MemoryImportError
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo, format_shape
from armpy_example_device.device import Device, Region
from armpy_example_device.profiling import Transfers

FACTORY_ID = "armpy/example-device"


class RegisteredTensorHandle(ITensorHandle):
    """A tensor in memory of the host that the device uses where it lies."""

    __slots__ = ("_info", "region")

    def __init__(self, info: TensorInfo, region: Region) -> None:
        self._info = info
        self.region = region

    @property
    def info(self) -> TensorInfo:
        """Shape, data type and quantisation."""
        return self._info

    @property
    def on_device(self) -> Array:
        """The elements as the device's kernels see them."""
        flat = self.region.elements.view(self._info.data_type.dtype)
        return flat.reshape(self._info.known_shape)

    def map(self, *, read: bool = True, write: bool = True) -> Array:
        """The memory itself: nothing is transferred."""
        return self.on_device


class DeviceTensorHandle(RegisteredTensorHandle):
    """A tensor in the device's own memory, which the host sees through copies.

    Parameters
    ----------
    transfers : Transfers
        Moves the elements, and counts for one network.
    """

    __slots__ = ("_device", "_is_written", "_num_maps", "_staging", "_transfers")

    def __init__(
        self, info: TensorInfo, region: Region, device: Device, transfers: Transfers
    ) -> None:
        super().__init__(info, region)
        self._device = device
        self._transfers = transfers
        self._staging: Array | None = None
        self._is_written = False
        self._num_maps = 0

    def map(self, *, read: bool = True, write: bool = True) -> Array:
        """A copy for the host, downloaded only if it is read."""
        if self._staging is None:
            self._staging = np.empty(self._info.known_shape, self._info.data_type.dtype)
            if read:
                self._transfers.download(self.region, self._staging)
        self._is_written |= write
        self._num_maps += 1
        return self._staging

    def unmap(self) -> None:
        """Upload written elements when the last map ends."""
        if self._staging is None:
            raise BackendError("the tensor is not mapped", where=FACTORY_ID, actual=str(self._info))
        self._num_maps -= 1
        if not self._num_maps:
            if self._is_written:
                self._transfers.upload(self.region, self._staging)
            self._staging, self._is_written = None, False

    def copy_in_from(self, source: Array) -> None:
        """Upload, without a copy for the host in between."""
        if source.shape != self._info.shape:
            raise LayerValidationError(
                "the elements have another shape than the tensor",
                expected=format_shape(self._info.shape),
                actual=format_shape(source.shape),
            )
        self._transfers.upload(self.region, np.ascontiguousarray(source))

    def copy_out_to(self, target: Array) -> None:
        """Download, straight to the target if that is in one piece."""
        if target.flags.c_contiguous:
            self._transfers.download(self.region, target)
        else:
            super().copy_out_to(target)

    def export_memory(self, source: MemorySource) -> ExternalMemory:
        """The part of the device's memory, for processes that map it."""
        descriptor = self._device.file_descriptor
        if source is not MemorySource.SHARED_MEMORY or descriptor < 0:
            raise MemoryExportError(
                "the device's memory is not of this kind", where=FACTORY_ID, actual=str(source)
            )
        size, offset = self._info.size_bytes, self.region.offset_bytes
        return ExternalMemory(
            source, size, file_descriptor=descriptor, offset_bytes=offset, keep_alive=self
        )


class DeviceArena(ITensorArena):
    """A piece of the device's memory in which the tensors of one execution lie as was planned."""

    def __init__(self, size_bytes: int, device: Device, transfers: Transfers) -> None:
        self._region: Region | None = device.alloc(size_bytes)
        self._device = device
        self._transfers = transfers

    def create_tensor_handle(
        self, info: TensorInfo, lifetime: Lifetime, offset_bytes: int
    ) -> ITensorHandle:
        """A handle at the offset; that tensors overlap whose lifetimes do not is planned."""
        if self._region is None:
            raise BackendError("the arena was released", where=FACTORY_ID)
        region = self._region.part(offset_bytes, info.size_bytes)
        return DeviceTensorHandle(info, region, self._device, self._transfers)

    def release(self) -> None:
        """Let go of the memory; it is free when no handle is left."""
        self._region = None


class AllocatedArena(ITensorArena):
    """An arena in an application's memory, which the device uses where it lies."""

    def __init__(self, size_bytes: int, device: Device, allocator: ICustomAllocator) -> None:
        memory = allocator.allocate(size_bytes, ALIGNMENT_BYTES)
        self._region: Region | None = device.register(memory)
        self._give_back = weakref.finalize(self, allocator.free, memory)

    def create_tensor_handle(
        self, info: TensorInfo, lifetime: Lifetime, offset_bytes: int
    ) -> ITensorHandle:
        """A handle at the offset."""
        if self._region is None:
            raise BackendError("the arena was released", where=FACTORY_ID)
        return RegisteredTensorHandle(info, self._region.part(offset_bytes, info.size_bytes))

    def release(self) -> None:
        """Give the memory back to the application."""
        self._region = None
        self._give_back()


class DeviceBuffer(IDeviceMemory):
    """A tensor in the device's memory that belongs to an application, for many executions.

    Parameters
    ----------
    info : TensorInfo
        Fully shaped.
    """

    def __init__(self, info: TensorInfo, device: Device) -> None:
        self.device = device
        self.region = device.alloc(info.size_bytes)

    def copy_in_from(self, source: Array) -> None:
        """Upload."""
        self.device.upload(self.region, source)

    def copy_out_to(self, target: Array) -> None:
        """Download."""
        self.device.download(self.region, target)


class DeviceHandleFactory(ITensorHandleFactory):
    """Makes the device's tensors of one network.

    Parameters
    ----------
    allocator : ICustomAllocator, optional
        Where arenas come from in place of the device's memory.
    sources : MemorySource
        Kinds of memory that the application says it will give: the host's is registered with
        the device then; otherwise the device reads only uploaded or mappable memory.
    """

    def __init__(
        self,
        device: Device,
        transfers: Transfers,
        allocator: ICustomAllocator | None = None,
        sources: MemorySource = MemorySource.UNDEFINED,
    ) -> None:
        self._device = device
        self._transfers = transfers
        self._allocator = allocator
        always = MemorySource.SHARED_MEMORY | MemorySource.DEVICE
        self._import_sources = always | sources & MemorySource.MALLOC

    @property
    def factory_id(self) -> str:
        """The same for every network."""
        return FACTORY_ID

    @property
    def import_sources(self) -> MemorySource:
        """Memory that the device can use in place: mappable, registered, or its own."""
        return self._import_sources

    @property
    def export_sources(self) -> MemorySource:
        """The device's memory, if it can be mapped: others read it without a download."""
        has_file = self._device.file_descriptor >= 0
        return MemorySource.SHARED_MEMORY if has_file else MemorySource.UNDEFINED

    def create_tensor_handle(self, info: TensorInfo, memory: Array) -> ITensorHandle:
        """A tensor in memory of the device of its own; the planned memory is left unused."""
        region = self._device.alloc(info.size_bytes)
        return DeviceTensorHandle(info, region, self._device, self._transfers)

    def create_arena(self, size_bytes: int) -> ITensorArena | None:
        """Memory for all tensors of one execution at a time."""
        if self._allocator is not None:
            return AllocatedArena(size_bytes, self._device, self._allocator)
        return DeviceArena(size_bytes, self._device, self._transfers)

    def create_constant_handle(self, info: TensorInfo, elements: Array) -> ITensorHandle:
        """Upload a constant, once for all executions."""
        region = self._device.alloc(info.size_bytes)
        handle = DeviceTensorHandle(info, region, self._device, self._transfers)
        handle.copy_in_from(elements)
        return handle

    def can_import(self, info: TensorInfo, memory: ExternalMemory) -> Support:
        """Whether the memory is there, large enough, and aligned to whole elements."""
        if memory.source not in self.import_sources:
            return Support.no(ReasonCode.OTHER, f"the device cannot use {memory.source}")
        if not info.size_bytes:
            return Support.no(ReasonCode.OTHER, "there are no elements")
        if memory.source is MemorySource.DEVICE:
            return self._can_use(memory.device, info)
        if memory.array is not None:
            start, size = memory.array.ctypes.data, memory.array.nbytes
        else:
            start = memory.offset_bytes
            size = os.fstat(memory.file_descriptor).st_size - start
        if size < info.size_bytes:
            text = f"the memory has {size} bytes, the tensor {info.size_bytes}"
            return Support.no(ReasonCode.OTHER, text)
        if start % info.data_type.dtype.itemsize:
            return Support.no(ReasonCode.OTHER, "the memory is not aligned to whole elements")
        return Support.yes()

    def _can_use(self, buffer: object, info: TensorInfo) -> Support:
        """Whether a buffer is the device's, and large enough."""
        if not isinstance(buffer, DeviceBuffer) or buffer.device is not self._device:
            return Support.no(ReasonCode.OTHER, "the buffer is another device's")
        size = buffer.region.elements.nbytes
        if size < info.size_bytes:
            text = f"the buffer has {size} bytes, the tensor {info.size_bytes}"
            return Support.no(ReasonCode.OTHER, text)
        return Support.yes()

    def import_memory(
        self, info: TensorInfo, memory: ExternalMemory, *, read: bool = True, write: bool = False
    ) -> ITensorHandle:
        """Let the device use the memory where it lies."""
        answer = self.can_import(info, memory)
        if not answer:
            raise MemoryImportError(answer.text, where=FACTORY_ID, expected=str(info))
        if isinstance(memory.device, DeviceBuffer):
            region = memory.device.region.part(0, info.size_bytes)
            return DeviceTensorHandle(info, region, self._device, self._transfers)
        elements = memory.map(read=read, write=write)[: info.size_bytes]
        return RegisteredTensorHandle(info, self._device.register(elements))

    def unimport(self, handle: ITensorHandle) -> None:
        """Release the memory; maps end with their last array."""
        if isinstance(handle, RegisteredTensorHandle):
            handle.region = Region(np.empty(0, np.uint8))
