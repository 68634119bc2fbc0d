"""A backend imports what another one has written in memory that both know."""

from __future__ import annotations

import gc
import mmap
import os
from collections.abc import Iterator

import numpy as np
import pytest

from armpy.backend import (
    ExternalMemory,
    ITensorArena,
    ITensorHandle,
    ITensorHandleFactory,
    MemorySource,
    NetworkResources,
    ReasonCode,
    Support,
)
from armpy.errors import MemoryImportError
from armpy.model import Model
from armpy.ops import Activation, ElementwiseBinary
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy_testing.backends.device_memory import (
    MIB,
    Arena,
    DeviceBackend,
    DeviceFactory,
    DeviceHandle,
    Memory,
)
from armpy_testing.backends.fake_backends import runtime_of
from armpy_testing.models.networks import copies, diamond, floats
from armpy_testing.systems import NEEDS_SHARED_MEMORY

X = floats(-1, 0, 2, 5)
SHARED = MemorySource.SHARED_MEMORY


class SharedMemory(Memory):
    """Memory in a file that others can map."""

    def __init__(self, size_bytes: int = MIB) -> None:
        super().__init__(size_bytes)
        self.file_descriptor = os.memfd_create("armpy-test")
        os.ftruncate(self.file_descriptor, size_bytes)
        self.bytes = np.frombuffer(mmap.mmap(self.file_descriptor, size_bytes), np.uint8)
        self.next = 0
        self.exported: list[MemorySource] = []
        self.imported: list[tuple[ExternalMemory, bool, bool]] = []
        self.asked: list[ExternalMemory] = []
        self.unimported: list[ITensorHandle] = []
        self.answer: Support = Support.yes()
        self.export_error: BaseException | None = None
        self.import_error: BaseException | None = None

    def take(self, size_bytes: int) -> Array:
        super().take(size_bytes)
        self.next += size_bytes
        return self.bytes[self.next - size_bytes : self.next]

    def close(self) -> None:
        os.close(self.file_descriptor)


class SharedHandle(DeviceHandle):
    """A tensor in such memory."""

    def export_memory(self, source: MemorySource) -> ExternalMemory:
        memory = self.memory
        assert isinstance(memory, SharedMemory)
        memory.exported.append(source)
        if memory.export_error is not None:
            raise memory.export_error
        offset = self.elements.ctypes.data - memory.bytes.ctypes.data
        descriptor = memory.file_descriptor
        size = self.info.size_bytes
        return ExternalMemory(source, size, file_descriptor=descriptor, offset_bytes=offset)


class SharedFactory(DeviceFactory):
    """Imports by mapping the file."""

    import_sources = export_sources = SHARED
    memory: SharedMemory

    def can_import(self, info: TensorInfo, memory: ExternalMemory) -> Support:
        self.memory.asked.append(memory)
        return self.memory.answer

    def import_memory(
        self, info: TensorInfo, memory: ExternalMemory, *, read: bool = True, write: bool = False
    ) -> ITensorHandle:
        if self.memory.import_error is not None:
            raise self.memory.import_error
        self.memory.imported.append((memory, read, write))
        end = memory.offset_bytes + memory.size_bytes
        mapped = np.frombuffer(mmap.mmap(memory.file_descriptor, end), np.uint8)
        return SharedHandle(self.memory, info, mapped[memory.offset_bytes :])

    def unimport(self, handle: ITensorHandle) -> None:
        self.memory.unimported.append(handle)


class Sharing(DeviceBackend):
    """A device whose memory others can map."""

    memory: SharedMemory

    def handle_factory(self, network: NetworkResources) -> ITensorHandleFactory:
        return SharedFactory(self.memory, SharedHandle)


@pytest.fixture
def pair() -> Iterator[tuple[Sharing, Sharing]]:
    """``top`` of the diamond is for the first, all else for the second."""
    npu = Sharing("Npu", {Activation}, memory=SharedMemory())
    dsp = Sharing("Dsp", {ElementwiseBinary}, memory=SharedMemory())
    yield npu, dsp
    npu.memory.close()
    dsp.memory.close()


@pytest.mark.slow
def test_each_working_memory_imports_its_own_and_ends_that_when_it_goes(
    pair: tuple[Sharing, Sharing],
) -> None:
    npu, dsp = pair
    model = Model(diamond(), runtime_of(npu, dsp))
    model.warm_up()
    dsp.memory.imported.clear()
    dsp.memory.unimported.clear()
    with model.create_working_memory() as memory:
        assert len(dsp.memory.imported) == 1
        np.testing.assert_array_equal(memory.run({"x": X})["y"], [1, 1, 9, 21])
        np.testing.assert_array_equal(model(X), [1, 1, 9, 21])
        assert dsp.memory.unimported == []
    assert len(dsp.memory.unimported) == 1
    model.free_working_memory()
    assert len(dsp.memory.unimported) == 2
    np.testing.assert_array_equal(model(X), [1, 1, 9, 21])
    del model, memory
    gc.collect()
    assert len(dsp.memory.unimported) == 3
    assert npu.memory.used_bytes == dsp.memory.used_bytes == 0


NO = Support.no(ReasonCode.OTHER, "not at this offset")


@NEEDS_SHARED_MEMORY
def test_an_import_that_fails_later_is_a_typed_error_and_the_network_goes_on(
    pair: tuple[Sharing, Sharing],
) -> None:
    npu, dsp = pair
    model = Model(diamond(), runtime_of(npu, dsp))
    model.warm_up()
    dsp.memory.answer = NO
    with pytest.raises(MemoryImportError, match=r"^Dsp / can_import: not at this offset"):
        model.create_working_memory()
    np.testing.assert_array_equal(model(X), [1, 1, 9, 21])
    assert dsp.memory.used_bytes == 64 * 3  # of the one that is there; all else went back


@NEEDS_SHARED_MEMORY
def test_an_arena_that_exports_nothing_is_copied_from(pair: tuple[Sharing, Sharing]) -> None:
    npu, dsp = pair

    class Plain(Arena):
        """Makes handles that say they cannot be exported."""

        def __init__(self, memory: Memory, size_bytes: int) -> None:
            super().__init__(memory, size_bytes, DeviceHandle)

    class Factory(SharedFactory):
        def create_arena(self, size_bytes: int) -> ITensorArena | None:
            return Plain(self.memory, size_bytes)

    class Owner(Sharing):
        def handle_factory(self, network: NetworkResources) -> ITensorHandleFactory:
            return Factory(self.memory, DeviceHandle)

    npu = Owner("Npu", {Activation}, memory=npu.memory)
    model = Model(diamond(), runtime_of(npu, dsp))
    assert copies(model)[1] == "[ top Npu -> Dsp ]"
    np.testing.assert_array_equal(model(X), [1, 1, 9, 21])
