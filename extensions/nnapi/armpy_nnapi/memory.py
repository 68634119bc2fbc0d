"""Shared memory of applications, models and executions, used without copies."""

from __future__ import annotations

import contextlib
import mmap
import os
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Generic, TypeVar

from armpy.backend import ExternalMemory
from armpy.errors import MemoryImportError, MemoryLimitError
from armpy_nnapi.errors import NnapiError, ResultCode
from armpy_nnapi.results import (
    bad_data,
    bad_state,
    check_kind,
    require_data,
    result_codes,
    unexpected_null,
)

_READ = getattr(mmap, "PROT_READ", 1)
_WRITE = getattr(mmap, "PROT_WRITE", 2)
"""NNAPI's bits, which Windows' module lacks."""

_Made_co = TypeVar("_Made_co", bound="Memory", covariant=True)


class IMemoryDesc(ABC, Generic[_Made_co]):
    """A description that memory can be made of; see `MemoryDesc`."""

    @abstractmethod
    def make(self) -> _Made_co:
        """The memory; see `Memory.create_from_desc`."""


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
    """

    def __init__(self, buffer: object) -> None:
        if buffer is None:
            raise unexpected_null("the buffer", where="Memory", expected="a buffer")
        try:
            view = memoryview(buffer)  # type: ignore[arg-type]  # a non-buffer raises
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
        # Of memory that was mapped here, which `close` gives back; a caller's buffer is left alone.
        self._mapping: mmap.mmap | None = None
        self._external: ExternalMemory | None = None

    @classmethod
    def from_fd(
        cls,
        fd: int,
        size: int,
        protection: int = _READ | _WRITE,
        offset: int = 0,
    ) -> Memory:
        """Map a file.

        Parameters
        ----------
        fd : int
            Descriptor of a file, or of anonymous memory (`os.memfd_create`). It is the caller's
            still, who may close it afterwards.
        size : int
            Bytes to map.
        protection : int
            ``mmap.PROT_READ`` (1), ``mmap.PROT_WRITE`` (2) or both.
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
        access = mmap.ACCESS_WRITE if protection & _WRITE else mmap.ACCESS_READ
        try:
            mapping = mmap.mmap(fd, size + before, access=access, offset=offset - before)
        except (OSError, ValueError) as error:
            raise NnapiError(
                f"the file cannot be mapped: {error}",
                code=ResultCode.UNMAPPABLE,
                where=where,
                actual=f"{size} bytes at {offset}",
            ) from error
        memory = cls(memoryview(mapping)[before : before + size])
        # Kept beside the view, which alone does not say what to unmap.
        memory._mapping = mapping
        return memory

    @classmethod
    def shared(cls, size: int) -> Memory:
        """New memory of zeros, of which other processes can map the file.

        Parameters
        ----------
        size : int
            Bytes.

        Raises
        ------
        NnapiError
            BAD_DATA if the size is below 1; OUT_OF_MEMORY if the system has no more.

        Notes
        -----
        A ``memfd`` of Linux. A process that receives `file_descriptor` maps it with `from_fd`.

        References
        ----------
        NNAPI ``ANeuralNetworksMemory_createFromFd`` with ``ASharedMemory_create``.
        """
        where = "Memory.shared"
        require_data(size > 0, "the size cannot be", where=where, actual=str(size))
        try:
            external = ExternalMemory.shared(size, "armpy-nnapi")
            memory = cls(external.map())
        except (MemoryLimitError, MemoryImportError) as error:
            code = ResultCode.OUT_OF_MEMORY
            raise NnapiError(str(error), code=code, where=where) from error
        memory._external = external
        return memory

    @staticmethod
    def create_from_desc(desc: IMemoryDesc[_Made_co]) -> _Made_co:
        """Make memory for certain inputs and outputs, on the device that has them all.

        Parameters
        ----------
        desc : MemoryDesc
            Finished.

        Returns
        -------
        DescribedMemory
            Without elements. Ordinary memory if no device makes any, its size is known, and none of
            the compilations is for chosen devices (or the one device works in ordinary memory).

        Raises
        ------
        NnapiError
            UNEXPECTED_NULL without a description; BAD_STATE if it is not finished; OP_FAILED if no
            memory can be made.
        """
        where = "Memory.create_from_desc"
        if desc is None:
            raise unexpected_null("the description", where=where)
        check_kind(desc, IMemoryDesc, where, name="MemoryDesc")
        return desc.make()

    @staticmethod
    def copy(source: Memory, destination: Memory) -> None:
        """Copy all elements from one memory to another, each of any kind.

        Raises
        ------
        NnapiError
            UNEXPECTED_NULL without one of them; BAD_DATA if the source has no elements, or the
            destination is for others: of another size, type or dimensions; UNMAPPABLE if it is
            read-only; BAD_STATE if one is closed; OP_FAILED if a device fails, after which the
            destination has no elements.

        Notes
        -----
        Nothing is done if both are the same.
        """
        where = "Memory.copy"
        for memory, role in ((source, "the source"), (destination, "the destination")):
            if memory is None:
                raise unexpected_null(role, where=where)
            check_kind(memory, Memory, where)
        # In front of all other checks, as in NNAPI: there is nothing to copy.
        if source is destination:
            return
        source._check_filled(where)
        with result_codes(where):
            # The destination does it, as it knows what memory it takes; each kind of source gives
            # its bytes.
            destination._fill(source, where)

    @property
    def size(self) -> int:
        """Bytes."""
        return len(self._open_view())

    @property
    def data(self) -> memoryview:
        r"""The bytes themselves, to be read, and to be written if the memory is writable.

        Raises
        ------
        NnapiError
            BAD_STATE if the memory is closed; BAD_DATA if it was made from a description.

        Examples
        --------
        >>> memory = Memory.shared(8)
        >>> memory.data[:4] = b"abcd"
        >>> bytes(memory.data)
        b'abcd\x00\x00\x00\x00'
        """
        return self._open_view()

    @property
    def file_descriptor(self) -> int:
        """Descriptor of open memory made by `shared`; -1 for all other memory."""
        return -1 if self._external is None else self._external.file_descriptor

    @property
    def is_writable(self) -> bool:
        """Return whether outputs can be in it."""
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

    def _bytes(self) -> memoryview:
        return self._open_view()

    def _check_filled(self, where: str) -> None:
        """Check that it has elements, as all memory of an application has."""
        # For its error alone.
        self._open_view()

    def _fill(self, source: Memory, where: str) -> None:
        """Take another memory's elements."""
        view, stored = self._open_view(), source._bytes()
        require_data(
            len(stored) == len(view),
            "the source has another size",
            where=where,
            expected=f"{len(view)} bytes",
            actual=f"{len(stored)} bytes",
        )
        # NNAPI would fail to map it for writing.
        if view.readonly:
            raise NnapiError("the memory is read-only", code=ResultCode.UNMAPPABLE, where=where)
        view[:] = stored

    def close(self) -> None:
        """Forget the memory; what still uses a part of it keeps it until it is done."""
        # The view goes first, since a mapping cannot be closed while views of it exist.
        self._view = self._external = None
        mapping, self._mapping = self._mapping, None
        if mapping is not None:
            # Where regions are in use, the mapping goes with the last of them.
            with contextlib.suppress(BufferError):
                mapping.close()

    def _open_view(self) -> memoryview:
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
