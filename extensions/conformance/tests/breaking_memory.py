"""Devices whose tensors, arenas or imports break one rule of the contract each."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any  # Any: members of classes made at run time

import numpy as np

from armpy.backend import (
    ALIGNMENT_BYTES,
    DeviceMemoryRequest,
    ExternalMemory,
    IDeviceMemory,
    ITensorArena,
    ITensorHandle,
    IWorkload,
    IWorkloadFactory,
    Lifetime,
    MemorySource,
    NetworkResources,
    ReasonCode,
    Support,
    TensorHandleFactoryRegistry,
    WorkloadInfo,
)
from armpy.errors import BackendError
from armpy.ops.operation import Array, Operation
from armpy.tensor import TensorInfo
from armpy_testing.example_backends import EXAMPLES

sys.path.append(str(EXAMPLES / "device"))
from armpy_example_device import Device, ExampleDeviceBackend
from armpy_example_device.device import Region
from armpy_example_device.memory import (
    DeviceArena,
    DeviceBuffer,
    DeviceHandleFactory,
    DeviceTensorHandle,
    RegisteredTensorHandle,
)
from armpy_example_device.profiling import Transfers, declare_counters

__all__ = ["DeviceArena", "ExampleDeviceBackend", "declare_counters"]  # beside the names made here

Handles = Sequence[ITensorHandle | None]
Outputs = Sequence[ITensorHandle]


@dataclass
class BreakersState:
    """What breakers of one device remember beyond a single object."""

    copied_in: int | None = None
    """The `id` of the tensor that elements were last copied into."""

    constants: dict[str, ITensorHandle] = field(default_factory=dict)
    """By their descriptions."""

    arenas: dict[int, Region] = field(default_factory=dict)
    """By their sizes."""

    kept: list[object] = field(default_factory=list)
    """What is never given back."""


class RememberingDevice(Device):
    """A device whose memory others can map, with the state of its breakers."""

    def __init__(self) -> None:
        super().__init__(is_mappable=True)
        self.state = BreakersState()


def state_of(device: Device) -> BreakersState:
    """The state of a device that `mappable_device` made."""
    assert isinstance(device, RememberingDevice)
    return device.state


class Wrapped(IWorkload):
    """Another workload."""

    def __init__(self, right: IWorkload) -> None:
        self._right = right

    def execute(self, inputs: Handles, outputs: Outputs) -> None:
        self._right.execute(inputs, outputs)


class Breaker(ExampleDeviceBackend):
    """A device whose factories are of other classes."""

    handle_factory: type[DeviceHandleFactory] = DeviceHandleFactory
    workload: Callable[[IWorkload], IWorkload] | None = None

    def register_tensor_handle_factories(
        self, registry: TensorHandleFactoryRegistry, network: NetworkResources
    ) -> None:
        transfers = Transfers(self.device, network.profiling)
        sources = network.input_sources | network.output_sources
        factory = type(self).handle_factory(self.device, transfers, network.allocator, sources)
        registry.register_factory(factory)

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        right = super().create_workload_factory(network)
        wrap = type(self).workload
        return right if wrap is None else WrappingFactory(right, wrap)


class WrappingFactory(IWorkloadFactory):
    """Makes another factory's workloads, each wrapped."""

    def __init__(self, right: IWorkloadFactory, wrap: Callable[[IWorkload], IWorkload]) -> None:
        self._right = right
        self._wrap = wrap

    def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        return self._wrap(self._right.create_workload(operation, info))


def with_handles(kind: type[DeviceTensorHandle]) -> Breaker:
    """A device whose tensors in arenas are of another class."""

    class Arena(DeviceArena):
        def create_tensor_handle(
            self, info: TensorInfo, lifetime: Lifetime, offset_bytes: int
        ) -> ITensorHandle:
            handle = super().create_tensor_handle(info, lifetime, offset_bytes)
            handle.__class__ = kind  # of the same slots
            return handle

    return with_arenas(Arena)


def with_arenas(kind: type[DeviceArena]) -> Breaker:
    """A device whose arenas are of another class."""

    class Factory(DeviceHandleFactory):
        def create_arena(self, size_bytes: int) -> ITensorArena | None:
            return kind(size_bytes, self._device, self._transfers)

    return with_factories(Factory)


def with_factories(kind: type[DeviceHandleFactory]) -> Breaker:
    """A device whose handle factories are of another class."""
    return _made(handle_factory=kind)


def with_workloads(kind: type[Wrapped]) -> Breaker:
    """A device whose workloads are wrapped."""
    return _made(workload=kind)


def _made(**members: Any) -> Breaker:
    """A breaker of a class with some members, whose device's memory can be mapped."""
    breaker: Breaker = type("Breaker", (Breaker,), members)(mappable_device())
    return breaker


def mappable_device() -> Device:
    """A device whose memory others can map."""
    return RememberingDevice()


