"""Memory that backends, applications and processes share."""

from __future__ import annotations

import enum
import os
import stat
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from armpy.core.arguments import MOST_DESCRIPTORS, check_whole
from armpy.core.dataclass import dataclass
from armpy.errors import (
    InvalidArgumentError,
    MemoryImportError,
    MemoryLimitError,
    UnimplementedError,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    from armpy.backend.memory.device_memory import IDeviceMemory
    from armpy.ops.operation import Array


class MemorySource(enum.Flag):
    """Kinds of memory that can be shared; combined with ``|``.

    ``MALLOC`` is memory of the process. ``DMA_BUF``, ``GRALLOC`` and ``SHARED_MEMORY``
    are file descriptors that can be mapped; ``DMA_BUF_PROTECTED`` is one that cannot.
    ``DEVICE`` is what `IBackendInternal.allocate_device_memory` has made, which only
    its backend can use where it lies.
    """

    UNDEFINED = 0
    MALLOC = 1
    DMA_BUF = 2
    DMA_BUF_PROTECTED = 4
    GRALLOC = 8
    SHARED_MEMORY = 16
    DEVICE = 32


@dataclass(frozen=True, eq=False, slots=True)
class ExternalMemory:
    """Memory that armpy does not own and that holds one tensor.

    Raises
    ------
    InvalidArgumentError
        If `source` is not exactly one kind, a number is not a whole number in range, `array` is
        given for another kind than MALLOC or is not contiguous uint8 of shape (size_bytes,), or a
        file descriptor is given for MALLOC or DEVICE, or missing for another kind.

    Notes
    -----
    Elements are in C order and native byte order. A file descriptor is borrowed: duplicate it to
    use it after the call. It is mapped shared (``MAP_SHARED``), readable and writable; the file has
    at least ``offset_bytes + size_bytes``. During an execution only the importer accesses the
    memory; all who map it see the results at its end. The host never maps protected memory.

    Memory that can be mapped is an array of bytes to NumPy and DLPack.

    Examples
    --------
    >>> memory = ExternalMemory.shared(8)
    >>> elements = memory.map().view(np.float32)
    >>> elements[:] = 1, 2
    >>> np.asarray(memory).view(np.float32)
    array([1., 2.], dtype=float32)
    """

    source: MemorySource  # exactly one kind
    size_bytes: int  # size of the tensor
    array: Array | None = None
    """ndarray, uint8, shape (size_bytes,). The bytes of `MemorySource.MALLOC`; None for other
    kinds. Read-only arrays are imported only for reading.
    """
    file_descriptor: int = -1  # -1 for MALLOC and DEVICE
    offset_bytes: int = 0  # where the tensor begins, counted from the beginning of the file
    keep_alive: object = None  # object that has to live as long as the memory is used

    def __post_init__(self) -> None:
        is_one = isinstance(self.source, MemorySource) and self.source.value.bit_count() == 1
        if not is_one:
            raise _unsound("the memory is not of one kind", "a MemorySource", str(self.source))
        for name in ("size_bytes", "offset_bytes"):
            value = check_whole(getattr(self, name), f"ExternalMemory.{name}")
            # The plain number is kept: an object that counts as one could be another number later.
            object.__setattr__(self, name, value)
        # Each may be fine alone, and their sum beyond any address.
        check_whole(self.size_bytes + self.offset_bytes, "ExternalMemory: size and offset")
        descriptor = self.file_descriptor
        where = "ExternalMemory.file_descriptor"
        object.__setattr__(
            self,
            "file_descriptor",
            check_whole(descriptor, where, least=-1, most=MOST_DESCRIPTORS),
        )
        array = self.array
        is_array = self.source is MemorySource.MALLOC
        is_file = not is_array and self.source is not MemorySource.DEVICE
        if (array is not None) != is_array or (self.file_descriptor >= 0) != is_file:
            wanted = "a device"
            if is_array:
                wanted = "an array"
            elif is_file:
                wanted = "a file descriptor"
            kind = "no array" if array is None else "an array"
            actual = f"{kind} and file descriptor {self.file_descriptor}"
            raise _unsound(f"the memory does not fit {self.source}", f"only {wanted}", actual)
        if array is None:
            return
        if not isinstance(array, np.ndarray):
            raise _no_array(array)
        is_bytes = array.dtype == np.uint8 and array.shape == (self.size_bytes,)
        if not is_bytes or not array.flags.c_contiguous:
            wanted = f"contiguous uint8 ({self.size_bytes},)"
            raise _unsound(
                "the bytes are not a plain array", wanted, f"{array.dtype} {array.shape}"
            )

    @classmethod
    def of_array(cls, array: Array) -> ExternalMemory:
        """Memory of the process that an array's elements lie in.

        Parameters
        ----------
        array : ndarray, any dtype and shape, C-contiguous
            Kept alive.

        Raises
        ------
        InvalidArgumentError
            If it is not an array, its elements do not lie side by side, or are Python objects.
        """
        if not isinstance(array, np.ndarray):
            raise _no_array(array)
        if not array.flags.c_contiguous or array.dtype.hasobject:
            raise _unsound(
                "the array's elements do not lie side by side",
                "a C-contiguous array",
                f"{array.dtype} {array.shape} with strides {array.strides}",
            )
        elements = array.reshape(-1).view(np.uint8)
        return cls(MemorySource.MALLOC, array.nbytes, elements, keep_alive=array)

    @classmethod
    def of_file_descriptor(
        cls,
        file_descriptor: int,
        size_bytes: int,
        *,
        offset_bytes: int = 0,
        source: MemorySource = MemorySource.SHARED_MEMORY,
        keep_alive: object = None,
    ) -> ExternalMemory:
        """Wrap the memory of a file descriptor, which stays the caller's.

        Parameters
        ----------
        file_descriptor : int
            Stays open as long as the memory is used.
        source : MemorySource
            Any kind but MALLOC and DEVICE.
        keep_alive : object
            Object that closes the file descriptor when it is freed, if any.

        Raises
        ------
        InvalidArgumentError
            If `file_descriptor` is negative, or `source` is MALLOC or DEVICE.
        """
        return cls(source, size_bytes, None, file_descriptor, offset_bytes, keep_alive)

    @classmethod
    def of_device(cls, device: IDeviceMemory, size_bytes: int) -> ExternalMemory:
        """A backend's own buffer, which that backend imports where it lies.

        Parameters
        ----------
        device : IDeviceMemory
            Memory that the backend made.
        size_bytes : int
            Size of the tensor.
        """
        return cls(MemorySource.DEVICE, size_bytes, keep_alive=device)

    @classmethod
    def shared(cls, size_bytes: int, name: str = "armpy") -> ExternalMemory:
        """Allocate shared memory of zeros, which is freed with its last user.

        Parameters
        ----------
        name : str
            Shown in listings of a process's open files.

        Raises
        ------
        InvalidArgumentError
            If `size_bytes` is not a whole number of 0 or more.
        UnimplementedError
            If the system is not Linux.
        MemoryLimitError
            If the system has no more memory, or the process can have no more descriptors.

        Notes
        -----
        Linux only: it is a ``memfd``. Another process that is sent the file descriptor, or inherits
        it, maps the same memory.
        """
        size_bytes = check_whole(size_bytes, "ExternalMemory.shared: size_bytes")
        if not hasattr(os, "memfd_create"):
            raise UnimplementedError(
                "this system has no anonymous shared memory", where="ExternalMemory.shared"
            )
        # The descriptor is closed with its owner, which the memory keeps alive.
        owner = _Owner()
        try:
            descriptor = os.memfd_create(name)
            # Before the next call that can fail, or the descriptor would stay open.
            weakref.finalize(owner, os.close, descriptor)
            os.ftruncate(descriptor, size_bytes)
        except OSError as error:
            raise MemoryLimitError(
                f"the system gives no shared memory: {error}",
                where="ExternalMemory.shared",
                actual=f"{size_bytes} bytes",
            ) from error
        return cls.of_file_descriptor(descriptor, size_bytes, keep_alive=owner)

    @property
    def device(self) -> IDeviceMemory | None:
        """The backend's own buffer; None for memory of other kinds."""
        from armpy.backend.memory.device_memory import IDeviceMemory  # noqa: PLC0415 - few have any

        return self.keep_alive if isinstance(self.keep_alive, IDeviceMemory) else None

    def map(self, *, read: bool = True, write: bool = True) -> Array:
        """The bytes as the host sees them.

        Parameters
        ----------
        read, write : bool
            Use of the bytes; memory that is not to be written cannot be.

        Returns
        -------
        ndarray, uint8, shape (size_bytes,)
            Keeps what it needs alive, a duplicate of the file descriptor included.

        Raises
        ------
        MemoryImportError
            If the memory is protected or a backend's own, the file is too short or not open as it
            needs to be, or the memory is to be written and cannot be.

        Notes
        -----
        Caches are not synchronised: around accesses to the memory of a device that does not see
        the processor's caches, the caller synchronises (``DMA_BUF_IOCTL_SYNC``).
        """
        if self.source is MemorySource.DMA_BUF_PROTECTED:
            raise _unmappable(self, "protected memory is never mapped by the host")
        if self.source is MemorySource.DEVICE:
            raise _unmappable(self, "a backend's own buffer is copied, and never mapped")
        if self.array is not None:
            if write and not self.array.flags.writeable:
                raise _unmappable(self, "it is read-only")
            return self.array
        return _mapped_file(self, write=write)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        """The bytes as an array, for NumPy."""
        array = self.map(write=self._is_writable)
        if dtype is not None and array.dtype != dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    def __dlpack__(self, **asked: Any) -> Any:  # Any: what the protocol's versions have
        """The bytes for another library, in place."""
        return self.__array__().__dlpack__(**asked)

    def __dlpack_device__(self) -> tuple[Any, Any]:
        """The processor, as DLPack calls it."""
        return np.empty(0, np.uint8).__dlpack_device__()

    @property
    def _is_writable(self) -> bool:
        """Return whether a host mapping may be written; of a file it is tried."""
        return self.array is None or bool(self.array.flags.writeable)


class _Owner:
    """Owns a file descriptor, which is closed with it."""

    # Finalizers refer weakly to their objects.
    __slots__ = ("__weakref__",)


def _mapped_file(memory: ExternalMemory, *, write: bool) -> Array:
    """Map a part of a file, which has to be long enough: reading past its end kills the process."""
    import mmap  # noqa: PLC0415 - few programs share memory

    if memory.size_bytes == 0:  # which cannot be mapped
        return np.empty(0, np.uint8)
    # The kernel maps from page borders alone.
    skipped = memory.offset_bytes % mmap.ALLOCATIONGRANULARITY
    access = mmap.ACCESS_WRITE if write else mmap.ACCESS_READ
    problem = problem_of_file(memory)
    if problem:
        raise _unmappable(memory, problem)
    try:
        mapping = mmap.mmap(
            memory.file_descriptor,
            memory.size_bytes + skipped,
            access=access,
            offset=memory.offset_bytes - skipped,
        )
    except (OSError, ValueError, OverflowError) as error:
        raise _unmappable(memory, str(error)) from error
    # The array keeps the mapping, which goes with its last view.
    return np.frombuffer(mapping, np.uint8, memory.size_bytes, skipped)


def problem_of_file(memory: ExternalMemory) -> str:
    """Why the file of some memory does not have its bytes; empty if it does."""
    try:
        size = _file_size(memory.file_descriptor)
    except OSError as error:
        return str(error)
    return f"the file has {size} bytes" if size < memory.offset_bytes + memory.size_bytes else ""


def _file_size(descriptor: int) -> int:
    """Return the size of a file; that of a DMA buffer is known only by seeking."""
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode):
        return status.st_size
    # Every holder of the descriptor shares the position, so it is put back.
    before = os.lseek(descriptor, 0, os.SEEK_CUR)
    size = os.lseek(descriptor, 0, os.SEEK_END)
    os.lseek(descriptor, before, os.SEEK_SET)
    return size


def _unmappable(memory: ExternalMemory, reason: str) -> MemoryImportError:
    """The error for memory that the host cannot use."""
    return MemoryImportError(
        f"the memory cannot be mapped: {reason}",
        where=str(memory.source),
        expected=f"{memory.size_bytes} bytes from {memory.offset_bytes} on",
    )


def _no_array(argument: object) -> InvalidArgumentError:
    return _unsound("the memory is not an array", "a NumPy array", type(argument).__name__)


def _unsound(failed: str, expected: str, actual: str) -> InvalidArgumentError:
    """Make the error for an invalid description of memory."""
    where = "ExternalMemory"
    return InvalidArgumentError(failed, where=where, expected=expected, actual=actual)
