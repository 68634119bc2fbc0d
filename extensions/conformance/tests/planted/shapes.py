"""Backends of three shapes, which compute as CpuRef does, with places for something wrong.

`Plain` has a workload for each layer. `Fused` makes one program of connected layers, has tensors
in memory of its own, and writes programs into files. `Flow` takes If and While itself. The
simulated device of `device` is the fourth: all of its memory is its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from armpy_reference.factory import ReferenceWorkloadFactory

from armpy.backend import (
    Capabilities,
    Capability,
    HostTensorHandle,
    IBackendInternal,
    IMemoryManager,
    IPrograms,
    ITensorHandle,
    ITensorHandleFactory,
    IWorkload,
    IWorkloadFactory,
    NetworkResources,
    OptimizationViews,
    OptionValues,
    PreparationRequest,
    ProgramCheck,
    ProgramFit,
    SavedProgram,
    Support,
    WorkloadInfo,
    current_timing,
)
from armpy.backend.control_flow import control_flow_time_left_s, loop_timeout_s
from armpy.compiler import specialize
from armpy.errors import ExecutionTimeoutError
from armpy.graph import Graph, Layer, SubgraphView, Value
from armpy.ops import If, PreCompiled, While
from armpy.ops.control_flow import ControlFlow
from armpy.ops.operation import Array, OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy_testing.backends.fake_backends import (
    CountingManager,
    FakeBackend,
    FunctionWorkload,
    Handles,
    Outputs,
    Step,
    compiled,
)


@dataclass
class Call:
    """One layer that is computed, for faults to spoil."""

    operation: Operation
    infos: tuple[TensorInfo | None, ...]  # of its inputs
    inputs: list[Array | None]  # may be replaced before anything is computed
    outputs: list[Array] = field(default_factory=list)
    results: tuple[TensorInfo, ...] = ()  # of its outputs


@dataclass(frozen=True)
class Turn:
    """One run of a graph that belongs to an If or a While."""

    key: int  # the layer
    graph: str  # its graph: ``then``, ``else``, ``condition`` or ``body``
    number: int = 0  # how many runs of this graph came before, in one execution of the layer


class Fault:
    """Nothing wrong; each member is a place where something can be."""

    def operation(self, operation: Operation, how: str) -> Operation:
        """The computation in place of an operation: now, or when it comes from a file."""
        return operation

    def before(self, call: Call) -> None:
        """Spoil the inputs."""

    def after(self, call: Call) -> None:
        """Spoil the results."""

    def scratch(self, key: object, array: Array) -> Array:
        """Where an intermediate result is kept; nowhere that others see."""
        return array.copy()

    def is_true(self, key: object, condition: bool) -> bool:
        """What comes of a condition."""
        return condition

    def carried(self, values: list[Array], results: list[Array]) -> list[Array]:
        """What a turn hands to the next one."""
        return results

    def is_late(self, left_s: float) -> bool:
        """Whether a loop has to stop."""
        return left_s <= 0

    def program(self, view: SubgraphView, values: dict[Value, Array]) -> None:
        """Spoil what a program of several layers has computed."""

    def given(self, turn: Turn, values: list[Array]) -> list[Array]:
        """What a graph of control flow reads."""
        return values

    def made(self, turn: Turn, results: list[Array]) -> list[Array]:
        """What a graph of control flow has computed."""
        return results

    def wrap(self, step: Step) -> IWorkload:
        """What takes the place of a workload."""
        if type(self).execute is Fault.execute:
            return step.right
        return FunctionWorkload(partial(self.execute, step))

    def execute(self, step: Step, inputs: Handles, outputs: Outputs) -> None:
        """Execute a workload."""
        step.right.execute(inputs, outputs)


def spoil(array: Array) -> None:
    """Change the last element."""
    if array.size:
        array.reshape(-1).view(np.uint8)[-1] ^= 0x40


def spoil_tensor(handle: ITensorHandle) -> None:
    """Change the last element of a tensor."""
    spoil(handle.map())
    handle.unmap()


class LayerWorkload(IWorkload):
    """One layer, computed by CpuRef's workload on copies."""

    def __init__(self, fault: Fault, operation: Operation, info: WorkloadInfo, how: str) -> None:
        self._fault = fault
        self._info = info
        self._operation = fault.operation(operation, how)
        self._right = ReferenceWorkloadFactory().create_workload(self._operation, info)

    def execute(self, inputs: Handles, outputs: Outputs) -> None:
        sources = [None if h is None else np.array(h.map(write=False)) for h in inputs]
        for handle in inputs:
            _unmap(handle)
        results = self.compute(sources)
        for handle, array in zip(outputs, results, strict=True):
            target = handle.map(read=False)
            target[...] = array
            handle.unmap()

    def compute(self, given: list[Array | None]) -> list[Array]:
        """The outputs for some inputs."""
        call = Call(self._operation, self._info.inputs, given, results=self._info.outputs)
        constants = self._info.constants
        for index, array in enumerate(call.inputs):
            if array is not None and constants[index] is None:
                call.inputs[index] = self._fault.scratch((id(self), index), array)
        self._fault.before(call)
        infos = self._info.outputs
        call.outputs = [np.empty(i.known_shape, i.data_type.dtype) for i in infos]
        handles = [
            None if a is None or i is None else HostTensorHandle(i, a)
            for i, a in zip(self._info.inputs, call.inputs, strict=True)
        ]
        results = [HostTensorHandle(i, a) for i, a in zip(infos, call.outputs, strict=True)]
        self._right.execute(handles, results)
        self._fault.after(call)
        return call.outputs


