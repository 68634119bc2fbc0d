"""Imported tensors: inputs and outputs in memory that backends use where it lies."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeGuard

import numpy as np

from armpy.backend import ExternalMemory, HostTensorHandle, ITensorHandle, MemorySource
from armpy.errors import ArmpyError, InvalidArgumentError
from armpy.tensor import TensorInfo
from armpy.types import BackendId

if TYPE_CHECKING:
    import numpy.typing as npt

    from armpy.ops.operation import Array
    from armpy.plugins.proxy.memory import HandleFactoryProxy


class Import(NamedTuple):
    """Imported memory, as a backend's tensor handle."""

    factory: HandleFactoryProxy
    handle: ITensorHandle


_BORROWED = SimpleNamespace(owndata=False)
"""What calls ask of an array's flags: the memory belongs to others."""


class ToImport:
    """Memory that stands for an array of a call until it is imported, for that call alone."""

    __slots__ = ("memory", "shape")

    flags = _BORROWED
    """As of an array."""

    def __init__(
        self,
        memory: ExternalMemory,
        shape: tuple[int, ...],  # of the tensor in it
    ) -> None:
        self.memory = memory
        self.shape = shape


class ImportedTensor:
    """An input or output of a model, in memory that its backends use where it lies.

    Made by `armpy.Model.import_inputs` and `import_outputs`, and given in place of an array. It can
    be used any number of times; no other code touches the memory meanwhile.

    Parameters
    ----------
    info : TensorInfo
        Fully shaped.
    imports : mapping of str to Import
        By backend id, the first one first.
    network : object
        The loaded network that it belongs to.

    Attributes
    ----------
    is_kept : bool
        Whether an application holds it; otherwise it is for one call.
    host_array : ndarray or None
        The elements, if all who have imported them use any memory of the host.
    extent : tuple
        Which memory it lies in, and from which byte of it to which.

    Notes
    -----
    Backends end their use of the memory once, when it is closed, dropped, or the model is closed;
    where an execution is under way, when that has come to its end.
    """

    __slots__ = (
        "__weakref__",
        "_end",
        "_imports",
        "_is_closed",
        "_lock",
        "_network",
        "_num_users",
        "extent",
        "host_array",
        "info",
        "is_kept",
        "is_output",
        "memory",
        "name",
    )

    flags = _BORROWED
    """As of an array."""

    def __init__(
        self,
        name: str,
        is_output: bool,
        info: TensorInfo,
        memory: ExternalMemory,
        imports: Mapping[BackendId, Import],
        network: object,
    ) -> None:
        self.name = name
        self.is_output = is_output
        self.is_kept = True
        self.info = info
        self.memory = memory
        self._imports = dict(imports)
        handles = [imported.handle for imported in imports.values()]
        # Exactly this class: a backend's own may have its memory only while it is mapped.
        plain = [handle.array for handle in handles if type(handle) is HostTensorHandle]
        # As an array of the caller's it would be copied where that may lie otherwise.
        is_plain = len(plain) == len(handles) and all(
            imported.factory.takes_any_memory for imported in imports.values()
        )
        self.host_array = plain[0] if is_plain else None
        # With the padding, which its users may write to.
        rooms = [imported.factory.room_bytes(info) for imported in imports.values()]
        self.extent = _extent_of(memory, max(rooms, default=info.size_bytes))
        # Weak: a network ends with the last reference to it, even if its tensors are kept.
        self._network = weakref.ref(network)
        self._num_users = 0
        self._is_closed = False
        self._lock = threading.Lock()
        self._end = weakref.finalize(self, unimport, tuple(self._imports.values()))
        self._end.atexit = False  # the rest of the process is its own

    @property
    def shape(self) -> tuple[int, ...]:
        """Dimensions."""
        return self.info.known_shape

    @property
    def backends(self) -> tuple[BackendId, ...]:
        """Ids of the backends that use the memory where it lies, the first one first."""
        return tuple(self._imports)

    @property
    def factories(self) -> dict[BackendId, HandleFactoryProxy]:
        """The backends' factories that have imported it, by backend id."""
        return {name: imported.factory for name, imported in self._imports.items()}

    def handle(self, backend_id: BackendId) -> ITensorHandle:
        """Return a backend's handle of the memory."""
        return self._imports[backend_id].handle

    @property
    def is_closed(self) -> bool:
        """Return whether it was closed, or its model."""
        return self._is_closed

    def check_use(self, network: object, name: str, *, is_output: bool) -> None:
        """Check that it can be given to a network.

        Raises InvalidArgumentError if it is closed, or was imported for something else.
        """
        where = f"{'output' if is_output else 'input'} '{name}'"
        if self._is_closed:
            raise _closed(where)
        if (self.is_output, self.name) != (is_output, name) or self._network() is not network:
            kind = "output" if self.is_output else "input"
            is_other = self._network() is not network
            raise InvalidArgumentError(
                "the tensor was imported for another use",
                where=where,
                actual=f"{kind} '{self.name}'{' of another model' if is_other else ''}",
            )

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Keep the backends' part while an execution uses it.

        Raises InvalidArgumentError if it is closed.
        """
        with self._lock:
            if self._is_closed:
                raise _closed(f"{'output' if self.is_output else 'input'} '{self.name}'")
            self._num_users += 1
        try:
            yield
        finally:
            with self._lock:
                self._num_users -= 1
                is_last = self._is_closed and not self._num_users
            # Without the lock, as this calls backends.
            if is_last:
                self._end()

    def close(self) -> None:
        """End the backends' use of the memory; it cannot be given any more."""
        with self._lock:
            self._is_closed = True
            is_free = not self._num_users
        if is_free:
            self._end()

    def __enter__(self) -> ImportedTensor:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        """The elements as the host sees them; errors as for `ExternalMemory.map`."""
        elements = np.asarray(self.memory)[: self.info.size_bytes]
        array: Array = elements.view(self.info.data_type.dtype).reshape(self.shape)
        if dtype is not None and array.dtype != dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    def __dlpack__(self, **asked: Any) -> Any:  # Any: what the protocol's versions have
        """The elements for another library, in place."""
        return self.__array__().__dlpack__(**asked)

    def __dlpack_device__(self) -> tuple[Any, Any]:  # Any: as of arrays
        """The processor, as DLPack calls it."""
        return np.empty(0, np.uint8).__dlpack_device__()

    def __repr__(self) -> str:
        kind = "output" if self.is_output else "input"
        where = "closed" if self._is_closed else ", ".join(self._imports)
        return f"ImportedTensor({kind} '{self.name}', {self.info}, {where})"


