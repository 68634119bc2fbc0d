"""An application's allocator as backends see it: its results are checked."""

from __future__ import annotations

import logging
from functools import partial
from typing import TypeVar

import numpy as np

from armpy.backend import DefaultAllocator, ExternalMemory, ICustomAllocator, MemorySource
from armpy.core.vlog import wants_traceback
from armpy.errors import ArmpyError, BackendCapabilityError, BackendError, MemoryLimitError
from armpy.execution.memory import idle_release
from armpy.ops.operation import Array
from armpy.plugins.proxy.error_attribution import blamed
from armpy.plugins.proxy.guarded_call import ask_method, call_method, read_backend
from armpy.types import BackendId

_log = logging.getLogger("armpy.execution")

T = TypeVar("T")


class CheckedAllocator(ICustomAllocator):
    """Another allocator, inside the plugin boundary.

    Raises BackendError if it does not say what its memory is; from `allocate` and
    `allocate_external`, if it raises or gives something else, which goes back; MemoryLimitError
    from the two, if it has no memory, which it says by MemoryError.
    """

    def __init__(
        self,
        where: str,  # what errors name beside the method
        allocator: ICustomAllocator,
        # Whose idle memory is given back if there is no more; may be empty.
        backend_id: BackendId = "",
    ) -> None:
        self._where = where
        self._backend_id = backend_id
        self._allocator = allocator
        # Read once, as programs rely on its staying the same.
        self._source = read_backend(where, allocator, "memory_source", MemorySource)

    @classmethod
    def of(cls, backend_id: BackendId, allocator: ICustomAllocator) -> CheckedAllocator:
        """A backend's allocator, whosever it is."""
        return cls(f"{backend_id}'s allocator", allocator, backend_id)

    @property
    def memory_source(self) -> MemorySource:
        """As it was when the network was loaded."""
        return self._source

    @property
    def unchecked(self) -> ICustomAllocator:
        """The other allocator."""
        return self._allocator

    def allocate(self, size_bytes: int, alignment_bytes: int) -> Array:
        """Writable memory that begins at a multiple of `alignment_bytes`."""
        memory: Array = self._ask(np.ndarray, "allocate", size_bytes, alignment_bytes)
        fits = memory.dtype == np.uint8 and memory.shape == (size_bytes,)
        is_usable = fits and memory.flags.c_contiguous and memory.flags.writeable
        # An array without bytes may have any address.
        if not is_usable or (size_bytes and memory.ctypes.data % alignment_bytes):
            self.free(memory)
            raise BackendError(
                "the allocator's memory cannot be used",
                where=f"{self._where} / allocate",
                expected=f"writable uint8 ({size_bytes},) aligned to {alignment_bytes} bytes",
                actual=f"{memory.dtype} {memory.shape} at {memory.ctypes.data:#x}",
            )
        return memory

    def free(self, memory: Array) -> None:
        """Give memory back; errors are only logged."""
        self._give_back("free", memory)

    def allocate_external(self, size_bytes: int, alignment_bytes: int) -> ExternalMemory:
        """Memory of the allocator's kind that the host need not see."""
        memory = self._ask(ExternalMemory, "allocate_external", size_bytes, alignment_bytes)
        start = memory.offset_bytes if memory.array is None else memory.array.ctypes.data
        is_usable = memory.size_bytes == size_bytes and memory.source is self._source
        if not is_usable or (size_bytes and start % alignment_bytes):
            self.free_external(memory)
            raise BackendError(
                "the allocator's memory cannot be used",
                where=f"{self._where} / allocate_external",
                expected=f"{size_bytes} bytes of {self._source}, aligned to {alignment_bytes}",
                actual=f"{memory.size_bytes} bytes of {memory.source} from {start:#x} on",
            )
        return memory

    def free_external(self, memory: ExternalMemory) -> None:
        """Give memory back; errors are only logged."""
        self._give_back("free_external", memory)

    def _ask(self, kind: type[T], method: str, size_bytes: int, alignment_bytes: int) -> T:
        """Ask for memory, and again when others have released their idle memory."""
        ask = partial(
            ask_method, self._where, kind, self._allocator, method, size_bytes, alignment_bytes
        )
        try:
            try:
                return ask()
            except ArmpyError as error:
                if not self._backend_id or not idle_release.watchdog.reclaim(self._backend_id):
                    raise
                _log.debug("%s; idle memory was given back for it", error)
            return ask()
        except ArmpyError as error:
            # The boundary to backends has wrapped the allocator's error.
            if not isinstance(error.__cause__, MemoryError):
                raise
            text = "the allocator has no memory for this"
            limit = MemoryLimitError(text, where=error.where, actual=str(error.__cause__))
            raise blamed(self._backend_id, limit, is_memory=True) from error.__cause__

    def _give_back(self, method: str, memory: object) -> None:
        """Call one of the two methods that take memory back."""
        try:
            call_method(self._where, self._allocator, method, memory)
        except ArmpyError as error:
            _log.warning("%s", error, exc_info=wants_traceback(_log))


def pooled_source(allocator: ICustomAllocator) -> object:
    """Key that distinguishes allocators whose memory cannot stand for each other's."""
    if isinstance(allocator, CheckedAllocator):
        allocator = allocator.unchecked
    # Exactly this class: a subclass may have its memory from elsewhere.
    return DefaultAllocator if type(allocator) is DefaultAllocator else allocator


class UnseenAllocator(ICustomAllocator):
    """Gives nothing, as whatever the core has could be seen by the host."""

    def allocate(self, size_bytes: int, alignment_bytes: int) -> Array:
        """Refuse; raises BackendCapabilityError."""
        raise BackendCapabilityError(
            "in protected mode, no tensor lies in memory that the core has",
            expected="a tensor handle factory that makes arenas (create_arena)",
        )