def _unmap(handle: ITensorHandle | None) -> None:
    """End what `map` began."""
    if handle is not None:
        handle.unmap()


class _Program:
    """Layers that run one after the other, control flow among them."""

    def __init__(self, fault: Fault, layers: Sequence[Layer], how: str) -> None:
        self._fault = fault
        self._steps = [(layer, _made(fault, layer, how)) for layer in layers]

    def run(self, values: dict[Value, Array]) -> dict[Value, Array]:
        """Compute every layer; its inputs are there already."""
        for layer, step in self._steps:
            operands = [
                None if v is None else (values[v] if v.data is None else v.data)
                for v in layer.inputs
            ]
            values.update(zip(layer.outputs, step.compute(operands), strict=True))
        return values


def _made(fault: Fault, layer: Layer, how: str) -> Any:
    """What computes one layer."""
    if isinstance(layer.operation, ControlFlow):
        return _Flow(fault, layer.operation, how)
    constants = tuple(None if v is None else v.data for v in layer.inputs)
    info = WorkloadInfo(layer.name, layer.input_infos, layer.output_infos, constants)
    return LayerWorkload(fault, layer.operation, info, how)


class _Graph:
    """A graph of an If or a While."""

    def __init__(self, fault: Fault, graph: Graph, how: str) -> None:
        self._graph = specialize(graph)
        self._program = _Program(fault, self._graph.layers, how)

    def run(self, given: Sequence[Array]) -> list[Array]:
        """The outputs for some inputs."""
        values = dict(zip(self._graph.inputs, given, strict=True))
        self._program.run(values)
        return [np.array(values[v] if v.data is None else v.data) for v in self._graph.outputs]


class _Flow:
    """An If or a While."""

    def __init__(self, fault: Fault, operation: ControlFlow, how: str) -> None:
        self._fault = fault
        self._is_loop = isinstance(operation, While)
        self._graphs = [_Graph(fault, graph, how) for _, graph in operation.graphs]  # type: ignore[arg-type]
        self._timeout_s = loop_timeout_s()

    def compute(self, given: list[Array | None]) -> list[Array]:
        """The outputs for some inputs."""
        values = [self._fault.scratch((id(self), n), np.asarray(a)) for n, a in enumerate(given)]
        return self._loop(values) if self._is_loop else self._choose(values)

    def _choose(self, values: list[Array]) -> list[Array]:
        """Run the one graph or the other."""
        is_first = self._fault.is_true(id(self), bool(values[0].reshape(-1)[0]))
        return self._run(0 if is_first else 1, values[1:])

    def _run(self, which: int, values: list[Array], number: int = 0) -> list[Array]:
        """Run one of the graphs."""
        names = ("condition", "body") if self._is_loop else ("then", "else")
        turn = Turn(id(self), names[which], number)
        carried = self._fault.given(turn, values)
        return self._fault.made(turn, self._graphs[which].run(carried))

    def _loop(self, values: list[Array]) -> list[Array]:
        """Run the body again and again."""
        left_s = control_flow_time_left_s(self._timeout_s)
        end_s = time.perf_counter() + left_s
        num_carried, number = len(self._graphs[1]._graph.outputs), 0
        while self._fault.is_true(id(self), bool(self._run(0, values, number)[0].reshape(-1)[0])):
            if self._fault.is_late(end_s - time.perf_counter()):
                raise ExecutionTimeoutError("the loop takes too long")
            results = self._fault.carried(values, self._run(1, values, number))
            values = [*results, *values[num_carried:]]
            number += 1
        return [np.array(value) for value in values[:num_carried]]


class _Whole(IWorkload):
    """A program on tensors of its backend."""

    def __init__(self, fault: Fault, view: SubgraphView, how: str) -> None:
        self._fault = fault
        self._view = view
        self._program = _Program(fault, view.layers, how)

    def execute(self, inputs: Handles, outputs: Outputs) -> None:
        started = time.perf_counter()
        values = {}
        for value, handle in zip(self._view.inputs, inputs, strict=True):
            if handle is not None:
                values[value] = np.array(handle.map(write=False))
                handle.unmap()
        self._program.run(values)
        self._fault.program(self._view, values)
        for value, handle in zip(self._view.outputs, outputs, strict=True):
            handle.map(read=False)[...] = values[value]
            handle.unmap()
        timing = current_timing()
        if timing is not None:
            timing.add_device_time((time.perf_counter() - started) * 1e6)


class Wrapped(IWorkload):
    """Another workload."""

    def __init__(self, right: IWorkload) -> None:
        self._right = right

    def execute(self, inputs: Handles, outputs: Outputs) -> None:
        self._right.execute(inputs, outputs)


