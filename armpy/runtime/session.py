"""Everything that one backend makes for one loaded network."""

from __future__ import annotations

from armpy.backend import (
    DefaultAllocator,
    IBackendModelContext,
    ICustomAllocator,
    ITensorHandleFactory,
    IWorkloadFactory,
    OptionValues,
)
from armpy.optimizer.bridge import choose_handle_factory
from armpy.plugins.guard import GuardedBackend
from armpy.records import dataclass
from armpy.runtime.shared_memory import SharedMemory
from armpy.types import BackendId


@dataclass(frozen=True, eq=False, slots=True)
class BackendSession:
    """A backend's part in a loaded network.

    Parameters
    ----------
    backend_id : str
    workloads : IWorkloadFactory
    handles : ITensorHandleFactory
    allocator : ICustomAllocator
        Gives the arenas.
    memory : SharedMemory or None
        Held during executions of the backend's layers.
    model_context : IBackendModelContext or None
        Kept alive for the backend.
    """

    backend_id: BackendId
    workloads: IWorkloadFactory
    handles: ITensorHandleFactory
    allocator: ICustomAllocator
    memory: SharedMemory | None = None
    model_context: IBackendModelContext | None = None


def open_session(
    backend: GuardedBackend,
    model_options: OptionValues | None = None,
    allocator: ICustomAllocator | None = None,
) -> BackendSession:
    """Let a backend make what a loaded network needs.

    Parameters
    ----------
    model_options : mapping of str to value, optional
        Checked; None if the caller gave none for this backend.
    allocator : ICustomAllocator, optional
        The application's, if it gave one.

    Raises
    ------
    ArmpyError
        If the backend fails or answers against its contract.
    """
    manager = backend.create_memory_manager()
    context = None
    if model_options is None:
        workloads = backend.create_workload_factory(manager)
    else:
        context = backend.create_backend_model_context(model_options)
        workloads = backend.create_workload_factory_with_options(manager, model_options)
    handles, managers = choose_handle_factory(backend)
    if manager is not None:
        managers = (manager, *managers)
    allocator = allocator or backend.get_default_allocator() or DefaultAllocator()
    memory = SharedMemory(backend.backend_id, managers) if managers else None
    return BackendSession(backend.backend_id, workloads, handles, allocator, memory, context)
