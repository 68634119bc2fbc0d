"""Devices with memory of their own that can import others', and count copies."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from armpy.backend import (
    ExternalMemory,
    HostTensorHandle,
    ITensorHandle,
    ITensorHandleFactory,
    IWorkloadFactory,
    MemorySource,
    NetworkResources,
    ReasonCode,
    Support,
)
from armpy.errors import MemoryImportError
from armpy.ops import BinaryOperation, ElementwiseBinary
from armpy.ops.operation import Array, OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy_testing.backends.device_memory import DeviceFactory, DeviceHandle, Memory
from armpy_testing.backends.fake_backends import FakeBackend, Handles, Outputs, Step

SHARED = MemorySource.SHARED_MEMORY


class ImportedHandle(DeviceHandle):
    """A tensor in memory that the device has imported."""


class ImportingFactory(DeviceFactory):
    """Imports memory, and records its calls."""

    import_sources = MemorySource.UNDEFINED

    def __init__(self, backend: ImportingDevice) -> None:
        super().__init__(backend.memory, DeviceHandle)
        self._backend = backend
        self.factory_id = f"test/{backend.get_id()}"
        self.import_sources = backend.sources

    def can_import(self, info: TensorInfo, memory: ExternalMemory) -> Support:
        self._backend.asked.append(memory)
        if self._backend.refusal:
            return Support.no(ReasonCode.OTHER, self._backend.refusal)
        return Support.yes()

    def import_memory(
        self, info: TensorInfo, memory: ExternalMemory, *, read: bool = True, write: bool = False
    ) -> ITensorHandle:
        if self._backend.fault is not None:
            raise self._backend.fault
        region = memory.map(write=write)[: info.size_bytes]
        handle = ImportedHandle(self.memory, info, region)
        self._backend.imported.append((handle, read, write))
        return handle

    def unimport(self, handle: ITensorHandle) -> None:
        self._backend.unimported.append(handle)


class ImportingDevice(FakeBackend):
    """A backend with memory of its own.

    `functions`: the functions that it takes.
    `sources`: the memory that it imports.
    `refusal`: why it cannot import anything; empty if it can.
    `fault`: its error on import.
    `imported`: handle, read, and write of all that it has imported.
    """

    def __init__(
        self,
        backend_id: str = "Npu",
        functions: Collection[BinaryOperation] = (BinaryOperation.ADD,),
        sources: MemorySource = SHARED,
    ) -> None:
        super().__init__(backend_id)
        self._functions = functions
        self.sources = sources
        self.memory = Memory()
        self.refusal = ""
        self.fault: Exception | None = None
        self.asked: list[ExternalMemory] = []
        self.imported: list[tuple[ITensorHandle, bool, bool]] = []
        self.unimported: list[ITensorHandle] = []
        self.resources: list[NetworkResources] = []

    def supports(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        if isinstance(operation, ElementwiseBinary) and operation.operation in self._functions:
            return Support.yes()
        return Support.no(ReasonCode.OPERATION, "another function")

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        self.resources.append(network)
        return super().create_workload_factory(network)

    def execute(self, step: Step, inputs: Handles, outputs: Outputs) -> None:
        """Compute on the device's own memory, which is never mapped."""
        ins = [None if handle is None else _seen(handle) for handle in inputs]
        step.right.execute(ins, [_seen(handle) for handle in outputs])

    def handle_factory(self, network: NetworkResources) -> ITensorHandleFactory:
        return ImportingFactory(self)

    @property
    def transfers(self) -> tuple[int, int]:
        """Uploads and downloads since the last time."""
        counts = self.memory.uploads, self.memory.downloads
        self.memory.uploads = self.memory.downloads = 0
        return counts


def _seen(handle: ITensorHandle) -> ITensorHandle:
    """A tensor as the device sees it."""
    if isinstance(handle, DeviceHandle):
        return HostTensorHandle(handle.info, handle.elements)
    return handle


def shared(elements: Array) -> ExternalMemory:
    """Shared memory with some elements."""
    memory = ExternalMemory.shared(elements.nbytes)
    memory.map()[:] = elements.reshape(-1).view(np.uint8)
    return memory


def raising() -> MemoryImportError:
    """What a device may raise that imports nothing after all."""
    return MemoryImportError("the bus is too narrow", where="bus")
