"""Backends that tests put in the place of real ones; their workloads are CpuRef's."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
from armpy_reference import ReferenceBackend
from armpy_reference.factory import ReferenceWorkloadFactory

from armpy.backend import (
    Capabilities,
    Capability,
    DeviceInfo,
    HostTensorHandle,
    HostTensorHandleFactory,
    IBackendContext,
    IBackendInternal,
    ILayerSupport,
    IMemoryManager,
    ITensorHandle,
    ITensorHandleFactory,
    IWorkload,
    IWorkloadFactory,
    NetworkResources,
    OptimizationViews,
    PreparationRequest,
    ReasonCode,
    Substitution,
    Support,
    TensorHandleFactoryRegistry,
    WorkloadInfo,
)
from armpy.execution import Runtime, RuntimeOptions
from armpy.graph import SubgraphView, Value
from armpy.ops import PreCompiled
from armpy.ops.operation import Array, OperandInfos, Operation
from armpy.plugins import BackendRegistry
from armpy.tensor import TensorInfo
from armpy.types import BackendId, DeviceType

Handles = Sequence[ITensorHandle | None]
Outputs = Sequence[ITensorHandle]

Faults = Mapping[str, object]
"""By method: an exception that it raises, or its answer instead of the right one."""


def registry_of(*backends: IBackendInternal) -> BackendRegistry:
    """A registry that has these backends and no others."""
    registry = BackendRegistry()
    for backend in backends:
        registry.register(backend.get_id(), lambda backend=backend: backend)  # type: ignore[misc]
    return registry


def runtime_of(*backends: IBackendInternal, **options: object) -> Runtime:
    """A runtime that prefers these backends in this order and CpuRef last."""
    everything = [*backends, ReferenceBackend()]
    ids = [backend.get_id() for backend in everything]
    chosen = RuntimeOptions(backends=ids, registry=registry_of(*everything))
    return Runtime(replace(chosen, **options))  # type: ignore[arg-type]  # checked at run time


class Faulty:
    """An object whose methods can be made to misbehave."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults

    def answer(self, method: str, right: Callable[[], object]) -> object:
        """The right answer, or the fault of this method."""
        if method not in self.faults:
            return right()
        fault = self.faults[method]
        if isinstance(fault, BaseException):
            raise copy(fault)  # one object would gather the tracebacks of all times
        return fault


