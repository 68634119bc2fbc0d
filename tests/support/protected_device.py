"""A device whose memory the host must not see: mapping any of it is detected."""

from __future__ import annotations

import itertools

import numpy as np

from armpy.backend import (
    Capabilities,
    Capability,
    ExternalMemory,
    HostTensorHandle,
    ICustomAllocator,
    ITensorArena,
    ITensorHandle,
    ITensorHandleFactory,
    Lifetime,
    MemorySource,
    NetworkResources,
    Support,
)
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy_testing.backends.fake_backends import FakeBackend, Handles, Outputs, Step

PROTECTED = MemorySource.DMA_BUF_PROTECTED


class SecretMemory(ICustomAllocator):
    """An application's protected memory, by numbers that only the device can make sense of."""

    def __init__(self) -> None:
        self.contents: dict[int, Array] = {}
        self._numbers = itertools.count(1_000_000)  # no open files
        self.given = 0

    def new(self, size_bytes: int) -> ExternalMemory:
        """Some of it."""
        number = next(self._numbers)
        self.contents[number] = np.full(size_bytes, 0x7F, np.uint8)
        return ExternalMemory.of_file_descriptor(number, size_bytes, source=PROTECTED)

    def holding(self, elements: Array) -> ExternalMemory:
        """Some of it, with what a trusted camera has written."""
        memory = self.new(elements.nbytes)
        self.contents[memory.file_descriptor][:] = elements.view(np.uint8)
        return memory

    def shown(self, memory: ExternalMemory) -> list[float]:
        """What a trusted screen shows."""
        pixels: list[float] = self.contents[memory.file_descriptor].view(np.float32).tolist()
        return pixels

    def allocate(self, size_bytes: int, alignment_bytes: int) -> Array:
        raise AssertionError("an array of protected memory was asked for")

    def allocate_external(self, size_bytes: int, alignment_bytes: int) -> ExternalMemory:
        self.given += 1
        return self.new(size_bytes)

    def free_external(self, memory: ExternalMemory) -> None:
        self.given -= 1
        del self.contents[memory.file_descriptor]

    @property
    def memory_source(self) -> MemorySource:
        return PROTECTED


class SecretHandle(ITensorHandle):
    """A tensor that only the device sees."""

    def __init__(self, backend: ProtectedDevice, info: TensorInfo, region: Array) -> None:
        self._backend = backend
        self._info = info
        self.secret = region.view(info.data_type.dtype).reshape(info.known_shape)

    @property
    def info(self) -> TensorInfo:
        return self._info

    def _found_out(self) -> AssertionError:
        self._backend.num_maps += 1
        return AssertionError("a protected tensor was mapped")

    def map(self, *, read: bool = True, write: bool = True) -> Array:
        raise self._found_out()

    def copy_in_from(self, source: Array) -> None:
        raise self._found_out()

    def copy_out_to(self, target: Array) -> None:
        raise self._found_out()


class SecretArena(ITensorArena):
    """Protected memory of the application's for one execution at a time."""

    def __init__(self, backend: ProtectedDevice, size: int, allocator: ICustomAllocator) -> None:
        self._backend = backend
        self._allocator = allocator
        self._memory = allocator.allocate_external(size, 64)

    def create_tensor_handle(
        self, info: TensorInfo, lifetime: Lifetime, offset_bytes: int
    ) -> ITensorHandle:
        contents = self._backend.secrets.contents[self._memory.file_descriptor]
        region = contents[offset_bytes : offset_bytes + info.size_bytes]
        return SecretHandle(self._backend, info, region)

    def release(self) -> None:
        self._allocator.free_external(self._memory)


class SecretFactory(ITensorHandleFactory):
    """Makes tensors in protected memory."""

    factory_id = "test/secret"
    import_sources = PROTECTED

    def __init__(self, backend: ProtectedDevice, allocator: ICustomAllocator | None) -> None:
        self._backend = backend
        self._allocator = allocator

    def create_tensor_handle(self, info: TensorInfo, memory: Array) -> ITensorHandle:
        raise AssertionError("a tensor in an arena of the core's")

    def create_arena(self, size_bytes: int) -> ITensorArena | None:
        if self._allocator is None or not self._backend.makes_arenas:
            return None
        return SecretArena(self._backend, size_bytes, self._allocator)

    def can_import(self, info: TensorInfo, memory: ExternalMemory) -> Support:
        return Support.yes()

    def import_memory(
        self, info: TensorInfo, memory: ExternalMemory, *, read: bool = True, write: bool = False
    ) -> ITensorHandle:
        region = self._backend.secrets.contents[memory.file_descriptor]
        return SecretHandle(self._backend, info, region)


class ProtectedDevice(FakeBackend):
    """A backend that can be used in protected mode.

    `operations`: the operations that it runs.
    `secrets`: shared by devices that see the same protected memory.
    `num_maps`: how often a map of a tensor was tried.
    """

    def __init__(
        self,
        backend_id: str = "Npu",
        operations: set[type] | None = None,
        secrets: SecretMemory | None = None,
    ) -> None:
        super().__init__(backend_id, operations)
        self.secrets = secrets or SecretMemory()
        self.num_maps = 0
        self.makes_arenas = True

    def get_capabilities(self) -> Capabilities:
        return {Capability.PROTECTED_CONTENT_ALLOCATION: True, Capability.NON_CONST_WEIGHTS: True}

    def use_custom_memory_allocator(self, allocator: ICustomAllocator) -> bool:
        return True

    def execute(self, step: Step, inputs: Handles, outputs: Outputs) -> None:
        ins = [None if handle is None else _seen(handle) for handle in inputs]
        step.right.execute(ins, [_seen(handle) for handle in outputs])

    def handle_factory(self, network: NetworkResources) -> ITensorHandleFactory:
        return SecretFactory(self, network.allocator)


def _seen(handle: ITensorHandle) -> ITensorHandle:
    """A tensor as the device sees it."""
    return (
        HostTensorHandle(handle.info, handle.secret) if isinstance(handle, SecretHandle) else handle
    )
