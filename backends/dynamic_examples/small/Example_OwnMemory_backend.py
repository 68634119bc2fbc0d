"""A backend with a memory space of its own, which others can import, and which imports theirs.

The space is a file in memory, as a driver's buffers are file descriptors. Where the system has no
such files, the backend is not available.

References
----------
Arm NN ITensorHandleFactory, ClImportTensorHandleFactory.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from armpy.backend import (
    ALIGNMENT_BYTES,
    ExternalMemory,
    IBackendContext,
    IBackendInternal,
    ITensorArena,
    ITensorHandle,
    ITensorHandleFactory,
    Lifetime,
    MemorySource,
    NetworkResources,
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
    return "2.0"


def backend_factory() -> IBackendInternal:
    """Third entry point."""
    return OwnMemoryBackend(BACKEND_ID)


class SpaceHandle(ITensorHandle):
    """A tensor in a memory space.

    Parameters
    ----------
    memory : ExternalMemory
        Where it lies, for others.
    mapped : ndarray of uint8
        Its bytes, for kernels.
    """

    def __init__(self, info: TensorInfo, memory: ExternalMemory, mapped: Array) -> None:
        self._info = info
        self._memory = memory
        self._mapped = mapped

    @property
    def info(self) -> TensorInfo:
        """Shape, data type and quantisation."""
        return self._info

    def map(self, *, read: bool = True, write: bool = True) -> Array:
        """The elements where they lie; a space that the host cannot see would copy here."""
        return self._mapped.view(self._info.data_type.dtype).reshape(self._info.known_shape)

    def export_memory(self, source: MemorySource) -> ExternalMemory:
        """The file and where the tensor begins in it."""
        if source is not MemorySource.SHARED_MEMORY:
            raise MemoryExportError("the space is a file", where=FACTORY_ID, actual=str(source))
        return self._memory


class SpaceArena(ITensorArena):
    """A space for the tensors of one execution at a time, which goes with the last of them."""

    def __init__(self, size_bytes: int) -> None:
        self._space = ExternalMemory.shared(size_bytes, "armpy-example")
        self._mapped = self._space.map()

    def create_tensor_handle(
        self, info: TensorInfo, lifetime: Lifetime, offset_bytes: int
    ) -> ITensorHandle:
        """A tensor where the core has planned it."""
        memory = ExternalMemory.of_file_descriptor(
            self._space.file_descriptor,
            info.size_bytes,
            offset_bytes=offset_bytes,
            keep_alive=self._space,
        )
        part = self._mapped[offset_bytes : offset_bytes + info.size_bytes]
        return SpaceHandle(info, memory, part)


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

    @property
    def alignment_bytes(self) -> int:
        """Tensors begin at cache lines: armpy asks about no memory that lies otherwise."""
        return ALIGNMENT_BYTES

    def can_import(self, info: TensorInfo, memory: ExternalMemory) -> Support:
        """Whether there is room for the elements."""
        if memory.size_bytes < info.size_bytes:
            return Support.no(ReasonCode.OTHER, "the memory is too small")
        return Support.yes()

    def import_memory(
        self, info: TensorInfo, memory: ExternalMemory, *, read: bool = True, write: bool = False
    ) -> ITensorHandle:
        """Map the file, which raises if it is too short; the mapping outlives its descriptor."""
        answer = self.can_import(info, memory)
        if not answer:
            raise MemoryImportError(answer.text, where=FACTORY_ID)
        mapped = memory.map(read=read, write=write)[: info.size_bytes]
        return SpaceHandle(info, memory, mapped)


class OwnMemoryBackend(ElementwiseBackend):
    """Computes in spaces."""

    def create_backend_context(self, options: OptionValues) -> IBackendContext:
        """Look whether the system has files in memory."""
        if not hasattr(os, "memfd_create"):
            raise BackendUnavailableError("the system has no files in memory", where=BACKEND_ID)
        return IBackendContext()

    def register_tensor_handle_factories(
        self, registry: TensorHandleFactoryRegistry, network: NetworkResources
    ) -> None:
        """Its own factory."""
        registry.register_factory(SpaceFactory())

    def get_handle_factory_preferences(self) -> Sequence[str]:
        """Its own factory, and no other."""
        return [FACTORY_ID]
