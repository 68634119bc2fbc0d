"""Memory in which every buffer lies between inaccessible pages.

A read or a write beside a buffer ends the process with SIGSEGV (and a write to what is only read
as well), so what uses it runs in a process of its own.
"""

from __future__ import annotations

import ctypes
import itertools
import mmap
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from armpy.backend import (
    ALIGNMENT_BYTES,
    IMemoryOptimizerStrategy,
    MemBin,
    MemBlock,
    PackingType,
)
from armpy.ops.operation import Array

PAGE_BYTES = mmap.PAGESIZE
_NONE, _READ, _BOTH = 0, 1, 3
_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


class GuardPages(IMemoryOptimizerStrategy):
    """Places buffers so that each begins, or ends, where an inaccessible page does.

    `is_at_end`: whether buffers end at a page's end, as far as their alignment lets them, so that
    memory after them cannot be touched; else they begin at a page's beginning, and memory before
    them cannot.

    Notes
    -----
    An arena is planned in one place and allocated in another, which knows nothing but its size:
    every plan has a size of its own, by which its buffers are found again.
    """

    def __init__(self, is_at_end: bool) -> None:
        self._is_at_end = is_at_end
        self._plans: dict[int, list[tuple[int, int]]] = {}
        self._numbers = itertools.cycle(range(1, 1 << 10))

    def plan(self, sizes: Sequence[int], alignment_bytes: int) -> tuple[list[int], int]:
        """Offsets of buffers in one piece of memory, and its size."""
        offsets, pages, begin = [], [], PAGE_BYTES
        for size in sizes:
            room = _pages(max(size, 1))
            slack = (room - size) // alignment_bytes * alignment_bytes if self._is_at_end else 0
            offsets.append(begin + slack)
            pages.append((begin, room))
            begin += room + PAGE_BYTES
        total = begin + next(self._numbers) * PAGE_BYTES
        while total in self._plans:
            total += PAGE_BYTES
        self._plans[total] = pages
        return offsets, total

    def memory(self, size_bytes: int) -> Array:
        """Memory of a plan, which begins at a page; of any other size, one buffer."""
        if size_bytes in self._plans:
            whole, address = _mapped(size_bytes)
            for begin, room in self._plans[size_bytes]:
                _protect(address + begin, room, _BOTH)
            return whole
        return self.array((size_bytes,), np.dtype(np.uint8), alignment_bytes=ALIGNMENT_BYTES)

    def forget(self) -> None:
        """Drop the plans that there are."""
        self._plans.clear()

    def array(
        self,
        shape: Sequence[int],
        dtype: np.dtype[Any],  # Any: of every type
        contents: bytes | None = None,
        alignment_bytes: int = 0,
    ) -> Array:
        """An array of its own, which can only be read if its contents are given."""
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        room = _pages(max(size, 1))
        whole, address = _mapped(room + 2 * PAGE_BYTES)
        _protect(address + PAGE_BYTES, room, _BOTH)
        step = alignment_bytes or dtype.itemsize
        skip = PAGE_BYTES + ((room - size) // step * step if self._is_at_end else 0)
        part = whole[skip : skip + size]
        if contents is not None:
            part[:] = np.frombuffer(contents, np.uint8)
            _protect(address + PAGE_BYTES, room, _READ)
            part.flags.writeable = False
        return part.view(dtype).reshape(tuple(shape))

    @property
    def name(self) -> str:
        """``"GuardPages"``."""
        return "GuardPages"

    @property
    def packing_type(self) -> PackingType:
        """Blocks lie side by side."""
        return PackingType.MULTI_AXIS

    def optimize(self, blocks: Sequence[MemBlock]) -> list[MemBin]:
        """No two blocks share a page."""
        offsets, size = self.plan([block.size_bytes for block in blocks], ALIGNMENT_BYTES)
        placed = [
            MemBlock(block.start, block.end, block.size_bytes, offset, block.index)
            for block, offset in zip(blocks, offsets, strict=True)
        ]
        return [MemBin(tuple(placed), size)]


def make_read_only(memory: npt.NDArray[np.uint8], offset: int, size: int) -> None:
    """Let the pages of one buffer only be read from now on."""
    begin = (memory.ctypes.data + offset) // PAGE_BYTES * PAGE_BYTES
    _protect(begin, _pages(memory.ctypes.data + offset + max(size, 1) - begin), _READ)


def _pages(size: int) -> int:
    """A size rounded up to whole pages."""
    return -(-size // PAGE_BYTES) * PAGE_BYTES


def _mapped(size: int) -> tuple[Array, int]:
    """Inaccessible zeros, and their address."""
    whole = np.frombuffer(mmap.mmap(-1, size), np.uint8)
    _protect(whole.ctypes.data, size, _NONE)
    return whole, whole.ctypes.data


def _protect(address: int, size: int, how: int) -> None:
    """Say what may be done with some pages."""
    if _LIBC.mprotect(address, size, how):
        raise OSError(ctypes.get_errno(), "mprotect failed")