def stands_for_array(given: object) -> TypeGuard[Array]:
    """Return whether something stands for an array of a call: it is imported, or is to be."""
    return isinstance(given, (ImportedTensor, ToImport))


Extent: TypeAlias = tuple[object, int, int]
"""Which memory something lies in, and from which byte of it to which."""


def overlap(one: object, other: object) -> bool:
    """Return whether two tensors of a call, of which one at least is imported, may share memory."""
    first, second = _extent(one), _extent(other)
    return first[0] == second[0] and first[1] < second[2] and second[1] < first[2]


def _extent(tensor: object) -> Extent:
    """Return where a tensor of a call lies."""
    if isinstance(tensor, ImportedTensor):
        return tensor.extent
    if isinstance(tensor, ToImport):
        return _extent_of(tensor.memory, tensor.memory.size_bytes)
    if isinstance(tensor, np.ndarray):
        begin = tensor.ctypes.data  # of one piece, as all that are used in place
        return MemorySource.MALLOC, begin, begin + tensor.nbytes
    return tensor, 0, 0


def _extent_of(memory: ExternalMemory, size_bytes: int) -> Extent:
    """Return where a tensor in some memory lies."""
    if memory.array is not None:
        begin = memory.array.ctypes.data
        return MemorySource.MALLOC, begin, begin + size_bytes
    if memory.device is not None:
        return memory.device, 0, size_bytes
    try:
        # Two descriptors of one file have the same device and inode.
        status = os.fstat(memory.file_descriptor)
    except OSError:  # it is of a kind of its own
        return memory, 0, size_bytes
    begin = memory.offset_bytes
    return (status.st_dev, status.st_ino), begin, begin + size_bytes


def unimport(imports: tuple[Import, ...]) -> None:
    """End backends' use of memory; errors are only logged."""
    for imported in imports:
        try:
            imported.factory.unimport(imported.handle)
        except ArmpyError as error:
            import logging  # noqa: PLC0415 - seldom needed, and slow to import

            from armpy.core.vlog import wants_traceback  # noqa: PLC0415

            log = logging.getLogger("armpy.execution")
            log.warning("%s", error, exc_info=wants_traceback(log))


def _closed(where: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        "the imported tensor is closed", where=where, fix="Import the memory again"
    )
