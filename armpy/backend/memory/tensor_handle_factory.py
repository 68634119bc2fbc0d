"""Makes the tensor handles of a backend and says what memory they can share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TypeAlias

from armpy.backend.layer_support import ReasonCode, Support
from armpy.backend.memory.external_memory import ExternalMemory, MemorySource, problem_of_file
from armpy.backend.memory.memory import IMemoryManager, rounded_up
from armpy.backend.memory.tensor_handle import HostTensorHandle, ITensorHandle
from armpy.errors import InvalidArgumentError, MemoryImportError
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo

Lifetime: TypeAlias = tuple[int, int]
"""First and last step at which something is needed, both inclusive."""

HOST_FACTORY_ID = "armpy/host"
"""Id of the factory of handles in plain host memory, which every registry has."""

MOST_ALIGNMENT_BYTES = 4096
"""Most that a factory may declare: a page, which mapped memory is aligned to anyhow."""


class ITensorArena(ABC):
    """A backend's own memory for the tensors of one execution at a time.

    Notes
    -----
    The core plans which tensors are alive together and where each lies. An arena that
    does without the plan, as its device places tensors itself, may go by the lifetimes alone.
    """

    @abstractmethod
    def create_tensor_handle(
        self, info: TensorInfo, lifetime: Lifetime, offset_bytes: int
    ) -> ITensorHandle:
        """Make a handle for a tensor in this arena; called when the arena is made.

        Parameters
        ----------
        info : TensorInfo
            Fully shaped.
        lifetime : (int, int)
            First and last step of the network at which the elements are needed, both inclusive.
            Tensors whose lifetimes share no step may share memory.
        offset_bytes : int
            Where it lies in the arena; a multiple of `ALIGNMENT_BYTES` and of what the factory
            declares. Tensors that live at the same time overlap nowhere, their padding neither, and
            all end within the arena's size.

        Raises
        ------
        ArmpyError
            If there is no memory left; as for `ITensorHandleFactory.create_arena`.
        """

    def release(self) -> None:
        """Release the memory; no handle is used any more. Nothing by default."""
        return


class ITensorHandleFactory(ABC):
    """Makes tensor handles in one kind of memory."""

    @property
    @abstractmethod
    def factory_id(self) -> str:
        """Unique name, ``vendor/name``."""

    @abstractmethod
    def create_tensor_handle(self, info: TensorInfo, memory: Array) -> ITensorHandle:
        """Make a handle for a tensor in working memory planned by the core.

        Parameters
        ----------
        info : TensorInfo
            Fully shaped.
        memory : ndarray, uint8, shape (info.size_bytes rounded up to padding_bytes,)
            Part of the backend's arena, aligned to `ALIGNMENT_BYTES` or `alignment_bytes`,
            whichever is more. A factory with memory of its own may leave it unused.

        Notes
        -----
        The bytes have no type yet. `HostTensorHandleFactory` views them as the tensor; a factory
        that adds to it, such as imports of device memory, is best derived from it.
        """

    def create_arena(self, size_bytes: int) -> ITensorArena | None:
        """Get the backend's own memory for one execution at a time.

        Parameters
        ----------
        size_bytes : int
            The plan's need.

        Returns
        -------
        ITensorArena or None
            Arena for the tensors; None, the default, if the tensors are to lie in an arena of the
            core's in host memory: `create_tensor_handle` makes their handles then.

        Raises
        ------
        ArmpyError
            If there is not as much memory. It is asked again once the backend's arenas that no
            execution uses are released; then the execution fails, or goes to other backends.

        Notes
        -----
        Called by the first execution of a network, again where executions overlap, and
        after the arena was released because it idled. Networks do not share it.
        """
        return None

    def create_constant_handle(self, info: TensorInfo, elements: Array) -> ITensorHandle:
        """Make the handle of a constant that workloads read, once per network.

        Parameters
        ----------
        elements : ndarray, dtype and shape of `info`
            Not to be written to. Aligned and padded as the factory declares.

        Returns
        -------
        ITensorHandle
            Handle of the constant, in host memory by default. A device copies constants to itself
            here.
        """
        return HostTensorHandle(info, elements)

    def can_import(self, info: TensorInfo, memory: ExternalMemory) -> Support:
        """Say whether a tensor can be used in place; no, with the reason, by default.

        Asked only about kinds of memory among `import_sources`, and about memory that is aligned
        and padded as the factory declares.
        """
        return Support.no(ReasonCode.OTHER, f"'{self.factory_id}' imports no memory")

    def import_memory(
        self, info: TensorInfo, memory: ExternalMemory, *, read: bool = True, write: bool = False
    ) -> ITensorHandle:
        """Make a handle for a tensor in external memory.

        Parameters
        ----------
        info : TensorInfo
            Fully shaped.
        read, write : bool
            Accesses by workloads: inputs are read, outputs written.

        Raises
        ------
        MemoryImportError
            If it cannot be imported after all.
        """
        raise MemoryImportError(
            "the memory cannot be imported", where=self.factory_id, actual=str(memory.source)
        )

    def unimport(self, handle: ITensorHandle) -> None:
        """End the use of imported memory; nothing by default."""
        return

    @property
    def import_sources(self) -> MemorySource:
        """Kinds of memory that readers of its handles can use without a copy."""
        return MemorySource.UNDEFINED

    @property
    def export_sources(self) -> MemorySource:
        """Kinds of memory of its handles that others may read without a copy."""
        return MemorySource.UNDEFINED

    @property
    def alignment_bytes(self) -> int:
        """Multiple at which every tensor of the backend's workloads begins.

        A power of two, at most `MOST_ALIGNMENT_BYTES`. 1 by default: tensors of the caller's begin
        wherever their elements may.

        Notes
        -----
        Arenas, constants and imported memory keep to it, and so does memory that applications have
        made for a model. What lies otherwise is copied. Handles in memory of the backend's own
        keep to it as well, as others that read them there may count on it.

        References
        ----------
        NNAPI ``ANeuralNetworksCompilation_getPreferredMemoryAlignmentForInput``.
        """
        return 1

    @property
    def padding_bytes(self) -> int:
        """Multiple to which the memory of every tensor is rounded up.

        A power of two, at most `MOST_ALIGNMENT_BYTES`. 1 by default: the memory ends with the
        tensor.

        Notes
        -----
        Workloads may read the bytes after the tensor's end, and write those after an output's:
        whole vectors can be loaded and stored. Their contents are undefined.
        Kept to as `alignment_bytes` is.

        References
        ----------
        Arm NN ``CapabilityClass::PaddingRequired``; NNAPI
        ``ANeuralNetworksCompilation_getPreferredMemoryPaddingForInput``.
        """
        return 1


class HostTensorHandleFactory(ITensorHandleFactory):
    """Handles in plain host memory."""

    @property
    def factory_id(self) -> str:
        """`HOST_FACTORY_ID`."""
        return HOST_FACTORY_ID

    def create_tensor_handle(self, info: TensorInfo, memory: Array) -> ITensorHandle:
        """A view of the planned memory."""
        elements = memory[: info.size_bytes].view(info.data_type.dtype)
        array = elements.reshape(info.known_shape)
        return HostTensorHandle(info, array)

    def can_import(self, info: TensorInfo, memory: ExternalMemory) -> Support:
        """Check that the host sees the bytes, and that their number and alignment suffice."""
        if memory.array is None and memory.source is not MemorySource.SHARED_MEMORY:
            return Support.no(ReasonCode.OTHER, "the memory is not the process's")
        if memory.size_bytes < info.size_bytes:
            text = f"the memory has {memory.size_bytes} bytes, the tensor {info.size_bytes}"
            return Support.no(ReasonCode.OTHER, text)
        start = memory.offset_bytes if memory.array is None else memory.array.ctypes.data
        # Elements across their alignment would be slow, or end the process in vectorised code.
        if start % info.data_type.dtype.itemsize:
            return Support.no(ReasonCode.OTHER, "the memory is not aligned to whole elements")
        problem = problem_of_file(memory) if memory.array is None else ""
        return Support.no(ReasonCode.OTHER, problem) if problem else Support.yes()

    def import_memory(
        self, info: TensorInfo, memory: ExternalMemory, *, read: bool = True, write: bool = False
    ) -> ITensorHandle:
        """A view of the memory."""
        # Asked once more, as a file may have become shorter since.
        answer = self.can_import(info, memory)
        if not answer:
            raise MemoryImportError(answer.text, where=self.factory_id, expected=str(info))
        elements = memory.map(read=read, write=write)
        room = rounded_up(info.size_bytes, self.padding_bytes)
        return self.create_tensor_handle(info, elements[:room])

    @property
    def import_sources(self) -> MemorySource:
        """Host memory, and what can be mapped."""
        return MemorySource.MALLOC | MemorySource.SHARED_MEMORY

    @property
    def export_sources(self) -> MemorySource:
        """Host memory."""
        return MemorySource.MALLOC


class TensorHandleFactoryRegistry:
    """Factories by id, and the memory managers they need."""

    def __init__(self) -> None:
        host = HostTensorHandleFactory()
        # The host's is always there, so that a backend without memory of its own registers nothing.
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
        # Factories may share a manager, which is to be acquired once.
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


def _check_type(candidate: object, kind: type) -> None:
    """Check what a backend registers."""
    if not isinstance(candidate, kind):
        raise InvalidArgumentError(
            "this cannot be registered", expected=kind.__name__, actual=type(candidate).__name__
        )