class ForgetsWhatIsOnlyWritten(DeviceTensorHandle):
    """Takes a map that is not read for one that is not written."""

    __slots__ = ()

    def map(self, *, read: bool = True, write: bool = True) -> Array:
        return super().map(read=read, write=write and read)


class Forgetful(DeviceTensorHandle):
    """Maps something else than the copied elements; results are shown."""

    __slots__ = ()

    def copy_in_from(self, source: Array) -> None:
        super().copy_in_from(source)
        state_of(self._device).copied_in = id(self)

    def forgetful_map(self, read: bool, write: bool) -> Array:
        is_forgotten = state_of(self._device).copied_in == id(self)
        array = super().map(read=read and not is_forgotten, write=write)
        if is_forgotten:
            array.reshape(-1).view(np.uint8)[...] = 1
        return array


class NeverDownloadsForReading(Forgetful):
    """Downloads in maps for both alone."""

    __slots__ = ()

    def map(self, *, read: bool = True, write: bool = True) -> Array:
        return super().map() if write else self.forgetful_map(read, write)


class NeverDownloadsForWriting(Forgetful):
    """Takes every map that is written for one that is not read."""

    __slots__ = ()

    def map(self, *, read: bool = True, write: bool = True) -> Array:
        return self.forgetful_map(read, write) if write else super().map(write=False)


class UploadsWhatWasOnlyRead(DeviceTensorHandle):
    """Brings back a map that was not written, and not as it was."""

    __slots__ = ()

    def unmap(self) -> None:
        if not self._is_written and self._staging is not None:
            self._staging.reshape(-1).view(np.uint8)[:1] ^= 1
            self._is_written = True
        super().unmap()


class CopiesGaps(DeviceTensorHandle):
    """Copies what lies side by side in the source's memory, whatever belongs to the array."""

    __slots__ = ()

    def copy_in_from(self, source: Array) -> None:
        if isinstance(source.base, np.ndarray) and not source.flags.c_contiguous:
            source = source.base.reshape(-1)[: source.size].reshape(source.shape)
        super().copy_in_from(source)


class TakesAnyShape(DeviceTensorHandle):
    """Copies the first elements of an array that is too large."""

    __slots__ = ()

    def copy_in_from(self, source: Array) -> None:
        size = int(np.prod(self.info.known_shape))
        super().copy_in_from(source.reshape(-1)[:size].reshape(self.info.known_shape))


class OneConstant(DeviceHandleFactory):
    """Keeps one constant of each shape and type, for all networks."""

    def create_constant_handle(self, info: TensorInfo, elements: Array) -> ITensorHandle:
        constants = state_of(self._device).constants
        if str(info) not in constants:
            constants[str(info)] = super().create_constant_handle(info, elements)
        return constants[str(info)]


class EverythingAtOffsetZero(DeviceArena):
    """Puts every tensor at the beginning."""

    def create_tensor_handle(
        self, info: TensorInfo, lifetime: Lifetime, offset_bytes: int
    ) -> ITensorHandle:
        return super().create_tensor_handle(info, lifetime, 0)


class OneArena(DeviceArena):
    """Is where the arena before of its size was."""

    def __init__(self, size_bytes: int, device: Device, transfers: Transfers) -> None:
        super().__init__(size_bytes, device, transfers)
        if self._region is not None:
            self._region = state_of(device).arenas.setdefault(size_bytes, self._region)


class NeverReleased(DeviceArena):
    """Keeps its memory."""

    def release(self) -> None:
        state_of(self._device).kept.append(self._region)


class ImportsAnything(DeviceHandleFactory):
    """Says yes to all memory, and finds out when it imports it."""

    def can_import(self, info: TensorInfo, memory: ExternalMemory) -> Support:
        return Support.yes()

    def import_memory(
        self, info: TensorInfo, memory: ExternalMemory, *, read: bool = True, write: bool = False
    ) -> ITensorHandle:
        if not super().can_import(info, memory):
            raise BackendError("the memory cannot be imported after all")
        return super().import_memory(info, memory, read=read, write=write)


class RefusesWithoutReason(DeviceHandleFactory):
    """Says no without a text."""

    def can_import(self, info: TensorInfo, memory: ExternalMemory) -> Support:
        answer = super().can_import(info, memory)
        return answer if answer else Support.no(ReasonCode.OTHER, "")


class RefusesAndImports(DeviceHandleFactory):
    """Imports memory that it has refused."""

    is_asked_again = False

    def can_import(self, info: TensorInfo, memory: ExternalMemory) -> Support:
        answer = super().can_import(info, memory)
        if self.is_asked_again:
            return Support.no(ReasonCode.OTHER, "not today")
        self.is_asked_again = True
        return answer

    def import_memory(
        self, info: TensorInfo, memory: ExternalMemory, *, read: bool = True, write: bool = False
    ) -> ITensorHandle:
        elements = np.zeros(info.size_bytes, np.uint8)
        return RegisteredTensorHandle(info, self._device.register(elements))


