"""Backend session: everything that one backend makes for one loaded network."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING

from armpy.backend import (
    NO_OPTIONS,
    Capability,
    DefaultAllocator,
    IBackendModelContext,
    ICustomAllocator,
    ITensorHandle,
    ITensorHandleFactory,
    IWorkloadFactory,
    MemorySource,
    NetworkResources,
    OptionValues,
    ReasonCode,
    has_matching_capability,
)
from armpy.compiler.memory.memory_copies import Factories, handle_factories
from armpy.core.dataclass import dataclass
from armpy.errors import ArmpyError, BackendError
from armpy.execution.memory.allocators import CheckedAllocator
from armpy.execution.memory.shared_memory import SharedMemory
from armpy.execution.setup.contexts import close_context
from armpy.execution.steps.backend_profiling import open_profiling
from armpy.graph import Value
from armpy.ops.operation import Array
from armpy.plugins.proxy.guard import BackendProxy
from armpy.plugins.proxy.guarded_call import failed_support
from armpy.plugins.proxy.memory import HandleFactoryProxy
from armpy.tensor import TensorInfo
from armpy.types import BackendId

if TYPE_CHECKING:
    from armpy.profiling import Profiler


class Constant:
    """A constant's handle, with the elements that it was made of."""

    __slots__ = ("__weakref__", "data", "handle")

    def __init__(self, data: Array, handle: ITensorHandle) -> None:
        self.data = data
        self.handle = handle


class ConstantHandles:
    """A network's constants on one backend, each made once and kept as long as a program has it."""

    def __init__(self) -> None:
        self._known: weakref.WeakValueDictionary[tuple[int, TensorInfo], Constant] = (
            weakref.WeakValueDictionary()
        )

    def get(self, value: Value, factory: ITensorHandleFactory) -> Constant | None:
        """Return a value's constant of a factory, made on first use; None for other values."""
        data = value.data
        if data is None:
            return None
        # Graphs made of one another have other objects on one memory, which the constant keeps.
        key = (data.ctypes.data, value.info)
        known = self._known.get(key)
        if known is None:
            handle = factory.create_constant_handle(value.info, data)
            known = self._known[key] = Constant(data, handle)
        return known


@dataclass(frozen=True, eq=False, slots=True)
class BackendSession:
    """A backend's part in a loaded network."""

    backend_id: BackendId
    workloads: IWorkloadFactory
    factories: Factories  # What makes its tensors, the preferred one first
    allocator: ICustomAllocator  # gives the arenas; checks what it gives
    memory: SharedMemory | None = None  # held during executions of the backend's layers
    keeps_loop_timeout: bool = False  # whether its loops end in time by themselves
    # Closed with the last program of the network, executions under way included.
    model_context: ModelContext | None = None
    constants: ConstantHandles = field(default_factory=ConstantHandles)

    def factory(self, factory_id: str) -> HandleFactoryProxy:
        """The factory of an id; raises BackendError if the backend has none for this network."""
        for factory in self.factories:
            if factory.factory_id == factory_id:
                return factory
        raise BackendError(
            f"the backend has no tensor handle factory '{factory_id}'",
            where=self.backend_id,
            expected=", ".join(factory.factory_id for factory in self.factories),
        )


class ModelContext:
    """Model context of a backend; closed when nothing refers to it any more."""

    __slots__ = ("__weakref__", "close")

    def __init__(self, backend_id: BackendId, context: IBackendModelContext) -> None:
        # Closes it now, unless that has happened.
        self.close = weakref.finalize(self, close_context, backend_id, context)
        self.close.atexit = False  # the runtime's end comes first, and drops it


class SessionError(Exception):
    """A backend could not make what a network needs; caught by callers that can do without it."""

    def __init__(self, backend_id: BackendId, cause: ArmpyError) -> None:
        super().__init__(str(cause))
        self.backend_id = backend_id
        self.answer = failed_support(ReasonCode.DEVICE, str(cause), cause)


class Sessions(dict[BackendId, BackendSession]):
    """Sessions by backend id, each opened when it is first asked for."""

    def __init__(
        self,
        host: BackendSession,  # the core's own
        # Opens that of a backend, or raises `SessionError`.
        open_one: Callable[[BackendId], BackendSession],
    ) -> None:
        super().__init__({host.backend_id: host})
        self._open = open_one

    def close(self) -> None:
        """Close the backends' model contexts now, as no execution can be under way."""
        for session in self.values():
            if session.model_context is not None:
                session.model_context.close()

    def __missing__(self, backend_id: BackendId) -> BackendSession:
        # No lock of its own: making a program holds that of the programs.
        session = self[backend_id] = self._open(backend_id)
        return session


class HandleFactories(Mapping[BackendId, Factories]):
    """Tensor handle factories by backend id; see `Sessions`."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def __getitem__(self, backend_id: BackendId) -> Factories:
        return self._sessions[backend_id].factories

    def __iter__(self) -> Iterator[BackendId]:
        return iter(self._sessions)

    def __len__(self) -> int:
        return len(self._sessions)


def open_session(
    backend: BackendProxy,
    # Checked; None if the caller gave none for this backend.
    model_options: OptionValues | None = None,
    allocator: ICustomAllocator | None = None,  # the application's, if it gave one
    profiler: Profiler | None = None,  # the network's, if it is profiled
    # `input_sources` and `output_sources`: kinds of memory that the network's inputs and outputs
    # are imported from.
    input_sources: MemorySource = MemorySource.UNDEFINED,
    output_sources: MemorySource = MemorySource.UNDEFINED,
    *,
    relaxed: bool = False,  # whether float32 may be computed less exactly
) -> BackendSession:
    """Let a backend make what a loaded network needs.

    Raises ArmpyError if the backend fails or answers against its contract.
    """
    profiling, measured = open_profiling(backend, model_options or NO_OPTIONS, profiler)
    manager = backend.create_memory_manager()
    context = None
    if model_options is not None:
        context = backend.create_backend_specific_model_context(model_options)
    checked = None if allocator is None else CheckedAllocator.of(backend.get_id(), allocator)
    resources = NetworkResources(
        manager,
        model_options or NO_OPTIONS,
        context,
        checked,
        profiling,
        measured,
        input_sources,
        output_sources,
        relaxed,
    )
    if context is None:
        return _session(backend, resources)
    # From here on it is closed, whatever fails below.
    opened = ModelContext(backend.get_id(), context)
    try:
        return replace(_session(backend, resources), model_context=opened)
    except BaseException:
        # Not left to its finaliser, as the error's traceback keeps it.
        opened.close()
        raise


def _session(backend: BackendProxy, resources: NetworkResources) -> BackendSession:
    """Let a backend make its objects from the resources of a network."""
    manager = resources.memory_manager
    workloads = backend.create_workload_factory(resources)
    factories, managers = handle_factories(backend, resources)
    if manager is not None:
        managers = (manager, *managers)
    allocator = resources.allocator
    if allocator is None:
        default = backend.get_default_allocator() or DefaultAllocator()
        allocator = CheckedAllocator.of(backend.get_id(), default)
    memory = None
    if managers:
        is_profiled = resources.profiling is not None
        memory = SharedMemory(backend.get_id(), managers, is_profiled=is_profiled)
    keeps_loop_timeout = has_matching_capability(
        Capability.LOOP_TIMEOUT, True, backend.get_capabilities()
    )
    return BackendSession(
        backend.get_id(), workloads, factories, allocator, memory, keeps_loop_timeout
    )
