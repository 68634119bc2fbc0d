"""A backend of whole vectors: it counts on alignment, and writes behind the end of its outputs."""

from __future__ import annotations

import ctypes
from collections.abc import Collection, Sequence

from armpy.backend import (
    Capabilities,
    Capability,
    DynamicTensorHandle,
    HostTensorHandleFactory,
    ITensorHandle,
    IWorkload,
    IWorkloadFactory,
    NetworkResources,
    TensorHandleFactoryRegistry,
    WorkloadInfo,
)
from armpy.errors import BackendError
from armpy.ops.operation import Array, Operation
from tests.support.fake_backends import FakeBackend

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


class OnVectors(IWorkload):
    """Computes with CpuRef's workload, and uses memory as its factory has declared."""

    def __init__(self, right: IWorkload, backend: VectorBackend) -> None:
        self._right = right
        self._backend = backend

    def execute(
        self, inputs: Sequence[ITensorHandle | None], outputs: Sequence[ITensorHandle]
    ) -> None:
        for handle in inputs:
            if handle is not None:
                self._look_at(handle.map(write=False))
        for handle in outputs:
            if not isinstance(handle, DynamicTensorHandle):
                self._look_at(handle.map(), is_written=True)
        self._right.execute(inputs, outputs)
        for handle in outputs:
            self._look_at(handle.map(), is_written=True)

    def _look_at(self, array: Array, *, is_written: bool = False) -> None:
        """Check where a tensor lies, and use its padding."""
        factory = self._backend.factory
        self._backend.seen.append(array.ctypes.data)
        if array.nbytes and array.ctypes.data % factory.alignment_bytes:
            self._backend.misplaced.append((array.shape, array.ctypes.data))
        behind = -array.nbytes % factory.padding_bytes
        if is_written:
            ctypes.memset(array.ctypes.data + array.nbytes, GARBAGE, behind)
        else:
            ctypes.string_at(array.ctypes.data, array.nbytes + behind)


class OnVectorsFactory(IWorkloadFactory):
    """Makes such workloads."""

    def __init__(self, right: IWorkloadFactory, backend: VectorBackend) -> None:
        self._right = right
        self._backend = backend

    def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        return OnVectors(self._right.create_workload(operation, info), self._backend)


class VectorBackend(FakeBackend):
    """Such a backend.

    `alignment_bytes`, `padding_bytes`: what it declares.
    `operations`: what it does.
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

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        return OnVectorsFactory(super().create_workload_factory(network), self)

    def register_tensor_handle_factories(
        self, registry: TensorHandleFactoryRegistry, network: NetworkResources
    ) -> None:
        registry.register_factory(self.factory)

    def get_handle_factory_preferences(self) -> Sequence[str]:
        return [self.factory.factory_id]


class _Alarm(list[tuple[tuple[int, ...], int]]):
    """Tells of a tensor that does not lie as declared, also from another process."""

    def append(self, found: tuple[tuple[int, ...], int]) -> None:
        raise BackendError(f"a tensor of {found[0]} lies at {found[1]:#x}")


class StrictVectors(VectorBackend):
    """Wants more than a cache line."""

    def __init__(self) -> None:
        super().__init__(512, 128)
        self.misplaced = _Alarm()


class WrongVectors(VectorBackend):
    """Declares what nobody can keep to."""

    def __init__(self) -> None:
        super().__init__(48)
