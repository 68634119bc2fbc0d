"""A backend of whole vectors: it counts on alignment, and writes past the end of its outputs."""

from __future__ import annotations

import ctypes
from collections.abc import Collection

from armpy.backend import (
    Capabilities,
    Capability,
    DynamicTensorHandle,
    HostTensorHandleFactory,
    ITensorHandleFactory,
    NetworkResources,
)
from armpy.errors import BackendError
from armpy.ops.operation import Array
from armpy_testing.backends.fake_backends import FakeBackend, Handles, Outputs, Step

GARBAGE = 0xEE


class VectorFactory(HostTensorHandleFactory):
    """Declares alignment and padding of tensors in host memory."""

    def __init__(self, alignment_bytes: object = 1, padding_bytes: object = 1) -> None:
        self._alignment_bytes = alignment_bytes
        self._padding_bytes = padding_bytes

    @property
    def factory_id(self) -> str:
        return "test/vectors"

    @property
    def alignment_bytes(self) -> int:
        return self._alignment_bytes  # type: ignore[return-value]  # as a test likes

    @property
    def padding_bytes(self) -> int:
        return self._padding_bytes  # type: ignore[return-value]  # as above


class VectorBackend(FakeBackend):
    """Such a backend.

    `alignment_bytes`, `padding_bytes`: its declarations.
    `operations`: the operations that it runs.
    `seen`: addresses of the tensors of its workloads.
    `misplaced`: those that did not lie as declared.
    """

    def __init__(
        self,
        alignment_bytes: object = 1,
        padding_bytes: object = 1,
        operations: Collection[type] | None = None,
    ) -> None:
        super().__init__("Simd", operations)
        self.factory = VectorFactory(alignment_bytes, padding_bytes)
        self.seen: list[int] = []
        self.misplaced: list[tuple[tuple[int, ...], int]] = []

    def get_capabilities(self) -> Capabilities:
        return {**super().get_capabilities(), Capability.DYNAMIC_OUTPUT_SHAPES: True}

    def execute(self, step: Step, inputs: Handles, outputs: Outputs) -> None:
        for handle in inputs:
            if handle is not None:
                self._look_at(handle.map(write=False))
        for handle in outputs:
            if not isinstance(handle, DynamicTensorHandle):
                self._look_at(handle.map(), is_written=True)
        step.right.execute(inputs, outputs)
        for handle in outputs:
            self._look_at(handle.map(), is_written=True)

    def _look_at(self, array: Array, *, is_written: bool = False) -> None:
        """Check where a tensor lies, and use its padding."""
        self.seen.append(array.ctypes.data)
        if array.nbytes and array.ctypes.data % self.factory.alignment_bytes:
            self.misplaced.append((array.shape, array.ctypes.data))
        padding_bytes = -array.nbytes % self.factory.padding_bytes
        if is_written:
            ctypes.memset(array.ctypes.data + array.nbytes, GARBAGE, padding_bytes)
        else:
            ctypes.string_at(array.ctypes.data, array.nbytes + padding_bytes)

    def handle_factory(self, network: NetworkResources) -> ITensorHandleFactory:
        return self.factory


class _Alarm(list[tuple[tuple[int, ...], int]]):
    """Reports a tensor that does not lie as declared, also from another process."""

    def append(self, found: tuple[tuple[int, ...], int]) -> None:
        raise BackendError(f"a tensor of {found[0]} lies at {found[1]:#x}")


class StrictVectors(VectorBackend):
    """Wants more than a cache line."""

    def __init__(self) -> None:
        super().__init__(512, 128)
        self.misplaced = _Alarm()


class WrongVectors(VectorBackend):
    """Declares requirements that cannot be met."""

    def __init__(self) -> None:
        super().__init__(48)
