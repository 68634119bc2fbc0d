"""A backend that uses the whole contract, and whose every member can be made to fail."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from armpy_reference.factory import ReferenceWorkloadFactory

from armpy.backend import (
    ALIGNMENT_BYTES,
    BackendOption,
    Capabilities,
    Capability,
    DefaultAllocator,
    DeviceInfo,
    ExternalMemory,
    IBackendCache,
    IBackendContext,
    IBackendInternal,
    IBackendModelContext,
    IBackendProfiling,
    IBackendProfilingContext,
    ICompletion,
    ICustomAllocator,
    IDeviceMemory,
    ILayerSupport,
    IMemoryManager,
    IMemoryOptimizerStrategy,
    IPrograms,
    IResizableProgram,
    ITensorArena,
    ITensorHandle,
    ITensorHandleFactory,
    IWorkload,
    IWorkloadFactory,
    Lifetime,
    MemBin,
    MemBlock,
    MemorySource,
    NetworkResources,
    OptionScope,
    OptionValues,
    PackingType,
    PreparationRequest,
    ReasonCode,
    Support,
    TensorHandleFactoryRegistry,
    WorkloadInfo,
)
from armpy.ops import ElementwiseBinary
from armpy.ops.operation import Array, OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import BackendId, DeviceType
from armpy_testing.backends.fake_backends import Handles, Outputs

T = TypeVar("T")

CONTRACT = (
    IBackendInternal,
    ILayerSupport,
    IWorkloadFactory,
    IWorkload,
    ICompletion,
    IMemoryManager,
    IBackendContext,
    IBackendModelContext,
    ITensorHandleFactory,
    ITensorArena,
    ITensorHandle,
    IDeviceMemory,
    ICustomAllocator,
    IBackendProfilingContext,
    IBackendCache,
    IMemoryOptimizerStrategy,
    IResizableProgram,
    IPrograms,
)
"""Every interface that a plugin implements and the core calls."""

RAISED = (Exception, SystemExit)
"""What a plugin's method can raise."""


class Unspeakable:
    """An answer of no use, which cannot even be shown."""

    def __repr__(self) -> str:
        raise SystemExit("no repr")


ANSWERED = (None, "wrong", Unspeakable())
"""What a plugin's method can answer in place of the right thing."""


def members(kind: type) -> list[str]:
    """The public members of an interface."""
    return [name for name in vars(kind) if not name.startswith("_")]


class Sabotage:
    """One member of one interface that fails while it is active.

    `fault`: an exception's class to raise, or an answer.
    """

    def __init__(self, kind: type, member: str, fault: object) -> None:
        self.kind = kind
        self.member = member
        self.fault = fault
        self.active = False
        self.hits = 0

    def of(self, right: type[T]) -> type[T]:
        """A class with the member sabotaged, if it is of the sabotaged interface."""
        if not issubclass(right, self.kind):
            return right
        member = inspect.getattr_static(right, self.member)

        def broken(this: T, *args: object, **named: object) -> object:
            if self.active:
                self.hits += 1
                if isinstance(self.fault, type) and issubclass(self.fault, BaseException):
                    raise self.fault("sabotage")
                return self.fault
            if isinstance(member, property):
                assert member.fget is not None
                return member.fget(this)
            return member(this, *args, **named) if callable(member) else member

        is_method = inspect.isfunction(member)
        return type(
            right.__name__, (right,), {self.member: broken if is_method else property(broken)}
        )


