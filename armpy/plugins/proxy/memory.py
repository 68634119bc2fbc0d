"""Memory of backends as the core sees it: every call is contained."""

from __future__ import annotations

from typing import Any

from armpy.backend import (
    ALIGNMENT_BYTES,
    MOST_ALIGNMENT_BYTES,
    ExternalMemory,
    HostTensorHandleFactory,
    IDeviceMemory,
    ITensorArena,
    ITensorHandle,
    ITensorHandleFactory,
    Lifetime,
    MemorySource,
    ReasonCode,
    Support,
)
from armpy.backend.memory.memory import empty_tensor, rounded_up
from armpy.errors import BackendError
from armpy.ops.operation import Array
from armpy.plugins.proxy.guarded_call import (
    ask_backend,
    ask_method,
    call_method,
    describe,
    read_backend,
)
from armpy.tensor import TensorInfo
from armpy.types import HOST, BackendId


class HandleFactoryProxy(ITensorHandleFactory):
    """A backend's tensor handle factory, called through the plugin boundary.

    Raises BackendError if a property raises, or is of the wrong type or no number that it can be.
    """

    # Plain attributes in the place of the contract's properties.
    factory_id = ""
    import_sources = export_sources = MemorySource(0)
    alignment_bytes = padding_bytes = 1

    def __init__(self, backend_id: BackendId, factory: ITensorHandleFactory) -> None:
        self._backend_id = backend_id
        self._factory = factory
        # Read once: a property is the backend's code, and could say something else later.
        self.factory_id = read_backend(backend_id, factory, "factory_id", str)
        self.import_sources = read_backend(backend_id, factory, "import_sources", MemorySource)
        self.export_sources = read_backend(backend_id, factory, "export_sources", MemorySource)
        self.alignment_bytes = self._read_multiple("alignment_bytes")
        self.padding_bytes = self._read_multiple("padding_bytes")
        # In an arena, each tensor begins at a multiple of it and has the memory to the next one.
        self.block_bytes = max(ALIGNMENT_BYTES, self.alignment_bytes, self.padding_bytes)
        kind, host = type(factory), HostTensorHandleFactory
        own = getattr(kind, "import_memory", None)
        # One that inherits from the host's and states other kinds has no way to import those.
        is_hosts = own is host.import_memory and kind.import_sources is not host.import_sources
        self.imports_memory = own is not ITensorHandleFactory.import_memory and not is_hosts
        """Whether it has a way of its own to import memory."""
        arena = getattr(kind, "create_arena", None)
        self._has_arenas = arena is not ITensorHandleFactory.create_arena

    def _read_multiple(self, name: str) -> int:
        number = read_backend(self._backend_id, self._factory, name, int)
        is_power = type(number) is int and number.bit_count() == 1
        if not is_power or not 1 <= number <= MOST_ALIGNMENT_BYTES:
            raise BackendError(
                f"the tensor handle factory '{self.factory_id}' declares impossible requirements",
                where=f"{self._backend_id} / {name}",
                expected=f"a power of two from 1 to {MOST_ALIGNMENT_BYTES}",
                actual=describe(number),
                fix="Return 1, the default, if any memory will do",
            )
        return number

    @property
    def takes_any_memory(self) -> bool:
        """Return whether tensors may lie wherever their elements may, as the caller's do."""
        return self.alignment_bytes == self.padding_bytes == 1

    def room_bytes(self, info: TensorInfo) -> int:
        """Bytes that a tensor takes, with its padding."""
        return rounded_up(info.size_bytes, self.padding_bytes)

    def gives_room_for(
        self,
        reader: HandleFactoryProxy,
        *,
        # Whether they lie in memory that it has imported, and not in an arena.
        is_imported: bool = False,
    ) -> bool:
        """Return whether its tensors lie as another factory declares."""
        alignment, padding = self.alignment_bytes, self.padding_bytes
        # Arenas of the core's give every tensor a block; the caller's arrays have no such thing.
        if not self._has_arenas and not is_imported and self._backend_id != HOST:
            alignment = padding = self.block_bytes
        return alignment >= reader.alignment_bytes and padding >= reader.padding_bytes

    def fits(self, array: Array) -> bool:
        """Return whether an array lies as it declares."""
        # First: an array's address takes longer to read than all the rest.
        if self.takes_any_memory:
            return True
        is_long = array.nbytes % self.padding_bytes == 0
        return is_long and array.ctypes.data % self.alignment_bytes == 0

    def empty_tensor(self, info: TensorInfo) -> Array:
        """An array of no elements yet that lies as it declares."""
        return empty_tensor(info, self.alignment_bytes, self.padding_bytes)

    def fitting(self, info: TensorInfo, array: Array) -> Array:
        """An array that lies as it declares: the given one or a copy."""
        if self.fits(array):
            return array
        copied = self.empty_tensor(info)
        copied[...] = array
        return copied

    def create_tensor_handle(self, info: TensorInfo, memory: Array) -> ITensorHandle:
        """Ask the factory."""
        name = "create_tensor_handle"
        return ask_method(self._backend_id, ITensorHandle, self._factory, name, info, memory)

    def create_arena(self, size_bytes: int) -> ITensorArena | None:
        """Ask the factory."""
        kinds: tuple[type[Any], ...] = (ITensorArena, type(None))  # Any: no common name
        arena: ITensorArena | None = ask_method(
            self._backend_id, kinds, self._factory, "create_arena", size_bytes
        )
        return None if arena is None else ArenaProxy(self._backend_id, arena)

    def create_constant_handle(self, info: TensorInfo, elements: Array) -> ITensorHandle:
        """Ask the factory, with elements that lie as it declares."""
        elements = self.fitting(info, elements)
        name = "create_constant_handle"
        return ask_method(self._backend_id, ITensorHandle, self._factory, name, info, elements)

    def can_import(self, info: TensorInfo, memory: ExternalMemory) -> Support:
        """Ask the factory, unless the memory does not lie as it declares."""
        problem = self.problem_of(info, memory)
        if problem:
            return Support.no(ReasonCode.OTHER, problem)
        return ask_method(self._backend_id, Support, self._factory, "can_import", info, memory)

    def problem_of(self, info: TensorInfo, memory: ExternalMemory) -> str:
        """Why memory does not lie as it declares; empty if it does."""
        # A backend's own buffer lies as the backend has made it.
        if memory.source is MemorySource.DEVICE:
            return ""
        start = memory.offset_bytes if memory.array is None else memory.array.ctypes.data
        beyond = start % self.alignment_bytes
        if beyond:
            return (
                f"the memory begins {beyond} bytes after a multiple of {self.alignment_bytes}, "
                f"where '{self.factory_id}' needs it"
            )
        room = self.room_bytes(info)
        # Memory that is too small for the tensor itself is the factory's to refuse.
        if info.size_bytes <= memory.size_bytes < room:
            return (
                f"the memory has {memory.size_bytes} bytes, and '{self.factory_id}' needs {room}: "
                f"the tensor rounded up to a multiple of {self.padding_bytes}"
            )
        return ""

    def import_memory(
        self, info: TensorInfo, memory: ExternalMemory, *, read: bool = True, write: bool = False
    ) -> ITensorHandle:
        """Ask the factory."""

        # Not by `ask_method`, which passes arguments by position that the contract passes by name.
        def import_memory() -> object:
            return self._factory.import_memory(info, memory, read=read, write=write)

        return ask_backend(self._backend_id, ITensorHandle, import_memory)

    def unimport(self, handle: ITensorHandle) -> None:
        """Ask the factory."""
        call_method(self._backend_id, self._factory, "unimport", handle)

    def __eq__(self, other: object) -> bool:
        """Two backends may register one factory."""
        return isinstance(other, HandleFactoryProxy) and other._factory is self._factory

    def __hash__(self) -> int:
        # By identity, as `__eq__` is: the factory's own `__hash__` would be the backend's code.
        return id(self._factory)


