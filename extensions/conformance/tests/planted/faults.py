"""Backends of three shapes, and the faults that are planted in them, class by class.

`Plain` has a workload for each layer. `Fused` makes one program of connected layers, has tensors
in memory of its own, and writes programs into files. `Flow` takes If and While itself.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any  # what faults remember, whatever it is

import numpy as np
from armpy_reference.factory import ReferenceWorkloadFactory

from armpy.backend import (
    BackendOption,
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
    OptionScope,
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
from armpy.execution import RuntimeOptions
from armpy.graph import Graph, Layer, SubgraphView, Value
from armpy.ops import If, PreCompiled, While
from armpy.ops.control_flow import ControlFlow
from armpy.ops.operation import Array, OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy_conformance.backend_under_test import BackendUnderTest
from armpy_testing.backends.fake_backends import (
    CountingManager,
    FakeBackend,
    FunctionWorkload,
    Handles,
    Outputs,
    Step,
    compiled,
    registry_of,
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


class _Layer(IWorkload):
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
    return _Layer(fault, layer.operation, info, how)


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
        return _Layer(self.fault, operation, info, "made")


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


HONEST: dict[str, Callable[[], IBackendInternal]] = {"plain": Plain, "fused": Fused, "flow": Flow}
"""What faults are planted in."""


# --- Control flow


class AlwaysThen(Fault):
    """The first graph, whatever the condition is: of choices only."""

    def is_true(self, key: object, condition: bool) -> bool:
        return True


class FirstDecision(Fault):
    """The decision of the first execution."""

    def __init__(self) -> None:
        self._kept: dict[object, bool] = {}

    def is_true(self, key: object, condition: bool) -> bool:
        return self._kept.setdefault(key, condition)


class Overwrites(Fault):
    """Each carried value is written where the next one is read from."""

    def carried(self, values: list[Array], results: list[Array]) -> list[Array]:
        carried_on: list[Array] = []
        for number, result in enumerate(results):
            same = [n for n, value in enumerate(values) if n < number and _equal(value, result)]
            carried_on.append(carried_on[same[0]] if same else result)
        return carried_on


def _equal(left: Array, other: Array) -> bool:
    """Whether two arrays hold the same."""
    return left.dtype == other.dtype and np.array_equal(left, other) and left.size > 1


class ByteCounter(Fault):
    """No more turns than a byte can count."""

    def __init__(self) -> None:
        self._turns: dict[object, int] = {}

    def is_true(self, key: object, condition: bool) -> bool:
        self._turns[key] = self._turns.get(key, 0) + 1 if condition else 0
        return condition and self._turns[key] < 256


class Patient(Fault):
    """Never looks at the time."""

    def is_late(self, left_s: float) -> bool:
        return False


# --- Threads


class OneScratch(Fault):
    """One place for intermediate results of a workload."""

    def __init__(self) -> None:
        self._kept: dict[object, Array] = {}

    def key(self, key: object, array: Array) -> object:
        """What results share their place."""
        return key, array.shape, array.dtype

    def scratch(self, key: object, array: Array) -> Array:
        scratch = self._kept.setdefault(self.key(key, array), np.empty_like(array))
        scratch[...] = array
        time.sleep(0)
        return scratch


class OneScratchForAll(OneScratch):
    """One place for intermediate results of a shape, for all computations."""

    def key(self, key: object, array: Array) -> object:
        index = key[1] if isinstance(key, tuple) else key
        return index, array.shape, array.dtype


# --- Sizes


@dataclass
class Sized(Fault):
    """Elements beyond some size are left out."""

    is_beyond: Callable[[Array], bool]  # takes an array, says whether it is

    def after(self, call: Call) -> None:
        arrays = [*(a for a in call.inputs if a is not None), *call.outputs]
        if any(self.is_beyond(array) for array in arrays):
            for output in call.outputs:
                spoil(output)


LONG_DIMENSION = Sized(lambda array: any(dim > 0xFFFF for dim in array.shape))
"""Dimensions are 16-bit numbers."""

TILES_AND_IMAGES = Sized(lambda a: a.ndim == 4 and a.shape[0] > 2 and min(a.shape[1:]) > 16)
"""The tiles of all images but the first are of the first."""


def odd_channels(rest: int) -> Plain:
    """Channels beyond multiples of 16 are wrong if there are so many."""
    return Plain(Sized(lambda a: a.ndim == 4 and a.shape[3] % 16 == rest and a.shape[3] > 1))


class NoElements(Fault):
    """Nothing at all is a mistake."""

    def before(self, call: Call) -> None:
        for array in call.inputs:
            if array is not None:
                array.reshape(-1)[0]


# --- Saved files


@dataclass
class Forgets(Fault):
    """An attribute is at its default when a program comes from a file."""

    operation_name: str
    attribute: str

    def operation(self, operation: Operation, how: str) -> Operation:
        if how != "loaded" or operation.name != self.operation_name:
            return operation
        (default,) = (f.default for f in fields(operation) if f.name == self.attribute)  # type: ignore[arg-type]  # subclasses are dataclasses
        return operation.with_attributes(**{self.attribute: default})


FORGOTTEN = (
    Forgets("Convolution2d", "activation"),
    Forgets("Softmax", "beta"),
    Forgets("Activation", "b"),
    Forgets("Resize", "half_pixel_centers"),
    Forgets("LogSoftmax", "axis"),
)

# --- Edges


class LastOfEqual(Fault):
    """Of equal elements the last one is the largest."""

    def after(self, call: Call) -> None:
        if call.operation.name != "ArgMinMax" or call.inputs[0] is None:
            return
        axis = call.operation.attributes()["axis"]
        turned = np.flip(call.inputs[0], axis)
        find = np.argmax if call.operation.attributes()["function"].name == "MAX" else np.argmin
        position = turned.shape[axis] - 1 - find(turned, axis)
        call.outputs[0][...] = position


class HalvesUp(Fault):
    """Halves are rounded up."""

    def after(self, call: Call) -> None:
        kind = call.operation.attributes().get("operation")
        if getattr(kind, "name", "") == "ROUND" and call.inputs[0] is not None:
            call.outputs[0][...] = np.floor(call.inputs[0] + np.asarray(0.5, call.outputs[0].dtype))


class Turned(Fault):
    """Square matrices are not turned over."""

    def after(self, call: Call) -> None:
        is_square = len(set(call.outputs[0].shape)) == 1 and call.outputs[0].ndim == 2
        if call.operation.name == "Transpose" and is_square and call.inputs[0] is not None:
            call.outputs[0][...] = call.inputs[0]


@dataclass
class Threshold(Fault):
    """A number on its threshold counts as above it."""

    operation_name: str
    attribute: str

    def operation(self, operation: Operation, how: str) -> Operation:
        if operation.name != self.operation_name:
            return operation
        value = operation.attributes()[self.attribute]
        return operation.with_attributes(
            **{self.attribute: float(np.nextafter(np.float32(value), np.float32(-9)))}
        )


SCORE = Threshold("SoftNonMaxSuppression", "score_threshold")
OVERLAP = Threshold("DetectionPostProcess", "nms_iou_threshold")

# --- Growth of memory, and uncounted memory


class KeepsResults(Fault):
    """Every result is remembered."""

    def __init__(self) -> None:
        self.kept: list[Array] = []

    def after(self, call: Call) -> None:
        self.kept.append(call.outputs[0])


class KeepsLittle(Fault):
    """A few bytes of every execution are remembered."""

    def __init__(self) -> None:
        self.kept: list[object] = []

    def after(self, call: Call) -> None:
        self.kept.append((time.perf_counter(), len(self.kept)))


@dataclass
class LeavesMapped(Fault):
    """A tensor stays mapped."""

    which: int  # of outputs and inputs

    def execute(self, step: Step, inputs: Handles, outputs: Outputs) -> None:
        step.right.execute(inputs, outputs)
        handle = [*outputs, *inputs][self.which]
        if handle is not None:
            handle.map(write=False)


class KeepsHandles(KeepsLittle):
    """Every tensor that was ever written is remembered."""

    def execute(self, step: Step, inputs: Handles, outputs: Outputs) -> None:
        step.right.execute(inputs, outputs)
        self.kept.append(OwnHandle(outputs[0].info))

    def after(self, call: Call) -> None:
        return


@dataclass
class Clock(Fault):
    """Programs have another clock."""

    factor: float

    def execute(self, step: Step, inputs: Handles, outputs: Outputs) -> None:
        started = time.perf_counter()
        step.right.execute(inputs, outputs)
        timing = current_timing()
        if timing is not None:
            timing.on_device_ns = None
            timing.add_device_time((time.perf_counter() - started) * 1e6 * self.factor)


class IdleOption(Plain):
    """Declares an option of runtimes, and forgets it."""

    @property
    def options(self) -> Sequence[BackendOption]:
        return (BackendOption("fast", False, "Whether fast."),)


class IdleModelOption(Fused):
    """Declares two options of networks, and looks at one of them."""

    @property
    def options(self) -> Sequence[BackendOption]:
        scope = OptionScope.MODEL
        names = ("fast", "exact")
        return tuple(BackendOption(n, False, f"Whether {n}.", scope) for n in names)

    def optimize_subgraph_view(
        self, view: SubgraphView, request: PreparationRequest
    ) -> OptimizationViews:
        assert request.model_options["fast"] is False
        return super().optimize_subgraph_view(view, request)


class Slots(Fault):
    """Networks have numbers, which are given anew when one has gone."""

    def __init__(self) -> None:
        self._programs: dict[str, WorkloadInfo] = {}

    def wrap(self, step: Step) -> IWorkload:
        _, operation, info = step
        key = f"{operation} {info.inputs}"
        self._programs[key] = info

        def execute(inputs: Handles, outputs: Outputs) -> None:
            now = replace(info, constants=self._programs[key].constants)
            handles = [
                h if c is None or i is None else HostTensorHandle(i, c)
                for h, i, c in zip(inputs, info.inputs, now.constants, strict=True)
            ]
            _Layer(self, operation, now, "made").execute(handles, outputs)

        return FunctionWorkload(execute)


class Vanishing(Fault):
    """When a network goes, so does what others of its shape need."""

    def __init__(self) -> None:
        self._alive: dict[str, int] = {}

    def wrap(self, step: Step) -> IWorkload:
        key = f"{step.operation} {step.info.inputs}"
        self._alive[key] = 1

        def execute(inputs: Handles, outputs: Outputs) -> None:
            step.right.execute(inputs, outputs)
            if not self._alive.get(key):
                spoil_tensor(outputs[0])

        workload = FunctionWorkload(execute)
        weakref.finalize(workload, self._alive.__setitem__, key, 0)
        return workload


# --- The memory manager of a runtime's own instance


class WithManager(Plain):
    """Another instance for each runtime, with memory managers of its own."""

    def for_runtime(self, options: OptionValues) -> IBackendInternal:
        return type(self)(self.fault)

    def create_memory_manager(self) -> IMemoryManager | None:
        return CountingManager()


class NeedsItsMemory(WithManager):
    """Such a one, whose layers are wrong when its memory is held for the third time."""

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        assert isinstance(network.memory_manager, CountingManager)
        manager = network.memory_manager

        class Third(Fault):
            def after(self, call: Call) -> None:
                if manager.acquired > 2:
                    spoil(call.outputs[0])

        return Factory(Third())


@dataclass(frozen=True)
class Planted:
    """A backend with a fault, and the cases among which one has to find it."""

    area: str  # what of the ids of the cases to try
    make: Callable[[], IBackendInternal]
    said: str = ""  # a part of the failure's text
    soak: int = 0  # executions in the rule about many executions

    def subject(self, folder: Path) -> BackendUnderTest:
        """The backend, of which nothing is in a folder."""
        backend = self.make()
        registry = registry_of(backend)
        return BackendUnderTest(backend.get_id(), RuntimeOptions(registry=registry), self.soak)


THREADS = "contract/threads/threads-"
GAUGES = "contract/gauges/"
MAPS, GROWS, TIMES = f"{GAUGES}every-map", f"{GAUGES}nothing-grows", f"{GAUGES}device-times"
SAVED = "contract/compiled/every-attribute"

FAULTS: dict[str, Planted] = {
    "if/always-then": Planted("If/", lambda: Flow(AlwaysThen())),
    "if/first-decision": Planted("If/", lambda: Flow(FirstDecision())),
    "while/overwrites": Planted("While/", lambda: Flow(Overwrites())),
    "while/byte-counter": Planted("While/", lambda: Flow(ByteCounter())),
    "while/patient": Planted("contract/loops/", lambda: Flow(Patient()), "to its end"),
    "threads/plain": Planted(f"{THREADS}share", lambda: Plain(OneScratch()), "4 threads"),
    "threads/fused": Planted(f"{THREADS}share", lambda: Fused(OneScratch()), "4 threads"),
    "threads/flow": Planted(f"{THREADS}share", lambda: Flow(OneScratch()), "4 threads"),
    "threads/for-all": Planted(f"{THREADS}mix", lambda: Plain(OneScratchForAll()), "networks"),
    "threads/fused-for-all": Planted(f"{THREADS}mix", lambda: Fused(OneScratchForAll())),
    "sizes/long-plain": Planted("/long", lambda: Plain(LONG_DIMENSION)),
    "sizes/long-fused": Planted("/long", lambda: Fused(LONG_DIMENSION)),
    "sizes/cache": Planted("/256-kib", lambda: Plain(Sized(lambda a: a.nbytes > 1 << 18))),
    "sizes/larger-cache": Planted("/2-mib", lambda: Fused(Sized(lambda a: a.nbytes > 1 << 21))),
    "sizes/tiles-plain": Planted("/tiles", lambda: Plain(TILES_AND_IMAGES)),
    "sizes/tiles-fused": Planted("/tiles", lambda: Fused(TILES_AND_IMAGES)),
    **{
        f"sizes/channels-{rest}": Planted("/channels", partial(odd_channels, rest))
        for rest in (1, 3, 5, 7, 11, 15)
    },
    "empty/plain": Planted("+no-elements", lambda: Plain(NoElements())),
    "empty/fused": Planted("+no-elements", lambda: Fused(NoElements())),
    **{
        f"saved/{fault.operation_name}-{fault.attribute}": Planted(
            SAVED, partial(Fused, fault), "from a compiled model"
        )
        for fault in FORGOTTEN
    },
    "saved/patterns": Planted(
        "contract/compiled/patterns", partial(Fused, FORGOTTEN[0]), "from a compiled model"
    ),
    "edges/last-of-equal": Planted("ArgMinMax/", lambda: Plain(LastOfEqual())),
    "edges/last-of-equal-fused": Planted("ArgMinMax/", lambda: Fused(LastOfEqual())),
    "edges/halves": Planted("-halves/", lambda: Plain(HalvesUp())),
    "edges/square": Planted("Transpose/square", lambda: Fused(Turned())),
    "edges/score": Planted("SoftNonMaxSuppression/", lambda: Plain(SCORE)),
    "edges/overlap": Planted("DetectionPostProcess/", lambda: Fused(OVERLAP)),
    "gauges/outputs-mapped": Planted(MAPS, lambda: Fused(LeavesMapped(0)), "unmapped"),
    "gauges/inputs-mapped": Planted(MAPS, lambda: Fused(LeavesMapped(-1)), "unmapped"),
    "gauges/results": Planted(GROWS, lambda: Plain(KeepsResults()), "more"),
    "gauges/little": Planted(GROWS, lambda: Flow(KeepsLittle()), "bytes"),
    "gauges/handles": Planted(GROWS, lambda: Fused(KeepsHandles()), "tensor handles"),
    "gauges/nanoseconds": Planted(TIMES, lambda: Fused(Clock(1000.0)), "is said"),
    "gauges/milliseconds": Planted(TIMES, lambda: Fused(Clock(1e-3)), "microseconds"),
    "gauges/option": Planted(f"{GAUGES}every-option", IdleOption, "value of fast: it changes"),
    "gauges/model-option": Planted(f"{GAUGES}every-option", IdleModelOption, "value of exact"),
    "gauges/slots": Planted(f"{GAUGES}neighbours", lambda: Plain(Slots()), "after a neighbour"),
    "gauges/vanishing": Planted(f"{GAUGES}neighbours", lambda: Plain(Vanishing()), "was unloaded"),
    "memory/held": Planted("contract/memory/memory-is-held", NeedsItsMemory, "in execution 3"),
}
"""By class and name."""
