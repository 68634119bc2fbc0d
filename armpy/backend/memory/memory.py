"""Memory of backends: where it comes from and when it is held."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from armpy import backend

if TYPE_CHECKING:  # an import here slows every start of a compiled model
    from armpy.backend.memory.external_memory import ExternalMemory, MemorySource
    from armpy.ops.operation import Array
    from armpy.tensor import TensorInfo

ALIGNMENT_BYTES = 64
"""Alignment of every tensor that the core places in an arena (a cache line, an AVX-512 vector)."""


class IMemoryManager(ABC):
    """Holds the memory that a backend needs while networks run."""

    @abstractmethod
    def acquire(self) -> None:
        """Get the memory; called before the first of overlapping executions."""

    @abstractmethod
    def release(self) -> None:
        """Give the memory back; called after the last of overlapping executions."""


class ICustomAllocator(ABC):
    """Gives a backend's working memory in an application's own way.

    Notes
    -----
    Backends get an object in its place (`NetworkResources.allocator`), which asks it and checks its
    results: errors name it, and freeing raises nothing. Several threads may ask at the same time.
    """

    @abstractmethod
    def allocate(self, size_bytes: int, alignment_bytes: int) -> Array:
        """Get memory.

        Returns
        -------
        ndarray, uint8, shape (size_bytes,)
            Writable; its first byte is at a multiple of `alignment_bytes`.
        """

    def free(self, memory: Array) -> None:
        """Give memory back that `allocate` gave; nothing by default."""
        return

    @property
    def memory_source(self) -> MemorySource:
        """The kind of memory."""
        return backend.MemorySource.MALLOC

    def allocate_external(self, size_bytes: int, alignment_bytes: int) -> ExternalMemory:
        """Get memory for a backend's own arena that the host need not see.

        Parameters
        ----------
        size_bytes, alignment_bytes : int
            Size and alignment, as for `allocate`; `ExternalMemory.offset_bytes` is a multiple of
            the alignment.

        Returns
        -------
        ExternalMemory
            Memory of `size_bytes` and of the kind `memory_source`. By default, what `allocate`
            gives.

        Notes
        -----
        Asked by handle factories that make arenas (`ITensorHandleFactory.create_arena`).
        An allocator whose memory the host must not see overrides it with `free_external`, and
        raises in `allocate`.
        """
        return backend.ExternalMemory.of_array(self.allocate(size_bytes, alignment_bytes))

    def free_external(self, memory: ExternalMemory) -> None:
        """Give memory back that `allocate_external` gave, the same object."""
        if isinstance(memory.keep_alive, np.ndarray):  # what allocate gave
            self.free(memory.keep_alive)


class DefaultAllocator(ICustomAllocator):
    """Memory of the process."""

    def allocate(self, size_bytes: int, alignment_bytes: int = ALIGNMENT_BYTES) -> Array:
        """Uninitialised memory that begins at a multiple of `alignment_bytes`."""
        # NumPy promises less alignment than is asked for, so the memory begins further inside.
        raw = np.empty(size_bytes + alignment_bytes, np.uint8)
        start = -raw.ctypes.data % alignment_bytes
        return raw[start : start + size_bytes]


def rounded_up(size_bytes: int, multiple_bytes: int) -> int:
    """Round `size_bytes` up to a multiple of `multiple_bytes`."""
    return -(-size_bytes // multiple_bytes) * multiple_bytes


def empty_tensor(info: TensorInfo, alignment_bytes: int = 1, padding_bytes: int = 1) -> Array:
    """Uninitialised memory for a tensor, as handle factories ask for it.

    Parameters
    ----------
    info : TensorInfo
        Fully shaped.
    alignment_bytes, padding_bytes : int
        Alignment and padding, as of `ITensorHandleFactory`.

    Returns
    -------
    ndarray, dtype and shape of `info`, C-contiguous
        The padding follows it.
    """
    if info.data_type.is_string:
        return info.data_type.zeros(info.known_shape)
    if alignment_bytes == padding_bytes == 1:
        return np.empty(info.known_shape, info.data_type.dtype)
    # NumPy's own alignment suits every element.
    alignment_bytes = max(alignment_bytes, info.data_type.dtype.itemsize)
    room = rounded_up(info.size_bytes, padding_bytes)
    memory = DefaultAllocator().allocate(room, alignment_bytes)
    elements: Array = memory[: info.size_bytes].view(info.data_type.dtype)
    return elements.reshape(info.known_shape)
