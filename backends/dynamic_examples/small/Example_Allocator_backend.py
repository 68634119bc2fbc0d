"""A backend whose scratch memory comes from an application's allocator.

References
----------
Arm NN backend developer guide, "The UseCustomMemoryAllocator interface"; Arm NN ClBackend.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from armpy.backend import (
    ALIGNMENT_BYTES,
    DefaultAllocator,
    IBackendInternal,
    ICustomAllocator,
    IWorkload,
    IWorkloadFactory,
    MemorySource,
    NetworkResources,
    WorkloadInfo,
)
from armpy.errors import BackendCapabilityError
from armpy.ops.operation import Operation

from .Example_common import ElementwiseBackend, ElementwiseWorkload, Floats

BACKEND_ID = "ExampleAllocator"


def get_backend_id() -> str:
    """First entry point."""
    return BACKEND_ID


def get_version() -> str:
    """Second entry point."""
    return "2.0"


def backend_factory() -> IBackendInternal:
    """Third entry point."""
    return AllocatorBackend(BACKEND_ID)


class FloatAllocator:
    """The application's allocator in the terms of this backend: arrays of float32, used again."""

    def __init__(self, allocator: ICustomAllocator) -> None:
        self._allocator = allocator
        self._idle: list[Floats] = []

    @contextmanager
    def borrow(self, num_elements: int) -> Iterator[Floats]:
        """Lend an array for a while; executions that overlap get different ones."""
        try:
            array = self._idle.pop()  # all of one workload have one size
        except IndexError:
            array = self._allocate(num_elements)
        yield array
        self._idle.append(array)

    def _allocate(self, num_elements: int) -> Floats:
        """Take memory that goes back when this object goes, with the workload and the network."""
        size_bytes = num_elements * np.dtype(np.float32).itemsize
        memory = self._allocator.allocate(size_bytes, ALIGNMENT_BYTES)
        weakref.finalize(self, self._allocator.free, memory)
        return memory.view(np.float32)


class AllocatingFactory(IWorkloadFactory):
    """Makes workloads with scratch memory."""

    def __init__(self, allocator: ICustomAllocator) -> None:
        self._allocator = allocator

    def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        """An addition in two steps: into scratch memory, and out of it."""
        scratch = FloatAllocator(self._allocator)

        def add_twice(lhs: Floats, rhs: Floats, out: Floats) -> None:
            with scratch.borrow(out.size) as memory, np.errstate(all="ignore"):
                total = memory[: out.size].reshape(out.shape)
                np.add(lhs, rhs, out=total)
                out[...] = total

        return ElementwiseWorkload(add_twice)


class AllocatorBackend(ElementwiseBackend):
    """Adds tensors, with scratch memory of the application's allocator."""

    def use_custom_memory_allocator(self, allocator: ICustomAllocator) -> bool:
        """Any memory that the host can write to; nothing is kept here."""
        if allocator.memory_source is MemorySource.MALLOC:
            return True
        raise BackendCapabilityError("only memory of the host can be used", where=BACKEND_ID)

    def get_default_allocator(self) -> ICustomAllocator:
        """The default without the application's choice, for tensors too."""
        return DefaultAllocator()

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        """The allocator comes with each network, as the next runtime may have another."""
        return AllocatingFactory(network.allocator or self.get_default_allocator())
