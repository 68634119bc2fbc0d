"""Memory that backends, applications and processes share."""

from __future__ import annotations

import enum

from armpy.ops.operation import Array
from armpy.records import dataclass


class MemorySource(enum.Flag):
    """Kinds of memory that can be shared; combined with ``|``.

    ``MALLOC`` is memory of the process. ``DMA_BUF``, ``GRALLOC`` and ``SHARED_MEMORY`` (since
    1.2) are file descriptors that can be mapped; ``DMA_BUF_PROTECTED`` is one that cannot.

    References
    ----------
    Arm NN MemorySource.
    """

    UNDEFINED = 0
    MALLOC = 1
    DMA_BUF = 2
    DMA_BUF_PROTECTED = 4
    GRALLOC = 8
    SHARED_MEMORY = 16


@dataclass(frozen=True, eq=False, slots=True)
class ExternalMemory:
    """Memory of somebody else that one tensor lies in.

    Parameters
    ----------
    source : MemorySource
        The one kind that it is of.
    size_bytes : int
        The tensor's.
    array : ndarray, uint8, shape (size_bytes,), optional
        The bytes; only of `MemorySource.MALLOC`.
    file_descriptor : int
        Of all other kinds; -1 without one.
    offset_bytes : int
        Where the tensor begins, counted from the beginning of the file.
    keep_alive : object
        Whatever has to live as long as the memory is used.

    Notes
    -----
    Since 1.2. The tensor's elements lie there in C order and native byte order. A file descriptor
    is borrowed: whoever uses it longer than the call that it came with duplicates it. It is
    mapped shared (``MAP_SHARED``), readable and writable; the file is not shorter than
    ``offset_bytes + size_bytes``. Nobody but the importer touches the memory while an execution
    uses it; what an execution has written is visible to all who map it when the execution has
    come to its end. Protected memory is never mapped by the host.
    """

    source: MemorySource
    size_bytes: int
    array: Array | None = None
    file_descriptor: int = -1
    offset_bytes: int = 0
    keep_alive: object = None
