"""Memory of backends as the core sees it: every call is contained."""

from __future__ import annotations

from typing import Any

from armpy.backend import (
    ExternalMemory,
    HostTensorHandleFactory,
    IDeviceMemory,
    ITensorArena,
    ITensorHandle,
    ITensorHandleFactory,
    Lifetime,
    MemorySource,
    Support,
)
from armpy.ops.operation import Array
from armpy.plugins.proxy.guarded_call import ask_backend, ask_method, call_method, read_backend
from armpy.tensor import TensorInfo
from armpy.types import BackendId


class HandleFactoryProxy(ITensorHandleFactory):
    """A backend's tensor handle factory, behind the plugin boundary.

    Parameters
    ----------
    backend_id : str
    factory : ITensorHandleFactory

    Raises
    ------
    BackendError
        If a property raises or is of the wrong type.
    """

    def __init__(self, backend_id: BackendId, factory: ITensorHandleFactory) -> None:
        self._backend_id = backend_id
        self._factory = factory
        # Read once: a property is the backend's code, and could say something else later.
        self._factory_id = read_backend(backend_id, factory, "factory_id", str)
        self._imports = read_backend(backend_id, factory, "import_sources", MemorySource)
        self._exports = read_backend(backend_id, factory, "export_sources", MemorySource)
        kind, host = type(factory), HostTensorHandleFactory
        own = getattr(kind, "import_memory", None)
        # One that inherits from the host's and states other kinds has no way to import those.
        is_hosts = own is host.import_memory and kind.import_sources is not host.import_sources
        self.imports_memory = own is not ITensorHandleFactory.import_memory and not is_hosts
        """Whether it has a way of its own to import memory."""

    @property
    def factory_id(self) -> str:
        """As it was when the network was loaded."""
        return self._factory_id

    @property
    def import_sources(self) -> MemorySource:
        """As they were when the network was loaded."""
        return self._imports

    @property
    def export_sources(self) -> MemorySource:
        """As they were when the network was loaded."""
        return self._exports

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
        """Ask the factory."""
        name = "create_constant_handle"
        return ask_method(self._backend_id, ITensorHandle, self._factory, name, info, elements)

    def can_import(self, info: TensorInfo, memory: ExternalMemory) -> Support:
        """Ask the factory."""
        return ask_method(self._backend_id, Support, self._factory, "can_import", info, memory)

    def import_memory(
        self, info: TensorInfo, memory: ExternalMemory, *, read: bool = True, write: bool = False
    ) -> ITensorHandle:
        """Ask the factory."""

        # Not by `ask_method`, which passes by place what the contract passes by name.
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
    """A backend's arena, behind the plugin boundary.

    Parameters
    ----------
    backend_id : str
    arena : ITensorArena
    """

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
        """Tell the arena."""
        call_method(self._backend_id, self._arena, "release")


class DeviceMemoryProxy(IDeviceMemory):
    """A backend's own buffer, behind the plugin boundary.

    Parameters
    ----------
    backend_id : str
    memory : IDeviceMemory

    Attributes
    ----------
    backend_id : str
    unguarded : IDeviceMemory
        For the backend, which knows its own.
    """

    def __init__(self, backend_id: BackendId, memory: IDeviceMemory) -> None:
        self.backend_id = backend_id
        self.unguarded = memory

    def copy_in_from(self, source: Array) -> None:
        """Tell the buffer."""
        call_method(self.backend_id, self.unguarded, "copy_in_from", source)

    def copy_out_to(self, target: Array) -> None:
        """Ask the buffer."""
        call_method(self.backend_id, self.unguarded, "copy_out_to", target)