class ImportsShortFiles(DeviceHandleFactory):
    """Uses other memory where the file ends too soon."""

    def import_memory(
        self, info: TensorInfo, memory: ExternalMemory, *, read: bool = True, write: bool = False
    ) -> ITensorHandle:
        if super().can_import(info, memory):
            return super().import_memory(info, memory, read=read, write=write)
        if memory.offset_bytes % ALIGNMENT_BYTES or memory.array is not None:
            raise BackendError("the memory is not aligned")
        elements = np.zeros(info.size_bytes, np.uint8)
        return RegisteredTensorHandle(info, self._device.register(elements))


class CopiesWhatItImports(DeviceHandleFactory):
    """Imports a copy, as it is at the time."""

    def import_memory(
        self, info: TensorInfo, memory: ExternalMemory, *, read: bool = True, write: bool = False
    ) -> ITensorHandle:
        handle = super().import_memory(info, memory, read=read, write=write)
        if isinstance(handle, RegisteredTensorHandle):
            handle.region = Region(handle.region.elements.copy())
        return handle


class OneBuffer(Breaker):
    """Has one buffer of each size, for everybody."""

    def __init__(self, device: Device | None = None) -> None:
        super().__init__(device)
        self._buffers: dict[int, IDeviceMemory] = {}

    def allocate_device_memory(self, request: DeviceMemoryRequest) -> IDeviceMemory | None:
        size = request.info.size_bytes
        if size not in self._buffers:
            self._buffers[size] = DeviceBuffer(request.info, self.device)
        return self._buffers[size]


class ForgetfulBuffer(DeviceBuffer):
    """Loses the first bit of its contents."""

    def copy_out_to(self, target: Array) -> None:
        super().copy_out_to(target)
        target.reshape(-1).view(np.uint8)[:1] ^= 1


class ForgetfulBuffers(Breaker):
    """Makes such buffers."""

    def allocate_device_memory(self, request: DeviceMemoryRequest) -> IDeviceMemory | None:
        return ForgetfulBuffer(request.info, self.device)


class RefusesItsBuffers(DeviceHandleFactory):
    """Does not know its own."""

    def can_import(self, info: TensorInfo, memory: ExternalMemory) -> Support:
        if memory.device is not None:
            return Support.no(ReasonCode.OTHER, "whose is this?")
        return super().can_import(info, memory)


class SpoilsItsBuffers(DeviceHandleFactory):
    """Writes to its contents when it is mapped or used next."""

    def import_memory(
        self, info: TensorInfo, memory: ExternalMemory, *, read: bool = True, write: bool = False
    ) -> ITensorHandle:
        handle = super().import_memory(info, memory, read=read, write=write)
        buffer = memory.device
        if isinstance(buffer, DeviceBuffer) and isinstance(handle, RegisteredTensorHandle) and read:
            used = Region(handle.region.elements.copy())
            buffer.region.elements[:1] ^= 1
            handle.region = used
        return handle


class WritesBeside(DeviceHandleFactory):
    """Uses more of the memory than the tensor has."""

    def import_memory(
        self, info: TensorInfo, memory: ExternalMemory, *, read: bool = True, write: bool = False
    ) -> ITensorHandle:
        handle = super().import_memory(info, memory, read=read, write=write)
        if write and isinstance(handle, RegisteredTensorHandle):
            address = handle.region.elements.ctypes.data + info.size_bytes
            ctypes.c_uint8.from_address(address).value = 1
        return handle


class KeepsWhatItImported(DeviceHandleFactory):
    """Remembers all memory that it was given."""

    def import_memory(
        self, info: TensorInfo, memory: ExternalMemory, *, read: bool = True, write: bool = False
    ) -> ITensorHandle:
        handle = super().import_memory(info, memory, read=read, write=write)
        if isinstance(handle, RegisteredTensorHandle):
            state_of(self._device).kept.append(handle.region)
        return handle


class ExportsACopy(DeviceTensorHandle):
    """Exports its elements in memory of their own."""

    __slots__ = ()

    def export_memory(self, source: MemorySource) -> ExternalMemory:
        copy = ExternalMemory.shared(self.info.size_bytes)
        copy.map()[...] = self.region.elements
        return copy


class ExportsItsNeighbour(DeviceTensorHandle):
    """Exports memory that begins elsewhere."""

    __slots__ = ()

    def export_memory(self, source: MemorySource) -> ExternalMemory:
        right = super().export_memory(source)
        offset = right.offset_bytes + (1 << 12)
        self._device._memory[offset : offset + right.size_bytes] = 1
        return ExternalMemory(source, right.size_bytes, None, right.file_descriptor, offset)
