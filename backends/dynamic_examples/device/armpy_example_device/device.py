"""The simulated device: memory that the host cannot see, transfers, and a queue."""

from __future__ import annotations

import mmap
import os
import threading
import weakref
from collections import deque
from dataclasses import dataclass

import numpy as np

from armpy.backend import ALIGNMENT_BYTES
from armpy.errors import MemoryLimitError
from armpy.ops.operation import Array
from armpy_example_device.faults import Faults
from armpy_example_device.queue import Queue

DEFAULT_MEMORY_BYTES = 64 << 20


@dataclass(slots=True)
class Counters:
    """Bytes moved over the bus since the device was opened."""

    uploads: int = 0
    downloads: int = 0
    bytes_uploaded: int = 0
    bytes_downloaded: int = 0
    imports: int = 0
    most_bytes_allocated: int = 0


class Region:
    """Memory that the device can use: a part of its own, or registered memory of the host.

    Parameters
    ----------
    elements : ndarray, uint8, shape (size_bytes,)
        For the device's kernels alone. The host goes by `Device.upload` and `download`.
    offset_bytes : int
        Where it begins in the device's memory; -1 for the host's.
    owner : object
        Keeps the memory.
    """

    __slots__ = ("__weakref__", "_owner", "elements", "offset_bytes")

    def __init__(self, elements: Array, offset_bytes: int = -1, owner: object = None) -> None:
        self.elements = elements
        self.offset_bytes = offset_bytes
        self._owner = owner

    def part(self, offset_bytes: int, size_bytes: int) -> Region:
        """Memory in this memory, which lives as long as its part."""
        elements = self.elements[offset_bytes : offset_bytes + size_bytes]
        return Region(elements, self.offset_bytes + offset_bytes, self)


class Device:
    """A device whose memory the host reaches by explicit transfers only.

    Parameters
    ----------
    faults : str
        See `Faults`.
    is_mappable : bool
        Whether others may map the memory, as far as the system has memory that can be.

    Attributes
    ----------
    file_descriptor : int
        Of the memory, for others that map parts of it; -1 if they cannot.
    """

    def __init__(
        self,
        memory_bytes: int = DEFAULT_MEMORY_BYTES,
        faults: str = "",
        *,
        is_mappable: bool = False,
    ) -> None:
        self.memory_bytes = memory_bytes
        self.counters = Counters()
        self.faults = Faults(faults)
        self.queue = Queue(self.faults)
        self.file_descriptor = -1
        if is_mappable and hasattr(os, "memfd_create"):
            self.file_descriptor = os.memfd_create("armpy-example-device")
            os.truncate(self.file_descriptor, memory_bytes)
            weakref.finalize(self, os.close, self.file_descriptor)
        memory = mmap.mmap(self.file_descriptor, memory_bytes)
        self._memory: Array = np.frombuffer(memory, np.uint8)
        self._lock = threading.Lock()
        self._gaps = [(0, memory_bytes)]  # (offset, size), in order, none beside another
        self._returned: deque[tuple[int, int]] = deque()

    def alloc(self, size_bytes: int) -> Region:
        """Get memory, which goes back with the region's last reference or by `free`.

        Raises
        ------
        MemoryLimitError
            If there is no gap that is large enough.
        """
        needed = max(-(-size_bytes // ALIGNMENT_BYTES), 1) * ALIGNMENT_BYTES
        is_faulty = self.faults.take("out_of_memory")
        with self._lock:
            self._take_back()
            fitting = [gap for gap in self._gaps if gap[1] >= needed]
            if is_faulty or not fitting:
                raise MemoryLimitError(
                    "the device is out of memory",
                    where="ExampleDevice",
                    expected=f"{size_bytes} bytes in one piece",
                    actual=f"{self.memory_bytes} bytes, {self._free_bytes()} of them free",
                )
            offset, size = gap = fitting[0]
            self._gaps.remove(gap)
            if size > needed:
                self._gaps.append((offset + needed, size - needed))
            in_use = self.memory_bytes - self._free_bytes()
            self.counters.most_bytes_allocated = max(self.counters.most_bytes_allocated, in_use)
        region = Region(self._memory[offset : offset + size_bytes], offset)
        # A finalizer runs wherever the collector finds the region, so it may wait for nothing.
        weakref.finalize(region, self._returned.append, (offset, needed)).atexit = False
        return region

    @property
    def allocated_bytes(self) -> int:
        """Memory in use."""
        with self._lock:
            self._take_back()
            return self.memory_bytes - self._free_bytes()

    def _free_bytes(self) -> int:
        """Memory not in use."""
        return sum(size for _, size in self._gaps)

    def _take_back(self) -> None:
        """Make gaps of released memory, and one gap of those that touch."""
        while self._returned:
            self._gaps.append(self._returned.popleft())
        merged: list[tuple[int, int]] = []
        for offset, size in sorted(self._gaps):
            if merged and sum(merged[-1]) == offset:
                merged[-1] = (merged[-1][0], merged[-1][1] + size)
            else:
                merged.append((offset, size))
        self._gaps = merged

    def register(self, memory: Array) -> Region:
        """Let the device use memory of the host where it lies.

        Parameters
        ----------
        memory : ndarray, uint8, shape (size_bytes,)
        """
        with self._lock:
            self.counters.imports += 1
        return Region(memory)

    def upload(self, region: Region, source: Array) -> None:
        """Copy elements, C-contiguous, to the device."""
        region.elements[...] = source.reshape(-1).view(np.uint8)
        with self._lock:
            self.counters.uploads += 1
            self.counters.bytes_uploaded += source.nbytes

    def download(self, region: Region, target: Array) -> None:
        """Copy elements from the device to an array, C-contiguous."""
        target.reshape(-1).view(np.uint8)[...] = region.elements
        with self._lock:
            self.counters.downloads += 1
            self.counters.bytes_downloaded += target.nbytes

    def close(self) -> None:
        """Stop the running work; a device that is used again goes on."""
        self.queue.close()
