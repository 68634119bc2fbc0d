"""A backend's part of a network, of which each call is made by the kit and not by the core."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import numpy as np

from armpy.backend import (
    ICompletion,
    IMemoryManager,
    ITensorHandle,
    ITensorHandleFactory,
    IWorkload,
    Lifetime,
    MemBlock,
    NetworkResources,
    OptionScope,
    OptionValues,
    TensorHandleFactoryRegistry,
    WorkloadInfo,
)
from armpy.backend.options import check_options
from armpy.compiler import optimize_graph, specialize
from armpy.compiler.memory.strategies import pack
from armpy.core.dataclass import dataclass
from armpy.graph import Graph, Value
from armpy.ops.backend_internal import MemCopy
from armpy.ops.operation import Array
from armpy.plugins import BackendProxy
from armpy.plugins.proxy.memory import HandleFactoryProxy
from armpy.tensor import TensorInfo
from armpy_conformance.backend_under_test import BackendUnderTest
from armpy_conformance.contract.case import NotApplicableError
from armpy_conformance.contract.networks import Bench

POISON = 0x55
"""Value of bytes that have not been written."""


@dataclass(frozen=True, eq=False, slots=True)
class DrivenLayer:
    """One layer: the backend's workload for it, and the tensors it reads and writes."""

    workload: IWorkload
    inputs: tuple[Value | None, ...]
    outputs: tuple[Value, ...]


def options_of(
    subject: BackendUnderTest,
    scope: OptionScope = OptionScope.RUNTIME,
    others: Mapping[str, object] | None = None,
) -> OptionValues:
    """The backend's options of a scope as a runtime would give them, some otherwise."""
    values = dict(subject.options.backend_options.get(subject.backend_id, {})) | dict(others or {})
    return check_options(subject.backend.options, values, subject.backend_id)[scope]


def backend_of_runtime(
    subject: BackendUnderTest, others: Mapping[str, object] | None = None
) -> BackendProxy:
    """The backend as one runtime has it, with some options otherwise."""
    own = subject.backend.for_runtime(options_of(subject, others=others))
    return own if isinstance(own, BackendProxy) else BackendProxy(own)


def _check_shapes(bench: Bench) -> None:
    """Raise a `NotApplicableError` if an execution decides the shape of some tensor."""
    for layer in bench.graph.layers:
        if not all(info.is_fully_shaped for info in layer.output_infos):
            raise NotApplicableError(
                f"the shapes of {layer.operation.name}'s outputs depend on values, and this rule "
                "makes its tensors before the execution"
            )


class Driven:
    """A network on one backend, called as the core calls it.

    Parameters
    ----------
    bench : Bench
        All of its layers run on the backend.

    Attributes
    ----------
    factory : ITensorHandleFactory
        The one that the backend prefers.
    declared : HandleFactoryProxy
        What it says of where tensors lie.
    sources, results : dict of str to Value
        By name.
    """

    def __init__(
        self, backend: BackendProxy, bench: Bench, resources: NetworkResources | None = None
    ) -> None:
        resources = resources or NetworkResources()
        if resources.memory_manager is None:  # the first thing that a network has made for it
            resources = replace(resources, memory_manager=backend.create_memory_manager())
        _check_shapes(bench)
        self.bench = bench
        self._resources = resources
        graph = optimize_graph(specialize(bench.graph), [backend]).graph
        workloads = backend.create_workload_factory(resources)
        registry = TensorHandleFactoryRegistry()
        backend.register_tensor_handle_factories(registry, resources)
        self.factory: ITensorHandleFactory = registry.first_of(
            backend.get_handle_factory_preferences()
        )
        self.declared = HandleFactoryProxy(backend.get_id(), self.factory)
        manager = resources.memory_manager
        self._managers: list[IMemoryManager] = [*registry.memory_managers]
        self._managers += [] if manager is None else [manager]
        self._copied: dict[Value, Value] = {}
        self.steps: list[DrivenLayer] = []
        self._constants: dict[Value, ITensorHandle] = {}
        for layer in graph.layers:
            if isinstance(layer.operation, MemCopy) and layer.inputs[0] is not None:
                self._copied[layer.outputs[0]] = self._home(layer.inputs[0])
                continue
            constants = tuple(None if value is None else value.data for value in layer.inputs)
            info = WorkloadInfo(layer.name, layer.input_infos, layer.output_infos, constants)
            workload = workloads.create_workload(layer.operation, info)
            inputs = tuple(None if value is None else self._home(value) for value in layer.inputs)
            self.steps.append(DrivenLayer(workload, inputs, layer.outputs))
        self.sources = {value.name: value for value in graph.inputs}
        self.results = self._results_of(graph)

    def _results_of(self, graph: Graph) -> dict[str, Value]:
        """The values that outputs are read from."""
        pairs = zip(graph.output_names, graph.outputs, strict=True)
        return {name: self._home(value) for name, value in pairs}

    def _home(self, value: Value) -> Value:
        """The value that a copy was to be made of."""
        return self._copied.get(value, value)

    def constant(self, value: Value) -> ITensorHandle | None:
        """The handle of a constant, made once; None if it is none."""
        if value.data is not None and value not in self._constants:
            elements = self.declared.fitting(value.info, value.data)
            handle = self.factory.create_constant_handle(value.info, elements)
            self._constants[value] = handle
        return self._constants.get(value)

    def blocks(self) -> dict[Value, Lifetime]:
        """Lifetimes of the tensors: inputs from the first step on, outputs until the last."""
        last = max(len(self.steps) - 1, 0)
        lifetimes = {value: (0, 0) for value in self.sources.values()}
        for number, step in enumerate(self.steps):
            for value in step.inputs:
                if value is not None and value.data is None:
                    lifetimes[value] = (lifetimes[value][0], number)
            lifetimes.update(dict.fromkeys(step.outputs, (number, number)))
        for value in self.results.values():
            if value.data is None:
                lifetimes[value] = (lifetimes[value][0], last)
        return lifetimes

    def memory(self, guard_bytes: int = 0) -> ExecutionTensors:
        """Make working memory of one execution at a time."""
        return ExecutionTensors(self, self._resources, guard_bytes)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the memory of the backend's memory managers."""
        with ExitStack() as stack:
            for manager in self._managers:
                manager.acquire()
                stack.callback(manager.release)
            yield

    def check(self, outputs: Mapping[str, Array], when: str) -> None:
        """Raise a `ViolationError` unless these are the right answers."""
        self.bench.check(outputs, when)

    def run(self, memory: ExecutionTensors, when: str) -> None:
        """Execute once, step by step, and check the answers."""
        with self.held():
            memory.feed(self.bench.feeds)
            memory.execute()
            self.check(memory.read(), when)


