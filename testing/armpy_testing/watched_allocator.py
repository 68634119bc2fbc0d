"""An allocator that knows its allocations."""

from __future__ import annotations

from armpy.backend import DefaultAllocator, MemorySource
from armpy.ops.operation import Array


class WatchedAllocator(DefaultAllocator):
    """Gives memory full of ones (NaN as floats), and watches it.

    `held`: size by address of the allocations that were not given back.
    `num_bytes`: total of the allocations.
    """

    def __init__(self, source: MemorySource = MemorySource.MALLOC) -> None:
        self.held: dict[int, int] = {}
        self.num_bytes = 0
        self._source = source

    def allocate(self, size_bytes: int, alignment_bytes: int = 64) -> Array:
        memory = super().allocate(size_bytes, alignment_bytes)
        memory.fill(0xFF)
        self.held[memory.ctypes.data] = size_bytes
        self.num_bytes += size_bytes
        return memory

    def free(self, memory: Array) -> None:
        del self.held[memory.ctypes.data]

    @property
    def memory_source(self) -> MemorySource:
        return self._source

    def has(self, array: Array) -> bool:
        """Whether all of an array lies in memory that it has given and not got back."""
        first = array.ctypes.data
        return any(
            start <= first and first + array.nbytes <= start + size
            for start, size in self.held.items()
        )