class ArenaProxy(ITensorArena):
    """A backend's arena, called through the plugin boundary."""

    def __init__(self, backend_id: BackendId, arena: ITensorArena) -> None:
        self._backend_id = backend_id
        self._arena = arena

    def create_tensor_handle(
        self, info: TensorInfo, lifetime: Lifetime, offset_bytes: int
    ) -> ITensorHandle:
        """Ask the arena."""
        ask = (self._backend_id, ITensorHandle, self._arena, "create_tensor_handle")
        return ask_method(*ask, info, lifetime, offset_bytes)

    def release(self) -> None:
        """Release the backend's arena."""
        call_method(self._backend_id, self._arena, "release")


class DeviceMemoryProxy(IDeviceMemory):
    """A backend's own buffer, called through the plugin boundary."""

    def __init__(self, backend_id: BackendId, memory: IDeviceMemory) -> None:
        self.backend_id = backend_id
        self.unguarded = memory  # for the backend, which knows its own

    def copy_in_from(self, source: Array) -> None:
        """Copy into the backend's buffer."""
        call_method(self.backend_id, self.unguarded, "copy_in_from", source)

    def copy_out_to(self, target: Array) -> None:
        """Ask the buffer."""
        call_method(self.backend_id, self.unguarded, "copy_out_to", target)
