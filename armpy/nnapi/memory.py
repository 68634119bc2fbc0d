"""Shared memory of applications, models and executions, used without copies."""

from __future__ import annotations

import contextlib
import mmap
import os
from types import TracebackType

from armpy.errors import NnapiError, ResultCode
from armpy.nnapi.results import bad_data, bad_state, require_data, unexpected_null


class Memory:
    """A region of memory that operands' elements are in.

    Parameters
    ----------
    buffer : buffer
        Anything with contiguous memory: an array, a bytearray, a shared memory's `buf`. It
        is used in place, and is read-only if the buffer is.

    Raises
    ------
    NnapiError
        UNEXPECTED_NULL if the buffer is None; BAD_DATA if it is empty or not contiguous.

    Notes
    -----
    While a model, compilation or execution uses it, its size must not change. A context
    manager that closes it.

    References
    ----------
    NNAPI ``ANeuralNetworksMemory``.
    """

    def __init__(self, buffer: object) -> None:
        if buffer is None:
            raise unexpected_null("the buffer", where="Memory", expected="a buffer")
        try:
            view = memoryview(buffer)  # type: ignore[arg-type]  # what is no buffer raises
            self._view = view.cast("B") if view.contiguous else None
        except TypeError as error:
            raise bad_data(
                "it has no memory to share",
                where="Memory",
                expected="a buffer such as an array, bytearray or mmap",
                actual=type(buffer).__name__,
            ) from error
        if self._view is None:
            raise bad_data("the buffer is not contiguous", where="Memory")
        require_data(len(self._view) > 0, "the memory has no bytes", where="Memory")
        self._mapping: mmap.mmap | None = None

    @classmethod
    def from_fd(
        cls,
        fd: int,
        size: int,
        protection: int = mmap.PROT_READ | mmap.PROT_WRITE,
        offset: int = 0,
    ) -> Memory:
        """Map a file.

        Parameters
        ----------
        fd : int
            Of a file, or of anonymous memory (`os.memfd_create`). It is the caller's still,
            who may close it afterwards.
        size : int
            Bytes to map.
        protection : int
            ``mmap.PROT_READ``, ``mmap.PROT_WRITE`` or both.
        offset : int
            Where in the file the memory begins; any number of bytes.

        Raises
        ------
        NnapiError
            BAD_DATA if size or descriptor cannot be; UNEXPECTED_NULL if the descriptor is
            not open; UNMAPPABLE if the file cannot be mapped.

        Notes
        -----
        The C function takes size and protection before the descriptor.

        References
        ----------
        NNAPI ``ANeuralNetworksMemory_createFromFd``.
        """
        where = "Memory.from_fd"
        require_data(
            size > 0 and fd >= 0 and offset >= 0,
            "the region cannot be",
            where=where,
            expected="a size above 0, a descriptor and an offset of 0 or more",
            actual=f"size {size}, descriptor {fd}, offset {offset}",
        )
        # NNAPI duplicates the descriptor first: one that is not open is UNEXPECTED_NULL, whatever
        # mapping would say. mmap keeps a duplicate as well, so that the caller may close this one.
        try:
            os.fstat(fd)
        except OSError as error:
            code = ResultCode.UNEXPECTED_NULL
            raise NnapiError(
                f"descriptor {fd} is not open: {error}", code=code, where=where
            ) from error
        # Maps begin at whole pages.
        before = offset % mmap.ALLOCATIONGRANULARITY
        try:
            mapping = mmap.mmap(
                fd, size + before, mmap.MAP_SHARED, protection, offset=offset - before
            )
        except (OSError, ValueError) as error:
            raise NnapiError(
                f"the file cannot be mapped: {error}",
                code=ResultCode.UNMAPPABLE,
                where=where,
                actual=f"{size} bytes at {offset}",
            ) from error
        memory = cls(memoryview(mapping)[before : before + size])
        memory._mapping = mapping
        return memory

    @property
    def size(self) -> int:
        """Bytes."""
        return len(self._open_view())

    @property
    def is_writable(self) -> bool:
        """Whether outputs can be in it."""
        return not self._open_view().readonly

    def region(self, offset: int, length: int, where: str) -> memoryview:
        """Bytes of the memory.

        Raises
        ------
        NnapiError
            BAD_DATA if they are not all in it, or there are none.
        """
        view = self._open_view()
        # NNAPI takes (0, 0) for "all of it" from memory without a size only, which this is not.
        require_data(
            offset >= 0 and length > 0 and offset + length <= len(view),
            "the region is not in the memory",
            where=where,
            expected=f"1 byte or more of {len(view)}",
            actual=f"{length} bytes at {offset}",
        )
        return view[offset : offset + length]

    def close(self) -> None:
        """Forget the memory; what still uses a part of it keeps it until it is done."""
        self._view = None
        mapping, self._mapping = self._mapping, None
        if mapping is not None:
            # Where regions are in use, the mapping goes with the last of them.
            with contextlib.suppress(BufferError):
                mapping.close()

    def _open_view(self) -> memoryview:
        """All of the memory."""
        if self._view is None:
            raise bad_state("the memory is closed", where="Memory")
        return self._view

    def __enter__(self) -> Memory:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._view is None:
            return "Memory(closed)"
        return f"Memory({self.size} bytes{'' if self.is_writable else ', read-only'})"