class FakeSupport(ILayerSupport, Faulty):
    """Answers as a function does."""

    def __init__(self, answer: Callable[..., Support], faults: Faults | None = None) -> None:
        super().__init__(faults or {})
        self._answer = answer

    def is_layer_supported(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        return self.answer(  # type: ignore[return-value]  # a fault may be of any type
            "is_layer_supported", lambda: self._answer(operation, inputs, outputs)
        )


class Step(NamedTuple):
    """CpuRef's workload of a layer, and its source."""

    right: IWorkload
    operation: Operation
    info: WorkloadInfo


class FunctionWorkload(IWorkload):
    """Executes a function."""

    def __init__(self, function: Callable[[Handles, Outputs], object]) -> None:
        self._function = function

    def execute(self, inputs: Handles, outputs: Outputs) -> None:
        self._function(inputs, outputs)


class FakeFactory(IWorkloadFactory, Faulty):
    """CpuRef's workloads, and one that runs what `CompilingBackend` made.

    `wrap`: makes a workload of each of these.
    """

    def __init__(
        self, faults: Faults | None = None, wrap: Callable[[Step], IWorkload] | None = None
    ) -> None:
        super().__init__(faults or {})
        self._wrap = wrap

    def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        right: Callable[[], IWorkload]
        if isinstance(operation, PreCompiled):
            right = lambda: ProgramWorkload(operation.program)  # noqa: E731
        else:
            right = lambda: ReferenceWorkloadFactory().create_workload(operation, info)  # noqa: E731
        workload = self.answer("create_workload", right)
        if "execute" in self.faults:
            return FunctionWorkload(lambda *_: self.answer("execute", lambda: None))
        if self._wrap is not None and isinstance(workload, IWorkload):
            return self._wrap(Step(workload, operation, info))
        return workload  # type: ignore[return-value]  # a fault may be of any type


class FakeHandleFactory(HostTensorHandleFactory, Faulty):
    """Makes tensors in host memory, or does not."""

    @property
    def factory_id(self) -> str:
        return "test/host"

    def create_tensor_handle(self, info: TensorInfo, memory: Array) -> ITensorHandle:
        return self.answer(  # type: ignore[return-value]  # a fault may be of any type
            "create_tensor_handle",
            lambda: super(FakeHandleFactory, self).create_tensor_handle(info, memory),
        )


def supported(
    backend_id: BackendId,
    operations: Collection[type] | None,
    operation: Operation,
    inputs: OperandInfos,
    outputs: Sequence[TensorInfo],
) -> Support:
    """Whether CpuRef computes a layer, and it is of some operations."""
    if operations is not None and type(operation) not in operations:
        return Support.no(ReasonCode.OPERATION, f"{backend_id} does not do {operation.name}")
    support = ReferenceBackend().get_layer_support(PreparationRequest())
    return support.is_layer_supported(operation, inputs, outputs)


class FakeBackend(IBackendInternal, Faulty):
    """Does some operations as CpuRef does; refuses the others with a reason.

    Other backends override `supports`, `wrap`, `execute` or `handle_factory`.

    `operations`: the operations that it runs; everything if left out.
    `memory_manager`, `context`: made for each network and each runtime.
    `capabilities`: beside weights that change.
    `faults`: how it misbehaves.
    `before_execute`: called by each workload before it executes.
    """

    def __init__(
        self,
        backend_id: BackendId = "Fake",
        operations: Collection[type] | None = None,
        *,
        device_type: DeviceType = DeviceType.ACCELERATOR,
        memory_manager: IMemoryManager | None = None,
        context: IBackendContext | None = None,
        capabilities: Capabilities | None = None,
        faults: Faults | None = None,
        before_execute: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(faults or {})
        self._before_execute = before_execute
        self._backend_id = backend_id
        self._operations = operations
        self._device_type = device_type
        self._memory_manager = memory_manager
        self._context = context
        self._capabilities = {Capability.NON_CONST_WEIGHTS: True, **(capabilities or {})}

    def supports(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        """Whether a layer can be computed."""
        return supported(self._backend_id, self._operations, operation, inputs, outputs)

    def wrap(self, step: Step) -> IWorkload:
        """The workload of a layer: CpuRef's, with its own `bind`, unless `execute` differs."""
        if type(self).execute is FakeBackend.execute and self._before_execute is None:
            return step.right
        return FunctionWorkload(partial(self.execute, step))

    def execute(self, step: Step, inputs: Handles, outputs: Outputs) -> None:
        """Execute a layer."""
        if self._before_execute is not None:
            self._before_execute()
        step.right.execute(inputs, outputs)

    def handle_factory(self, network: NetworkResources) -> ITensorHandleFactory:
        """What makes the tensors of a network."""
        return FakeHandleFactory(self.faults)

    def get_id(self) -> BackendId:
        return self._backend_id

    def get_api_version(self) -> str:
        return "2.8"

    def get_devices(self) -> Sequence[DeviceInfo]:
        devices = (DeviceInfo(device_type=self._device_type),)
        return self.answer("get_devices", lambda: devices)  # type: ignore[return-value]

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        kind = type(self)
        # What a backend makes outlives it, so that none of it refers to a plain one.
        is_plain = kind.wrap is FakeBackend.wrap and kind.execute is FakeBackend.execute
        wrap = None if is_plain and self._before_execute is None else self.wrap
        return self.answer(  # type: ignore[return-value]  # a fault may be of any type
            "create_workload_factory", lambda: FakeFactory(self.faults, wrap)
        )

    def get_layer_support(self, request: PreparationRequest) -> ILayerSupport:
        answer = self.supports
        if type(self).supports is FakeBackend.supports:  # as above
            answer = partial(supported, self._backend_id, self._operations)
        return self.answer(  # type: ignore[return-value]  # a fault may be of any type
            "get_layer_support", lambda: FakeSupport(answer, self.faults)
        )

    def create_memory_manager(self) -> IMemoryManager | None:
        return self.answer(  # type: ignore[return-value]  # a fault may be of any type
            "create_memory_manager", lambda: self._memory_manager
        )

    def create_backend_context(self, options: Mapping[str, object]) -> IBackendContext | None:
        return self.answer(  # type: ignore[return-value]  # a fault may be of any type
            "create_backend_context", lambda: self._context
        )

    def register_tensor_handle_factories(
        self, registry: TensorHandleFactoryRegistry, network: NetworkResources
    ) -> None:
        registry.register_factory(self.handle_factory(network))

    def get_handle_factory_preferences(self) -> Sequence[str]:
        return [self.handle_factory(NetworkResources()).factory_id]

    def get_capabilities(self) -> Capabilities:
        return self._capabilities

    def optimize_subgraph_view(
        self, view: SubgraphView, request: PreparationRequest
    ) -> OptimizationViews:
        return self.answer(  # type: ignore[return-value]  # a fault may be of any type
            "optimize_subgraph_view",
            lambda: super(FakeBackend, self).optimize_subgraph_view(view, request),
        )


class RecordingContext(IBackendContext, Faulty):
    """Records its notifications."""

    def __init__(self, name: str, log: list[tuple[str, str, int]], faults: Faults | None = None):
        super().__init__(faults or {})
        self._name = name
        self._log = log

    def _note(self, event: str, network_id: int) -> None:
        self._log.append((self._name, event, network_id))
        self.answer(event, lambda: None)

    def before_load_network(self, network_id: int) -> None:
        self._note("before_load_network", network_id)

    def after_load_network(self, network_id: int) -> None:
        self._note("after_load_network", network_id)

    def before_unload_network(self, network_id: int) -> None:
        self._note("before_unload_network", network_id)

    def after_unload_network(self, network_id: int) -> None:
        self._note("after_unload_network", network_id)

    def after_enqueue_workload(self, network_id: int) -> None:
        self._note("after_enqueue_workload", network_id)


class CountingManager(IMemoryManager, Faulty):
    """Counts how often its memory is held, now and at most."""

    def __init__(self, faults: Faults | None = None) -> None:
        super().__init__(faults or {})
        self.held = 0
        self.most_held = 0
        self.acquired = 0

    def acquire(self) -> None:
        self.answer("acquire", lambda: None)
        self.held += 1
        self.acquired += 1
        self.most_held = max(self.held, self.most_held)

    def release(self) -> None:
        self.held -= 1
        self.answer("release", lambda: None)


class DeviceTensorHandle(ITensorHandle):
    """A tensor in memory that the host sees through a staging copy only."""

    __slots__ = ("_info", "_staging", "backend_id", "elements")

    def __init__(self, backend_id: BackendId, info: TensorInfo) -> None:
        self.backend_id = backend_id
        self._info = info
        self.elements = np.zeros(info.known_shape, info.data_type.dtype)
        self._staging: Array | None = None

    @property
    def info(self) -> TensorInfo:
        return self._info

    def map(self, *, read: bool = True, write: bool = True) -> Array:
        self._staging = self.elements.copy()
        return self._staging

    def unmap(self) -> None:
        if self._staging is not None:
            self.elements = self._staging
            self._staging = None


class DeviceHandleFactory(ITensorHandleFactory):
    """Makes tensors in a device's memory, which the host cannot read."""

    def __init__(self, backend_id: BackendId) -> None:
        self._backend_id = backend_id

    @property
    def factory_id(self) -> str:
        return f"test/{self._backend_id}"

    def create_tensor_handle(self, info: TensorInfo, memory: Array) -> ITensorHandle:
        return DeviceTensorHandle(self._backend_id, info)


class OwnMemoryBackend(FakeBackend):
    """Has memory of its own: everything that it reads has to be copied there."""

    def execute(self, step: Step, inputs: Handles, outputs: Outputs) -> None:
        constants = step.info.constants
        changing = [h for h, c in zip(inputs, constants, strict=True) if c is None and h]
        for handle in (*changing, *outputs):
            if not isinstance(handle, DeviceTensorHandle) or handle.backend_id != self.get_id():
                raise RuntimeError(f"{handle} is not in the memory of {self.get_id()}")
        step.right.execute(inputs, outputs)
        for handle in (*changing, *outputs):
            handle.unmap()

    def handle_factory(self, network: NetworkResources) -> ITensorHandleFactory:
        return DeviceHandleFactory(self.get_id())


class ProgramWorkload(IWorkload):
    """Runs a subgraph layer by layer in memory of its own."""

    def __init__(self, view: SubgraphView) -> None:
        self._view = view
        factory = ReferenceWorkloadFactory()
        self._steps = []
        for layer in view.layers:
            constants = tuple(None if v is None else v.data for v in layer.inputs)
            info = WorkloadInfo(layer.name, layer.input_infos, layer.output_infos, constants)
            self._steps.append((layer, factory.create_workload(layer.operation, info)))

    def execute(self, inputs: Handles, outputs: Outputs) -> None:
        handles: dict[Value, ITensorHandle | None] = {
            **dict(zip(self._view.inputs, inputs, strict=True)),
            **dict(zip(self._view.outputs, outputs, strict=True)),
        }
        for layer, workload in self._steps:
            targets = [handles.get(v) or _scratch(v) for v in layer.outputs]
            read = [
                None if v is None else (handles[v] if v.data is None else _constant(v))
                for v in layer.inputs
            ]
            workload.execute(read, targets)
            handles.update(zip(layer.outputs, targets, strict=True))


def _scratch(value: Value) -> ITensorHandle:
    """Memory for a value inside a program."""
    array = np.empty(value.info.known_shape, value.info.data_type.dtype)
    return HostTensorHandle(value.info, array)


def _constant(value: Value) -> ITensorHandle:
    """A handle on a constant's elements."""
    assert value.data is not None
    return HostTensorHandle(value.info, value.data)


Divider = Callable[[SubgraphView], OptimizationViews]
"""How a compiling backend answers when it is offered a subgraph."""


def compiled(view: SubgraphView) -> Substitution:
    """One layer in a subgraph's place."""
    shapes = tuple(value.info.known_shape for value in view.outputs)
    return Substitution.by_operation(view, PreCompiled(view, shapes))


class CompilingBackend(FakeBackend):
    """Puts one PreCompiled layer in the place of every subgraph, or what a divider says."""

    def __init__(
        self,
        backend_id: BackendId = "Compiler",
        operations: Collection[type] | None = None,
        *,
        divider: Divider | None = None,
        faults: Faults | None = None,
    ) -> None:
        super().__init__(backend_id, operations, faults=faults)
        self._divider = divider
        self.offered: list[SubgraphView] = []

    def optimize_subgraph_view(
        self, view: SubgraphView, request: PreparationRequest
    ) -> OptimizationViews:
        self.offered.append(view)
        del self.offered[:-50]  # views keep graphs: a backend does not grow with every load
        if self._divider is not None:
            return self._divider(view)
        return OptimizationViews(substitutions=[compiled(view)])
