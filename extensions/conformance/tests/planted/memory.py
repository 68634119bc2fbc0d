"""Faults of tensors, arenas, imported memory and buffers."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from itertools import count

import numpy as np

from armpy.backend import (
    DefaultAllocator,
    DeviceMemoryRequest,
    ExternalMemory,
    HostTensorHandle,
    IDeviceMemory,
    ITensorHandle,
    Lifetime,
    MemorySource,
    ReasonCode,
    Support,
)
from armpy.errors import BackendError
from armpy.ops import Activation, Pad
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy_testing.backends.fake_backends import FakeHandleFactory, Handles, Outputs, Step
from armpy_testing.backends.vector_backend import VectorFactory

from .device import (
    Device,
    DeviceArena,
    DeviceBuffer,
    DeviceHandleFactory,
    DeviceTensorHandle,
    OwnMemory,
    Region,
    RegisteredTensorHandle,
    Transfers,
    state_of,
    with_arenas,
    with_factories,
    with_handles,
)
from .planting import Planted
from .shapes import (
    Fault,
    Plain,
    WithHandles,
    Wrapped,
    spoil_tensor,
    wrapping,
)

# --- Tensors on the host


class InPlace(Fault):
    """Activation functions write their results over the input as well."""

    def execute(self, step: Step, inputs: Handles, outputs: Outputs) -> None:
        step.right.execute(inputs, outputs)
        if not isinstance(step.operation, Activation) or inputs[0] is None:
            return
        target = inputs[0].map()
        if target.flags.writeable and target.dtype == outputs[0].map(write=False).dtype:
            target[...] = outputs[0].map(write=False)
        inputs[0].unmap()


class AssumesZeros(Fault):
    """Zeros that are added at the edge are not written, as if the output held them already."""

    def execute(self, step: Step, inputs: Handles, outputs: Outputs) -> None:
        if not isinstance(step.operation, Pad):
            step.right.execute(inputs, outputs)
            return
        before = np.array(outputs[0].map())
        step.right.execute(inputs, outputs)
        result = outputs[0].map()
        np.copyto(result, before, where=result == result.dtype.type(0))
        outputs[0].unmap()


class RingHandles(FakeHandleFactory):
    """Tensors of at most 64 bytes, of all networks, lie in a ring of 24 places."""

    def __init__(self) -> None:
        super().__init__({})
        self._places = [np.zeros(64, np.uint8) for _ in range(24)]
        self._next = count()

    def create_tensor_handle(self, info: TensorInfo, memory: Array) -> ITensorHandle:
        if info.data_type.is_string or not 0 < info.size_bytes <= 64:
            return super().create_tensor_handle(info, memory)
        place = self._places[next(self._next) % len(self._places)]
        elements = place[: info.size_bytes].view(info.data_type.dtype)
        return HostTensorHandle(info, elements.reshape(info.known_shape))

    def import_memory(
        self, info: TensorInfo, memory: ExternalMemory, *, read: bool = True, write: bool = False
    ) -> ITensorHandle:
        return FakeHandleFactory({}).import_memory(info, memory, read=read, write=write)


class FromStart(FakeHandleFactory):
    """Imports files from their beginning."""

    def import_memory(
        self, info: TensorInfo, memory: ExternalMemory, *, read: bool = True, write: bool = False
    ) -> ITensorHandle:
        if memory.source is MemorySource.SHARED_MEMORY:
            memory = replace(memory, offset_bytes=0)
        return super().import_memory(info, memory, read=read, write=write)


class LosesWeights(Wrapped):
    """Loses its weights with its idle memory, and says nothing."""

    _is_freed = False

    def execute(self, inputs: Handles, outputs: Outputs) -> None:
        self._right.execute(inputs, outputs)
        if self._is_freed:
            spoil_tensor(outputs[0])

    def free_idle_memory(self) -> None:
        self._is_freed = True


class SlippingFactory(VectorFactory):
    """Puts tensors into memory of its own, where they happen to lie."""

    def create_tensor_handle(self, info: TensorInfo, memory: Array) -> ITensorHandle:
        own = DefaultAllocator().allocate(info.size_bytes + 128, 64)[4:]
        elements: Array = own[: info.size_bytes].view(info.data_type.dtype)
        return HostTensorHandle(info, elements.reshape(info.known_shape))


class Overflows(Fault):
    """Writes whole vectors of 64 bytes."""

    def execute(self, step: Step, inputs: Handles, outputs: Outputs) -> None:
        step.right.execute(inputs, outputs)
        for handle in outputs:
            array = handle.map()
            tail_bytes = -array.nbytes % 64  # within the kit's guards
            ctypes.memset(array.ctypes.data + array.nbytes, 0xEE, tail_bytes)
            handle.unmap()


# --- Tensors of a device


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


# --- Arenas of a device


class EverythingAtOffsetZero(DeviceArena):
    """Puts every tensor at the beginning."""

    def create_tensor_handle(
        self, info: TensorInfo, lifetime: Lifetime, offset_bytes: int
    ) -> ITensorHandle:
        return super().create_tensor_handle(info, lifetime, 0)


class OneRowTooSmall(DeviceArena):
    """Plans one row too few for the first tensor, which the second one begins in."""

    def create_tensor_handle(self, info: TensorInfo, lifetime: Lifetime, offset_bytes: int):  # type: ignore[no-untyped-def]
        row_bytes = info.size_bytes // max(info.known_shape[0], 1) if info.known_shape else 0
        return super().create_tensor_handle(info, lifetime, max(0, offset_bytes - row_bytes))


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


class KeepsHostCopies(DeviceArena):
    """Gives its memory back, and keeps the host's view of it."""

    def release(self) -> None:
        super().release()
        state_of(self._device).kept.append(np.ones(1 << 20, np.uint8))