class ExecutionTensors:
    """The tensors of one execution at a time, as a backend's factory makes them.

    Parameters
    ----------
    guard_bytes : int
        How far tensors are apart at least.

    Attributes
    ----------
    arena : ITensorArena or None
        The backend's own, if it has one.
    handles : dict of Value to ITensorHandle
        May be exchanged for others.
    """

    def __init__(self, driven: Driven, resources: NetworkResources, guard_bytes: int = 0) -> None:
        self._driven = driven
        self._allocator = resources.allocator
        lifetimes = driven.blocks()
        rooms = [driven.declared.room_bytes(value.info) + guard_bytes for value in lifetimes]
        # Between guards no tensor takes the place of another one.
        always = (0, len(driven.steps))
        blocks = [
            MemBlock(*(always if guard_bytes else lifetime), room)
            for lifetime, room in zip(lifetimes.values(), rooms, strict=True)
        ]
        block_bytes = driven.declared.block_bytes
        offsets, size = pack(blocks, block_bytes=block_bytes)
        self.arena = driven.factory.create_arena(size)
        self._host = _poisoned(size, block_bytes) if self.arena is None else None
        if self.arena is None and self._allocator is not None:
            self._host = self._allocator.allocate(size, block_bytes)
            self._host[...] = POISON
        self._guards = [
            slice(begin + room - guard_bytes, begin + room)
            for begin, room in zip(offsets, rooms, strict=True)
        ]
        self.handles = {
            value: self._make(value.info, lifetime, offset)
            for (value, lifetime), offset in zip(lifetimes.items(), offsets, strict=True)
        }

    def _make(self, info: TensorInfo, lifetime: Lifetime, offset: int) -> ITensorHandle:
        """One tensor, in the backend's arena or in the host's."""
        if self.arena is not None:
            return self.arena.create_tensor_handle(info, lifetime, offset)
        if self._host is None:
            raise AssertionError("there is memory of one of both kinds")
        memory = self._host[offset : offset + self._driven.declared.room_bytes(info)]
        return self._driven.factory.create_tensor_handle(info, memory)

    @property
    def are_guards_whole(self) -> bool:
        """Return whether the bytes after the tensors in the host's arena are unchanged."""
        host = self._host
        return host is None or all((host[guard] == POISON).all() for guard in self._guards)

    def of(self, step: DrivenLayer) -> tuple[list[ITensorHandle | None], list[ITensorHandle]]:
        """The handles of one step's inputs and outputs."""
        inputs = [
            None if v is None else self._driven.constant(v) or self.handles[v] for v in step.inputs
        ]
        return inputs, [self.handles[value] for value in step.outputs]

    def feed(self, feeds: Mapping[str, Array]) -> None:
        """Copy the inputs in."""
        for name, value in self._driven.sources.items():
            self.handles[value].copy_in_from(feeds[name].copy())

    def execute(self) -> None:
        """Run each step; its outputs are spoilt before."""
        for step in self._driven.steps:
            inputs, outputs = self.of(step)
            for handle in outputs:
                poison(handle)
            step.workload.execute(inputs, outputs)

    def bound(self) -> list[Callable[[], object]]:
        """Each step, prepared for these tensors."""
        return [step.workload.bind(*self.of(step)) for step in self._driven.steps]

    def enqueue(self) -> list[ICompletion]:
        """Begin every step, one after the other, and wait for none; those that have not ended."""
        begun = [step.workload.enqueue(*self.of(step)) for step in self._driven.steps]
        return [completion for completion in begun if completion is not None]

    def read(self) -> dict[str, Array]:
        """Copies of the outputs."""
        outputs = {}
        for name, value in self._driven.results.items():
            handle = self._driven.constant(value) or self.handles[value]
            outputs[name] = np.empty(value.info.known_shape, value.info.data_type.dtype)
            handle.copy_out_to(outputs[name])
        return outputs

    def release(self) -> None:
        """Give the memory back."""
        self.handles = {}
        if self.arena is not None:
            self.arena.release()
        elif self._allocator is not None and self._host is not None:
            self._allocator.free(self._host)


def _poisoned(size_bytes: int, alignment_bytes: int) -> Array:
    """Memory that has not been written."""
    raw = np.full(size_bytes + alignment_bytes, POISON, np.uint8)
    start = -raw.ctypes.data % alignment_bytes
    return raw[start : start + size_bytes]


def poison(handle: ITensorHandle) -> None:
    """Overwrite a tensor with something that is not an answer."""
    array = handle.map(read=False)
    try:
        array.reshape(-1).view(np.uint8)[...] = POISON
    finally:
        handle.unmap()
