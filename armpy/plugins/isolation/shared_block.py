"""Shared memory that goes with the last process that has it."""

from __future__ import annotations

import mmap
import os
import sys
import tempfile
from collections.abc import Sequence

import numpy as np

from armpy.ops.operation import Array
from armpy.tensor import TensorInfo

ALIGNMENT_BYTES = 64
"""Alignment of everything in shared memory: a cache line."""


def aligned(size_bytes: int) -> int:
    """The next multiple of the alignment."""
    return -(-size_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES


def create_block(size_bytes: int) -> int:
    """Make shared memory of zeros.

    Raises OSError if there is no memory, or there are no descriptors left.

    Returns a descriptor, not inherited, of a ``memfd`` where Python has them, else of a
    temporary file.
    """
    # A Python that was built with an older glibc than 2.27 has no such function on Linux, either.
    if sys.platform == "linux" and hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("armpy", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    else:
        # It has no name, or on Windows one until the last process that has it closes it.
        with tempfile.TemporaryFile(prefix="armpy-") as file:
            descriptor = os.dup(file.fileno())
    try:
        # Never empty, as nothing of no bytes can be mapped.
        os.ftruncate(descriptor, max(size_bytes, ALIGNMENT_BYTES))
        _seal(descriptor, "F_SEAL_SHRINK", "F_SEAL_GROW")  # or touching it could be a fault here
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def forbid_writing(descriptor: int) -> None:
    """Make unmapped shared memory read-only, where the system supports it."""
    _seal(descriptor, "F_SEAL_WRITE", "F_SEAL_SEAL")


if sys.platform == "linux":
    import fcntl

    def _seal(descriptor: int, *names: str) -> None:
        """Seal a ``memfd``, which holds for every process that has it; files have no seals."""
        if hasattr(os, "memfd_create") and hasattr(fcntl, "F_ADD_SEALS"):
            fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, sum(getattr(fcntl, name) for name in names))

else:

    def _seal(descriptor: int, *names: str) -> None:
        """Do nothing: files have no seals."""


def map_block(descriptor: int, *, writable: bool = True) -> mmap.mmap:
    """Map shared memory; it stays while an array lies in it, even if the descriptor is closed."""
    if writable or sys.platform == "win32":
        return mmap.mmap(descriptor, 0, access=mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ)
    # The same pages: memory sealed against writing cannot be mapped as shared everywhere.
    return mmap.mmap(descriptor, 0, mmap.MAP_PRIVATE, mmap.PROT_READ)


class TensorLayout:
    """Layout of tensors in shared memory, in order, after a header.

    The header is one cache line, of which the first int64 asks the worker to stop, and the second
    holds the time that the device took.
    """

    def __init__(self, infos: Sequence[TensorInfo]) -> None:
        self._infos = infos  # fully shaped
        self._offsets: list[int] = []
        # A line of its own, as one side may set the flag while the other writes tensors.
        position = ALIGNMENT_BYTES
        for info in infos:
            self._offsets.append(position)
            position += aligned(info.size_bytes)
        self.size_bytes = position

    def arrays(self, block: mmap.mmap) -> list[Array]:
        """The tensors as arrays, one per info."""
        whole = np.frombuffer(block, np.uint8)
        return [
            whole[start : start + info.size_bytes]
            .view(info.data_type.dtype)
            .reshape(info.known_shape)
            for info, start in zip(self._infos, self._offsets, strict=True)
        ]


def stop_flag(block: mmap.mmap) -> Array:
    """The int64 that is not 0 once the worker is to stop, shape (1,)."""
    return np.frombuffer(block, np.int64, 1)


def device_time(block: mmap.mmap) -> Array:
    """The int64 with the nanoseconds that a device took, shape (1,); below 0 if not measured."""
    return np.frombuffer(block, np.int64, 1, offset=8)