class _Support(ILayerSupport):
    """Element-wise operations only."""

    def is_layer_supported(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        if isinstance(operation, ElementwiseBinary):
            return Support.yes()
        return Support.no(ReasonCode.OPERATION, "not element-wise")


class _Handle(ITensorHandle):
    """A tensor in memory of its own."""

    def __init__(self, info: TensorInfo) -> None:
        self._info = info
        self.elements = np.zeros(info.known_shape, info.data_type.dtype)

    @property
    def info(self) -> TensorInfo:
        return self._info

    def map(self, *, read: bool = True, write: bool = True) -> Array:
        return self.elements

    def unmap(self) -> None:
        return

    def copy_in_from(self, source: Array) -> None:
        self.elements[...] = source

    def copy_out_to(self, target: Array) -> None:
        target[...] = self.elements


class _Arena(ITensorArena):
    """Places nothing, as each tensor has memory of its own."""

    def __init__(self, handle: type[_Handle]) -> None:
        self._handle = handle

    def create_tensor_handle(
        self, info: TensorInfo, lifetime: Lifetime, offset_bytes: int
    ) -> ITensorHandle:
        return self._handle(info)


class _Handles(ITensorHandleFactory):
    """Makes tensors that no other backend can use, and uses memory that is shared."""

    def __init__(self, handle: type[_Handle], arena: type[_Arena] | None) -> None:
        self._handle = handle
        self._arena = arena

    def create_arena(self, size_bytes: int) -> ITensorArena | None:
        return None if self._arena is None else self._arena(self._handle)

    @property
    def factory_id(self) -> str:
        return "test/full"

    def create_tensor_handle(self, info: TensorInfo, memory: Array) -> ITensorHandle:
        return self._handle(info)

    def can_import(self, info: TensorInfo, memory: ExternalMemory) -> Support:
        return Support.yes()

    def import_memory(
        self, info: TensorInfo, memory: ExternalMemory, *, read: bool = True, write: bool = False
    ) -> ITensorHandle:
        handle = self._handle(info)
        handle.elements = memory.map().view(info.data_type.dtype).reshape(info.known_shape)
        return handle

    def unimport(self, handle: ITensorHandle) -> None:
        return

    @property
    def import_sources(self) -> MemorySource:
        return MemorySource.SHARED_MEMORY


class _Workload(IWorkload):
    """CpuRef's, on the backend's tensors."""

    def __init__(self, right: IWorkload, completion: type[ICompletion]) -> None:
        self._right = right
        self._completion = completion

    def execute(self, inputs: Handles, outputs: Outputs) -> None:
        self._right.execute(inputs, outputs)

    def enqueue(self, inputs: Handles, outputs: Outputs) -> ICompletion | None:
        self.execute(inputs, outputs)
        return self._completion()


class _Completion(ICompletion):
    """Of the actions."""

    def wait(self, timeout_s: float | None = None) -> bool:
        return True


class _Workloads(IWorkloadFactory):
    """Makes CpuRef's workloads."""

    def __init__(self, workload: type[_Workload], completion: type[ICompletion]) -> None:
        self._workload = workload
        self._completion = completion

    def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        return self._workload(
            ReferenceWorkloadFactory().create_workload(operation, info), self._completion
        )


class _Manager(IMemoryManager):
    """Has nothing to hold."""

    def acquire(self) -> None:
        return

    def release(self) -> None:
        return


class _ProfilingContext(IBackendProfilingContext):
    """Measures one thing."""

    def take_measurements(self) -> Mapping[str, float]:
        return {"kernel": 1.5}


class CustomAllocator(DefaultAllocator):
    """An application's allocator."""

    def free(self, memory: Array) -> None:
        return


class CustomStrategy(IMemoryOptimizerStrategy):
    """An application's memory strategy: each block has a place of its own."""

    @property
    def name(self) -> str:
        return "Custom"

    @property
    def packing_type(self) -> PackingType:
        return PackingType.MULTI_AXIS

    def optimize(self, blocks: Sequence[MemBlock]) -> list[MemBin]:
        placed, end = [], 0
        for block in blocks:
            placed.append(replace(block, offset=end))
            end += -(-block.size_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        return [MemBin(tuple(placed), end)] if placed else []


class FullBackend(IBackendInternal):
    """Overrides every member of `IBackendInternal` and makes every kind of object."""

    sabotage: Sabotage

    def _of(self, kind: type[T]) -> type[T]:
        return self.sabotage.of(kind)

    def get_id(self) -> BackendId:
        return "Full"

    def get_api_version(self) -> str:
        return "2.8"

    def get_devices(self) -> Sequence[DeviceInfo]:
        return (DeviceInfo(device_type=DeviceType.ACCELERATOR),)

    @property
    def options(self) -> Sequence[BackendOption]:
        return (
            BackendOption("depth", 1, "How deep.", minimum=0),
            BackendOption("fast", False, "Whether fast.", OptionScope.MODEL),
        )

    def get_capabilities(self) -> Capabilities:
        return {Capability.MULTI_AXIS_PACKING: True, Capability.NON_CONST_WEIGHTS: True}

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        return self._of(_Workloads)(self._of(_Workload), self._of(_Completion))

    def get_layer_support(self, request: PreparationRequest) -> ILayerSupport:
        return self._of(_Support)()

    def create_memory_manager(self) -> IMemoryManager | None:
        return self._of(_Manager)()

    def create_backend_context(self, options: OptionValues) -> IBackendContext | None:
        return self._of(IBackendContext)()

    def create_backend_specific_model_context(
        self, model_options: OptionValues
    ) -> IBackendModelContext | None:
        return self._of(IBackendModelContext)()

    def create_backend_profiling_context(
        self, options: OptionValues, profiling: IBackendProfiling
    ) -> IBackendProfilingContext | None:
        return self._of(_ProfilingContext)()

    def register_tensor_handle_factories(
        self, registry: TensorHandleFactoryRegistry, network: NetworkResources
    ) -> None:
        without: set[tuple[type, str]] = {
            (ICustomAllocator, "allocate"),
            (ICustomAllocator, "free"),
            (ITensorHandleFactory, "create_tensor_handle"),
        }
        failing = (getattr(self.sabotage, "kind", None), getattr(self.sabotage, "member", None))
        arena = None if failing in without else self._of(_Arena)  # as then the core has one
        registry.register_factory(self._of(_Handles)(self._of(_Handle), arena))

    def get_handle_factory_preferences(self) -> Sequence[str]:
        return ["test/full"]

    def use_custom_memory_allocator(self, allocator: ICustomAllocator) -> bool:
        return True

    def get_default_allocator(self) -> ICustomAllocator | None:
        return self._of(CustomAllocator)()


def full_backend(sabotage: Sabotage) -> FullBackend:
    """The backend with a member of itself, or of its objects, sabotaged."""
    attributes: dict[str, Any] = {"sabotage": sabotage}  # Any: a class's namespace
    base = sabotage.of(FullBackend)
    backend: FullBackend = type("FullBackend", (base,), attributes)()
    return backend