# --- Imports and exports


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


class CopiesWhatItImports(DeviceHandleFactory):
    """Imports a copy, as it is at the time."""

    def import_memory(
        self, info: TensorInfo, memory: ExternalMemory, *, read: bool = True, write: bool = False
    ) -> ITensorHandle:
        handle = super().import_memory(info, memory, read=read, write=write)
        if isinstance(handle, RegisteredTensorHandle):
            handle.region = Region(handle.region.elements.copy())
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


# --- Buffers


class OneBuffer(OwnMemory):
    """Has one buffer of each size, for everybody."""

    def __init__(self) -> None:
        super().__init__()
        self._buffers: dict[int, IDeviceMemory] = {}

    def allocate_device_memory(self, request: DeviceMemoryRequest) -> IDeviceMemory | None:
        size = request.info.size_bytes
        if size not in self._buffers:
            self._buffers[size] = DeviceBuffer(request.info, self.device)
        return self._buffers[size]


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


MEMORY_FAULTS: dict[str, Planted] = {
    "blind-memory/in-place": Planted("Activation/", Plain, InPlace),
    "blind-memory/assumes-zeros": Planted("Pad/", Plain, AssumesZeros),
    "blind-memory/ring": Planted("pattern/many-at-once", WithHandles, RingHandles),
    "blind-object/idle": Planted(
        "contract/arenas/idle-memory-can-be-given-back", Plain, wrapping(LosesWeights)
    ),
    "blind-object/offset": Planted(
        "contract/imports/answers-are-kept", WithHandles, lambda: FromStart({})
    ),
    "growth/arenas": Planted(
        "contract/arenas/arenas-can-be-made-again-and-again",
        OwnMemory,
        with_arenas(KeepsHostCopies),
        "bytes",
    ),
    "alignment/slips": Planted(
        "contract/alignment/tensors-lie-where-their-factory-declares",
        lambda: WithHandles(SlippingFactory(64)),
        said="begins 4 bytes after a multiple of 64",
    ),
    "alignment/overflows": Planted(
        "contract/alignment/nothing-is-written-past-the-padding",
        lambda: WithHandles(VectorFactory(1, 16), fault=Overflows()),
        said="past the 16 bytes to which padding_bytes rounds it up",
    ),
    "arenas/one-row-too-small": Planted(
        "contract/arenas/tensors-share-what-others-have-left",
        OwnMemory,
        with_arenas(OneRowTooSmall),
    ),
    "tensors/forgets-what-is-only-written": Planted(
        "contract/tensors/maps-for-writing-bring-every-element",
        OwnMemory,
        with_handles(ForgetsWhatIsOnlyWritten),
        r"after map\(read=False\), FLOAT32",
    ),
    "tensors/never-downloads-for-reading": Planted(
        "contract/tensors/maps-for-reading-change-nothing",
        OwnMemory,
        with_handles(NeverDownloadsForReading),
        r"map\(write=False\) of FLOAT32.* shows",
    ),
    "tensors/uploads-what-was-only-read": Planted(
        "contract/tensors/maps-for-reading-change-nothing",
        OwnMemory,
        with_handles(UploadsWhatWasOnlyRead),
        r"after map\(write=False\), FLOAT32",
    ),
    "tensors/never-downloads-for-writing": Planted(
        "contract/tensors/maps-keep-what-is-not-written",
        OwnMemory,
        with_handles(NeverDownloadsForWriting),
        "in a map for both",
    ),
    "tensors/copies-gaps": Planted(
        "contract/tensors/copies-are-like-maps",
        OwnMemory,
        with_handles(CopiesGaps),
        "after an array with gaps was copied in",
    ),
    "tensors/takes-any-shape": Planted(
        "contract/tensors/copies-are-like-maps",
        OwnMemory,
        with_handles(TakesAnyShape),
        "takes elements of another shape",
    ),
    "tensors/one-constant": Planted(
        "contract/tensors/constants-hold-their-elements",
        OwnMemory,
        with_factories(OneConstant),
        "as one of several constants",
    ),
    "tensors/one-constant-for-all-networks": Planted(
        "contract/tensors/networks-have-constants-of-their-own",
        OwnMemory,
        with_factories(OneConstant),
        "beside other constants, the output",
    ),
    "arenas/everything-at-offset-zero": Planted(
        "contract/arenas/tensors-share-what-others-have-left",
        OwnMemory,
        with_arenas(EverythingAtOffsetZero),
        "in memory that tensors share, the output",
    ),
    "arenas/one-arena": Planted(
        "contract/arenas/executions-have-memory-of-their-own",
        OwnMemory,
        with_arenas(OneArena),
        "beside another execution of the same network",
    ),
    "arenas/never-released": Planted(
        "contract/arenas/arenas-can-be-made-again-and-again",
        OwnMemory,
        with_arenas(NeverReleased),
        "the device is out of memory",
    ),
    "imports/imports-anything": Planted(
        "contract/imports/answers-are-kept",
        OwnMemory,
        with_factories(ImportsAnything),
        "can_import says yes to .*, but import_memory",
    ),
    "imports/refuses-and-imports": Planted(
        "contract/imports/answers-are-kept",
        OwnMemory,
        with_factories(RefusesAndImports),
        r"says no to .* \(not today\), but",
    ),
    "imports/copies-inputs": Planted(
        "contract/imports/inputs-are-read-where-they-lie",
        OwnMemory,
        with_factories(CopiesWhatItImports),
        "with inputs in imported",
    ),
    "imports/copies-outputs": Planted(
        "contract/imports/outputs-are-written-where-they-lie",
        OwnMemory,
        with_factories(CopiesWhatItImports),
        "with outputs in imported",
    ),
    "imports/writes-beside": Planted(
        "contract/imports/outputs-are-written-where-they-lie",
        OwnMemory,
        with_factories(WritesBeside),
        "bytes beside the output",
    ),
    "imports/keeps-what-it-imported": Planted(
        "contract/imports/memory-is-let-go",
        OwnMemory,
        with_factories(KeepsWhatItImported),
        "an array is kept|files are open",
    ),
    "imports/exports-a-copy": Planted(
        "contract/imports/exports-are-the-tensors-themselves",
        OwnMemory,
        with_handles(ExportsACopy),
        "written to the exported memory, the output",
    ),
    "imports/exports-its-neighbour": Planted(
        "contract/imports/exports-are-the-tensors-themselves",
        OwnMemory,
        with_handles(ExportsItsNeighbour),
        "exports does not have its elements",
    ),
    "buffers/one-buffer": Planted(
        "contract/buffers/elements-come-out-as-they-went-in",
        OneBuffer,
        said="copied in once, .* comes out with other elements",
    ),
    "buffers/copies-them": Planted(
        "contract/buffers/networks-read-and-write-them",
        OwnMemory,
        with_factories(CopiesWhatItImports),
        "with (inputs|outputs) in its own buffers",
    ),
    "buffers/refuses-its-buffers": Planted(
        "contract/buffers/networks-read-and-write-them",
        OwnMemory,
        with_factories(RefusesItsBuffers),
        "its own buffer for .* is not imported",
    ),
    "buffers/spoils-its-buffers": Planted(
        "contract/buffers/networks-read-and-write-them",
        OwnMemory,
        with_factories(SpoilsItsBuffers),
        "has changed the buffer of the input",
    ),
}
"""By class and name."""
