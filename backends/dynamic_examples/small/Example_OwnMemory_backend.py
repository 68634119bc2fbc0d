"""A backend with a memory space of its own, which others can import, and which imports theirs.

The space is a file in memory, as a driver's buffers are file descriptors. Where the system has no
such files, the backend is not available.

References
----------
Arm NN ITensorHandleFactory, ClImportTensorHandleFactory.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence

import numpy as np

from armpy.backend import (
    ExternalMemory,
    IBackendContext,
    IBackendInternal,
    ITensorArena,
    ITensorHandle,
    ITensorHandleFactory,
    Lifetime,
    MemorySource,
    OptionValues,
    ReasonCode,
    Support,
    TensorHandleFactoryRegistry,
)
from armpy.errors import BackendUnavailableError, MemoryExportError, MemoryImportError
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo

from .Example_common import ElementwiseBackend

BACKEND_ID = "ExampleOwnMemory"
FACTORY_ID = "example/own-memory"


def get_backend_id() -> str:
    """First entry point."""
    return BACKEND_ID


def get_version() -> str:
    """Second entry point."""
    return "1.2"


def backend_factory() -> IBackendInternal:
    """Third entry point."""
    return OwnMemoryBackend(BACKEND_ID)


class Space:
    """A mapped file.

    Parameters
    ----------
    descriptor : int
        Kept until `close`.
    size_bytes : int
    """

    def __init__(self, descriptor: int, size_bytes: int) -> None:
        self.descriptor = descriptor
        mapped = mmap.mmap(descriptor, size_bytes)  # shared, readable and writable
        self.bytes: Array = np.frombuffer(mapped, np.uint8)  # keeps the mapping

    def close(self) -> None:
        """Let go of the file; what is mapped goes with the last handle."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
        self.descriptor = -1


class SpaceHandle(ITensorHandle):
    """A tensor in a space.

    Parameters
    ----------
    info : TensorInfo
    space : Space
    offset_bytes : int
    """

    def __init__(self, info: TensorInfo, space: Space, offset_bytes: int) -> None:
        self._info = info
        self.space = space
        self._offset_bytes = offset_bytes

    @property
    def info(self) -> TensorInfo:
        """Shape, data type and quantisation."""
        return self._info

    def map(self, *, read: bool = True, write: bool = True) -> Array:
        """The elements where they lie; a space that the host cannot see would copy here."""
        part = self.space.bytes[self._offset_bytes : self._offset_bytes + self._info.size_bytes]
        return part.view(self._info.data_type.dtype).reshape(self._info.known_shape)

    def export_memory(self, source: MemorySource) -> ExternalMemory:
        """The file and where the tensor begins in it."""
        if source is not MemorySource.SHARED_MEMORY:
            raise MemoryExportError("the space is a file", where=FACTORY_ID, actual=str(source))
        return ExternalMemory(
            source,
            self._info.size_bytes,
            file_descriptor=self.space.descriptor,
            offset_bytes=self._offset_bytes,
            keep_alive=self.space,
        )


class SpaceArena(ITensorArena):
    """A space of its own for the tensors of one execution at a time.

    Parameters
    ----------
    size_bytes : int
    """

    def __init__(self, size_bytes: int) -> None:
        descriptor = os.memfd_create("armpy-example")
        os.ftruncate(descriptor, size_bytes or 1)
        self._space = Space(descriptor, size_bytes or 1)

    def create_tensor_handle(
        self, info: TensorInfo, lifetime: Lifetime, offset_bytes: int
    ) -> ITensorHandle:
        """A tensor where the core has planned it."""
        return SpaceHandle(info, self._space, offset_bytes)

    def release(self) -> None:
        """Let go of the file."""
        self._space.close()


class SpaceFactory(ITensorHandleFactory):
    """Makes handles in spaces."""

    @property
    def factory_id(self) -> str:
        """One for the backend."""
        return FACTORY_ID

    def create_arena(self, size_bytes: int) -> ITensorArena:
        """A space."""
        return SpaceArena(size_bytes)

    def create_tensor_handle(self, info: TensorInfo, memory: Array) -> ITensorHandle:
        """A tensor alone in a space."""
        return SpaceArena(info.size_bytes).create_tensor_handle(info, (0, 0), 0)

    @property
    def export_sources(self) -> MemorySource:
        """Others may map the files."""
        return MemorySource.SHARED_MEMORY

    @property
    def import_sources(self) -> MemorySource:
        """It maps theirs."""
        return MemorySource.SHARED_MEMORY

    def can_import(self, info: TensorInfo, memory: ExternalMemory) -> Support:
        """Whether the elements are at addresses of their own size."""
        if memory.offset_bytes % info.data_type.dtype.itemsize:
            return Support.no(ReasonCode.OTHER, "the memory is not aligned to whole elements")
        if memory.size_bytes < info.size_bytes:
            return Support.no(ReasonCode.OTHER, "the memory is too small")
        return Support.yes()

    def import_memory(
        self, info: TensorInfo, memory: ExternalMemory, *, read: bool = True, write: bool = False
    ) -> ITensorHandle:
        """Map the file, whose descriptor is only borrowed."""
        descriptor = os.dup(memory.file_descriptor)
        try:
            space = Space(descriptor, memory.offset_bytes + info.size_bytes)
        except (OSError, ValueError) as error:
            os.close(descriptor)
            raise MemoryImportError("the file cannot be mapped", where=FACTORY_ID) from error
        return SpaceHandle(info, space, memory.offset_bytes)

    def unimport(self, handle: ITensorHandle) -> None:
        """Let go of the file."""
        assert isinstance(handle, SpaceHandle)  # made above
        handle.space.close()


class OwnMemoryBackend(ElementwiseBackend):
    """Computes in spaces."""

    def create_backend_context(self, options: OptionValues) -> IBackendContext:
        """Look whether the system has files in memory."""
        if not hasattr(os, "memfd_create"):
            raise BackendUnavailableError("the system has no files in memory", where=BACKEND_ID)
        return IBackendContext()

    def register_tensor_handle_factories(self, registry: TensorHandleFactoryRegistry) -> None:
        """Its own factory."""
        registry.register_factory(SpaceFactory())

    def get_handle_factory_preferences(self) -> Sequence[str]:
        """Its own factory, and no other."""
        return [FACTORY_ID]
