"""Correct devices whose memory is laid out in unusual ways."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Sequence

import numpy as np

from armpy import ops
from armpy.backend import (
    BackendOption,
    HostTensorHandle,
    HostTensorHandleFactory,
    ITensorArena,
    ITensorHandle,
    ITensorHandleFactory,
    Lifetime,
)
from armpy.errors import BackendError
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy_testing.backends.vector_backend import StrictVectors

from ..planted.device import ExampleDeviceBackend, RememberingDevice
from ..planted.shapes import Plain, WithHandles

ROW_BYTES = 64
GUARD_BYTES = 64
_GUARD = 0xA5


class StagedHandle(ITensorHandle):
    """A tensor that the host sees through copies."""

    def __init__(self, info: TensorInfo) -> None:
        self._info = info
        self._staged: list[tuple[Array, bool]] = []
        self.store(np.zeros(info.known_shape, info.data_type.dtype))

    @property
    def info(self) -> TensorInfo:
        return self._info

    @abstractmethod
    def store(self, array: Array) -> None:
        """Write all elements."""

    @abstractmethod
    def load(self) -> Array:
        """Read all elements into a new array."""

    def map(self, *, read: bool = True, write: bool = True) -> Array:
        array = self.load()
        array.flags.writeable = write
        self._staged.append((array, write))
        return array

    def unmap(self) -> None:
        array, is_written = self._staged.pop()
        if is_written:
            self.store(array)


class PaddedHandle(StagedHandle):
    """Each row begins at a multiple of 64 bytes."""

    def store(self, array: Array) -> None:
        rows = array.reshape(-1, array.shape[-1] if array.ndim and array.size else 1)
        pitch = -(-rows.shape[1] * rows.itemsize // ROW_BYTES) * ROW_BYTES
        self._rows = np.full((rows.shape[0], pitch), _GUARD, np.uint8)
        self._num_bytes = rows.shape[1] * rows.itemsize
        self._rows[:, : self._num_bytes] = np.ascontiguousarray(rows).view(np.uint8)

    def load(self) -> Array:
        packed = np.ascontiguousarray(self._rows[:, : self._num_bytes]).reshape(-1)
        return packed.view(self.info.data_type.dtype).reshape(self.info.known_shape).copy()


class _Factory(ITensorHandleFactory):
    """Makes tensors of one class."""

    factory_id = "unusual/own"

    def __init__(self, kind: type[StagedHandle]) -> None:
        self._kind = kind

    def create_tensor_handle(self, info: TensorInfo, memory: Array) -> ITensorHandle:
        return self._kind(info)


def with_handles(kind: type[StagedHandle], operations: Sequence[type]) -> Plain:
    """A backend whose tensors are of a class."""
    return WithHandles(_Factory(kind), operations=operations)


class _GuardedArena(ITensorArena):
    """Places tensors itself, with guard bytes around each."""

    def __init__(self) -> None:
        self._blocks: list[Array] = []

    def create_tensor_handle(
        self, info: TensorInfo, lifetime: Lifetime, offset_bytes: int
    ) -> ITensorHandle:
        block = np.full(info.size_bytes + 2 * GUARD_BYTES, _GUARD, np.uint8)
        self._blocks.append(block)
        inside = block[GUARD_BYTES : GUARD_BYTES + info.size_bytes]
        elements = inside.view(info.data_type.dtype).reshape(info.known_shape)
        return HostTensorHandle(info, elements)

    def release(self) -> None:
        for block in self._blocks:
            guards = (block[:GUARD_BYTES], block[block.size - GUARD_BYTES :])
            if any((guard != _GUARD).any() for guard in guards):
                raise BackendError("something was written beside a tensor", where="arena")
        self._blocks.clear()


class _GuardedFactory(HostTensorHandleFactory):
    """Makes such arenas."""

    @property
    def factory_id(self) -> str:
        return "unusual/guarded"

    def create_arena(self, size_bytes: int) -> ITensorArena | None:
        return _GuardedArena()


def with_guarded_arenas(operations: Sequence[type]) -> Plain:
    """A backend that finds out who writes beside its tensors."""
    return WithHandles(_GuardedFactory(), operations=operations)


class Vectors(StrictVectors):
    """Declares alignment and padding of tensors, and uses both."""

    def __init__(self) -> None:
        super().__init__()
        self._operations = (ops.ElementwiseBinary, ops.Softmax)
        self.seen = deque(maxlen=100)  # type: ignore[assignment]  # so that nothing grows


class MappableDevice(ExampleDeviceBackend):
    """A device whose memory others import and export; it has no options, as it is there already."""

    def __init__(self) -> None:
        super().__init__(RememberingDevice())

    @property
    def options(self) -> Sequence[BackendOption]:
        return ()