class Wraps(Fault):
    """Each workload is wrapped."""

    def __init__(self, kind: Callable[[IWorkload], IWorkload]) -> None:
        self._kind = kind

    def wrap(self, step: Step) -> IWorkload:
        return self._kind(step.right)


def wrapping(kind: Callable[[IWorkload], IWorkload]) -> Callable[[], Fault]:
    """A fault of a class of workloads, each of which wraps a right one."""
    return partial(Wraps, kind)


class Factory(IWorkloadFactory):
    """Makes layers, control flow, and programs."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault

    def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        return self.fault.wrap(Step(self._made(operation, info), operation, info))

    def _made(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        """CpuRef's workload with the fault."""
        if isinstance(operation, PreCompiled):
            is_loaded = isinstance(operation.program, tuple)
            view, how = operation.program if is_loaded else (operation.program, "compiled")
            return _Whole(self.fault, view, how)
        if isinstance(operation, ControlFlow):
            return _FlowWorkload(self.fault, operation)
        return LayerWorkload(self.fault, operation, info, "made")


class _FlowWorkload(IWorkload):
    """An If or a While on tensors of its backend."""

    def __init__(self, fault: Fault, operation: ControlFlow) -> None:
        self._flow = _Flow(fault, operation, "made")

    def execute(self, inputs: Handles, outputs: Outputs) -> None:
        sources = [None if h is None else np.array(h.map(write=False)) for h in inputs]
        for handle in inputs:
            _unmap(handle)
        for handle, array in zip(outputs, self._flow.compute(sources), strict=True):
            handle.map(read=False)[...] = array
            handle.unmap()


class Plain(FakeBackend):
    """A workload for each layer."""

    def __init__(self, fault: Fault | None = None, **named: Any) -> None:
        super().__init__("Planted", **named)
        self.fault = fault or Fault()

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        return Factory(self.fault)


class Flow(Plain):
    """Control flow, too, whose time it says it looks after itself."""

    def get_capabilities(self) -> Capabilities:
        return {**super().get_capabilities(), Capability.LOOP_TIMEOUT: True}

    def supports(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        if isinstance(operation, If | While):
            return Support.yes()
        return super().supports(operation, inputs, outputs)


class OwnHandle(ITensorHandle):
    """A tensor in memory that the host sees a copy of."""

    def __init__(self, info: TensorInfo) -> None:
        self._info = info
        self.elements = np.zeros(info.known_shape, info.data_type.dtype)
        self._staged: list[tuple[Array, bool]] = []

    @property
    def info(self) -> TensorInfo:
        return self._info

    def map(self, *, read: bool = True, write: bool = True) -> Array:
        staging = self.elements.copy()
        self._staged.append((staging, write))
        return staging

    def unmap(self) -> None:
        staging, is_written = self._staged.pop()
        if is_written:
            self.elements[...] = staging


class OwnHandles(ITensorHandleFactory):
    """Makes such tensors."""

    @property
    def factory_id(self) -> str:
        return "Planted/own"

    def create_tensor_handle(self, info: TensorInfo, memory: Array) -> ITensorHandle:
        return OwnHandle(info)


class Programs(IPrograms):
    """Writes numbers of programs, which stay in the process."""

    def __init__(self) -> None:
        self.kept: list[object] = []

    def save(self, program: object, options: OptionValues) -> SavedProgram | None:
        self.kept.append(program)
        about = {"number": len(self.kept) - 1, "maker": "Planted"}
        return SavedProgram(about, {"nothing": np.zeros(3, np.uint8)})

    def check(self, about: Mapping[str, object], options: OptionValues) -> ProgramCheck:
        if about.get("maker") == "Planted":
            return ProgramCheck(ProgramFit.ACCEPTED)
        return ProgramCheck(ProgramFit.FOREIGN, "another maker's program")

    def load(self, saved: SavedProgram) -> object:
        return self.kept[int(str(saved.about["number"]))], "loaded"


class Fused(Plain):
    """Programs of connected layers, memory of its own, and files."""

    def __init__(self, fault: Fault | None = None, **named: Any) -> None:
        super().__init__(fault, **named)
        self.programs = Programs()

    def optimize_subgraph_view(
        self, view: SubgraphView, request: PreparationRequest
    ) -> OptimizationViews:
        return OptimizationViews(substitutions=[compiled(view)])

    def handle_factory(self, network: NetworkResources) -> ITensorHandleFactory:
        return OwnHandles()

    def get_programs(self) -> IPrograms | None:
        return self.programs


class WithHandles(Plain):
    """A handle factory of its own, for all networks."""

    def __init__(self, handles: ITensorHandleFactory, **named: Any) -> None:
        super().__init__(**named)
        self._handles = handles

    def handle_factory(self, network: NetworkResources) -> ITensorHandleFactory:
        return self._handles


class WithManager(Plain):
    """Another instance for each runtime, with memory managers of its own."""

    def for_runtime(self, options: OptionValues) -> IBackendInternal:
        return type(self)(self.fault)

    def create_memory_manager(self) -> IMemoryManager | None:
        return CountingManager()
