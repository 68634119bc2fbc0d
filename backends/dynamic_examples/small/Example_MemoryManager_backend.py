"""A backend that places tensors by their lifetimes, in memory that it has only while it runs.

References
----------
Arm NN backend developer guide, "The IMemoryManager interface"; Arm NN RefMemoryManager.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.backend import (
    ALIGNMENT_BYTES,
    IBackendInternal,
    IMemoryManager,
    ITensorArena,
    ITensorHandle,
    ITensorHandleFactory,
    Lifetime,
    NetworkResources,
    TensorHandleFactoryRegistry,
)
from armpy.errors import BackendError
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo

from .Example_common import ElementwiseBackend

BACKEND_ID = "ExampleMemoryManager"
FACTORY_ID = "example/managed"


def get_backend_id() -> str:
    """First entry point."""
    return BACKEND_ID


def get_version() -> str:
    """Second entry point."""
    return "2.0"


def backend_factory() -> IBackendInternal:
    """Third entry point."""
    return ManagedBackend(BACKEND_ID)


class Manager(IMemoryManager):
    """Has memory from the first of overlapping executions to the last."""

    def __init__(self) -> None:
        self.is_acquired = False
        self._pools: list[Pool] = []

    def acquire(self) -> None:
        """Get the memory."""
        self.is_acquired = True

    def release(self) -> None:
        """Give the memory back."""
        self.is_acquired = False
        for pool in self._pools:
            pool.memory = None

    def add(self, pool: Pool) -> None:
        """Take charge of a pool."""
        self._pools.append(pool)

    def remove(self, pool: Pool) -> None:
        """Forget a pool."""
        if pool in self._pools:
            self._pools.remove(pool)


class Pool(ITensorArena):
    """The tensors of one execution at a time, placed without the core's plan.

    Attributes
    ----------
    size_bytes : int
        Needed by the tensors, those that are alive together beside each other.
    memory : ndarray of uint8, optional
        None while no execution runs.
    """

    def __init__(self, manager: Manager) -> None:
        self.size_bytes = 0
        self.memory: Array | None = None
        self._manager = manager
        self._placed: list[tuple[Lifetime, int, int]] = []
        manager.add(self)

    def create_tensor_handle(
        self, info: TensorInfo, lifetime: Lifetime, offset_bytes: int
    ) -> ITensorHandle:
        """Place a tensor at the lowest address that no tensor of the same time has."""
        size = -(-info.size_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        start = 0
        for (first, last), begin, end in sorted(self._placed, key=lambda placed: placed[1]):
            is_alive_together = first <= lifetime[1] and lifetime[0] <= last
            if is_alive_together and begin < start + size and start < end:
                start = end
        self._placed.append((lifetime, start, start + size))
        self.size_bytes = max(self.size_bytes, start + size)
        return PoolHandle(self, info, start)

    def release(self) -> None:
        """Nothing is left to be managed."""
        self._manager.remove(self)
        self.memory = None

    def mapped(self, start: int, size: int) -> Array:
        """Some bytes of the memory, which is there while the manager has it.

        Raises
        ------
        BackendError
            If no execution runs.
        """
        if not self._manager.is_acquired:
            raise BackendError("there is no memory between executions", where=FACTORY_ID)
        if self.memory is None:
            self.memory = np.empty(self.size_bytes, np.uint8)
        return self.memory[start : start + size]


class PoolHandle(ITensorHandle):
    """A tensor in a pool.

    Parameters
    ----------
    start : int
        Of its bytes.
    """

    def __init__(self, pool: Pool, info: TensorInfo, start: int) -> None:
        self._pool = pool
        self._info = info
        self._start = start

    @property
    def info(self) -> TensorInfo:
        """Shape, data type and quantisation."""
        return self._info

    def map(self, *, read: bool = True, write: bool = True) -> Array:
        """The elements where they lie; nothing has to be brought, whatever they are for."""
        memory = self._pool.mapped(self._start, self._info.size_bytes)
        return memory.view(self._info.data_type.dtype).reshape(self._info.known_shape)


class PoolFactory(ITensorHandleFactory):
    """Makes pools for one network."""

    def __init__(self, manager: Manager) -> None:
        self._manager = manager

    @property
    def factory_id(self) -> str:
        """One for the backend."""
        return FACTORY_ID

    def create_arena(self, size_bytes: int) -> ITensorArena:
        """A pool; how large it becomes, is seen when its tensors are placed."""
        return Pool(self._manager)

    def create_tensor_handle(self, info: TensorInfo, memory: Array) -> ITensorHandle:
        """A tensor alone, alive all the time."""
        return Pool(self._manager).create_tensor_handle(info, (0, 0), 0)


class ManagedBackend(ElementwiseBackend):
    """Adds tensors in memory of a manager's."""

    def create_memory_manager(self) -> IMemoryManager:
        """One for each network; the core acquires and releases it."""
        return Manager()

    def register_tensor_handle_factories(
        self, registry: TensorHandleFactoryRegistry, network: NetworkResources
    ) -> None:
        """The factory shares the network's manager; one that is only optimised has none."""
        manager = network.memory_manager
        registry.register_factory(
            PoolFactory(manager if isinstance(manager, Manager) else Manager())
        )

    def get_handle_factory_preferences(self) -> Sequence[str]:
        """Its own factory, and no other."""
        return [FACTORY_ID]
