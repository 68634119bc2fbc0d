"""Makes the tensor handles of a backend and says what memory they can share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from armpy.backend.memory import IMemoryManager, MemorySource
from armpy.backend.tensor_handle import HostTensorHandle, ITensorHandle
from armpy.errors import InvalidArgumentError
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo

HOST_FACTORY_ID = "armpy/host"
"""Id of the factory of handles in plain host memory, which every registry has."""


class ITensorHandleFactory(ABC):
    """Makes tensor handles in one kind of memory.

    References
    ----------
    Arm NN ITensorHandleFactory.
    """

    @property
    @abstractmethod
    def factory_id(self) -> str:
        """Unique name, ``vendor/name``."""

    @abstractmethod
    def create_tensor_handle(self, info: TensorInfo, memory: Array) -> ITensorHandle:
        """Make a handle for a tensor in the working memory that the core has planned.

        Parameters
        ----------
        info : TensorInfo
            Fully shaped.
        memory : ndarray, uint8, shape (info.size_bytes,)
            Part of the backend's arena, aligned to `ALIGNMENT_BYTES`. A factory with memory
            of its own may leave it unused.
        """

    @property
    def import_sources(self) -> MemorySource:
        """Kinds of memory that its handles' readers can use without a copy."""
        return MemorySource.UNDEFINED

    @property
    def export_sources(self) -> MemorySource:
        """Kinds of memory that its handles are in and others may read without a copy."""
        return MemorySource.UNDEFINED


class HostTensorHandleFactory(ITensorHandleFactory):
    """Handles in plain host memory, shared with everybody who can use that."""

    @property
    def factory_id(self) -> str:
        """`HOST_FACTORY_ID`."""
        return HOST_FACTORY_ID

    def create_tensor_handle(self, info: TensorInfo, memory: Array) -> ITensorHandle:
        """A view of the planned memory."""
        array = memory.view(info.data_type.dtype).reshape(info.known_shape)
        return HostTensorHandle(info, array)

    @property
    def import_sources(self) -> MemorySource:
        """Host memory."""
        return MemorySource.MALLOC

    @property
    def export_sources(self) -> MemorySource:
        """Host memory."""
        return MemorySource.MALLOC


class TensorHandleFactoryRegistry:
    """Factories by id, and the memory managers they need.

    References
    ----------
    Arm NN TensorHandleFactoryRegistry.
    """

    def __init__(self) -> None:
        host = HostTensorHandleFactory()
        self._factories: dict[str, ITensorHandleFactory] = {host.factory_id: host}
        self._managers: list[IMemoryManager] = []

    def register_factory(self, factory: ITensorHandleFactory) -> None:
        """Add a factory; one whose id is taken is left out, as in Arm NN.

        Raises
        ------
        InvalidArgumentError
            If it is something else.
        """
        _check_type(factory, ITensorHandleFactory)
        self._factories.setdefault(factory.factory_id, factory)

    def register_memory_manager(self, manager: IMemoryManager) -> None:
        """Add a memory manager that is acquired and released around executions.

        Raises
        ------
        InvalidArgumentError
            If it is something else.
        """
        _check_type(manager, IMemoryManager)
        if manager not in self._managers:
            self._managers.append(manager)

    def get_factory(self, factory_id: str) -> ITensorHandleFactory | None:
        """The factory of an id; None if there is none."""
        return self._factories.get(factory_id)

    def first_of(self, preferences: Sequence[str]) -> ITensorHandleFactory:
        """The first preferred factory that is registered; the host's if none is."""
        for factory_id in preferences:
            if factory_id in self._factories:
                return self._factories[factory_id]
        return self._factories[HOST_FACTORY_ID]

    @property
    def memory_managers(self) -> tuple[IMemoryManager, ...]:
        """The managers, in order of registration."""
        return tuple(self._managers)


def _check_type(given: object, kind: type) -> None:
    """Check what a backend registers."""
    if not isinstance(given, kind):
        raise InvalidArgumentError(
            "this cannot be registered", expected=kind.__name__, actual=type(given).__name__
        )
