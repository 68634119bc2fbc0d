"""Staged program where shapes depend on values: as far as they are known, then on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TypeAlias

from armpy.backend import Cancellation, DynamicTensorHandle, HostTensorHandle
from armpy.compiler import OptimizedNetwork, Placement
from armpy.errors import BackendError, UnimplementedError
from armpy.execution.arrays.conversion import check_output_array
from armpy.execution.programs.compiled_program import CompiledProgram
from armpy.execution.programs.graph_split import GraphPart, Split
from armpy.execution.programs.held_memory import HeldMemory
from armpy.execution.programs.loop_limits import limited_layers, limited_steps, run_apart
from armpy.execution.programs.program import BoundProgram
from armpy.execution.scheduling.executors import Executors
from armpy.execution.steps.control_flow import Shapes, Targets
from armpy.execution.steps.profiled import Measure
from armpy.execution.steps.session import BackendSession
from armpy.execution.steps.step import memory_of, prepare_steps, raise_for_step
from armpy.execution.steps.watched_steps import waiting
from armpy.graph import Graph, Layer, Value
from armpy.ops.operation import Array
from armpy.types import BackendId

LARGEST_KEY_ELEMENTS = 4096
"""An operand that decides on shapes is part of the program's key; larger ones are refused."""


class DynamicLayers:
    """Prepared layers, none of which reads what another one writes.

    Raises PreparationError if backends fail to make workloads.
    """

    def __init__(
        self,
        network: OptimizedNetwork,  # as `place_layers` makes it; every input is fully shaped
        sessions: Mapping[BackendId, BackendSession],
        limit_bytes: int,  # most that an output may take up
        executors: Executors,  # run programs with loops that the core has to stop
        measure: Measure | None = None,  # gives each step with its time taken
    ) -> None:
        self.network = network
        self._limit_bytes = limit_bytes
        self._limited = limited_layers(network, sessions)
        self._executors = executors
        prepared = limited_steps(network, prepare_steps(network, sessions, measure), self._limited)
        # The core reads what a layer has written, as it has the shapes, before the next begins.
        self._steps = [
            waiting(network.backend_ids[layer.id], step)
            for layer, step in zip(network.graph.layers, prepared, strict=True)
        ]
        self._held = memory_of(network, sessions)
        self._factories = {
            layer.id: sessions[network.backend_ids[layer.id]].factories[0]
            for layer in network.graph.layers
        }

    @property
    def placement(self) -> Placement:
        """Which layer runs where and why."""
        return self.network.placement

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Everything that runs."""
        return self.network.graph.layers

    def free_idle(self) -> None:
        """Give idle memory of workloads back; there is no other."""
        for step in self._steps:
            step.free_idle()

    def run(
        self, sources: Sequence[Array], cancellation: Cancellation | None = None
    ) -> list[Array]:
        """Execute every layer once; parameters and result as for `StepProgram.run`."""
        if self._limited:
            return run_apart(self._executors, partial(self._run, sources), cancellation)
        return self._run(sources, cancellation)

    def _run(self, sources: Sequence[Array], cancellation: Cancellation | None) -> list[Array]:
        """Execute every layer once, on this thread."""
        graph = self.network.graph
        arrays: dict[Value, Array] = dict(zip(graph.inputs, sources, strict=True))
        with ExitStack() as stack:
            for shared in self._held:
                stack.enter_context(shared)
            for step, layer in enumerate(graph.layers):
                try:
                    if cancellation is not None:
                        cancellation.check()
                    outputs = self._execute(step, layer, arrays)
                except BaseException as error:  # noqa: BLE001 - plugin boundary: named and raised
                    raise_for_step(self.network, step, error)
                arrays.update(zip(layer.outputs, outputs, strict=True))
        return [arrays[value] for value in graph.outputs]

    def _execute(self, step: int, layer: Layer, arrays: Mapping[Value, Array]) -> list[Array]:
        """Run one layer; return its outputs."""
        # Host memory, whatever the backend's own is: arenas and copies would need missing shapes.
        factory = self._factories[layer.id]
        inputs: list[HostTensorHandle | None] = []
        for value in layer.inputs:
            if value is None:
                inputs.append(None)
            else:
                array = arrays[value] if value.data is None else value.data
                inputs.append(HostTensorHandle(value.info, factory.fitting(value.info, array)))
        outputs = [
            HostTensorHandle(info, factory.empty_tensor(info))
            if info.is_fully_shaped
            else DynamicTensorHandle(
                info, self._limit_bytes, factory.alignment_bytes, factory.padding_bytes
            )
            for info in layer.output_infos
        ]
        self._steps[step].execute(inputs, outputs)
        for handle in outputs:
            if isinstance(handle, DynamicTensorHandle) and not handle.is_resized:
                raise BackendError(
                    "the workload has left an output without a shape", actual=str(handle.info)
                )
        return [handle.map() for handle in outputs]


RestMaker: TypeAlias = Callable[
    [tuple[object, ...], Graph, Sequence[tuple[int, ...]], Sequence[Array | None]], "NetworkProgram"
]


class StagedProgram:
    """Program that runs the head, then makes and runs the rest for the head's results."""

    def __init__(
        self,
        split: Split,
        head: NetworkProgram,
        dynamic: DynamicLayers | None,  # if the split has such layers
        # Gives the program of the rest for a key, the sources' shapes, and the decisive values;
        # keeps programs in a bounded cache.
        make_rest: RestMaker,
    ) -> None:
        self._split = split
        self.head = head
        self._dynamic = dynamic
        self._make_rest = make_rest
        # First part of the keys of the rest's programs, so that no other program has the same.
        self._identity = object()
        # The latest one, for reports alone: each execution looks up the one that it needs.
        self._rest: NetworkProgram | None = None
        self.result_infos = tuple(value.info for value in split.results)
        """Info of each result; dimensions that depend on values are not known."""

    @property
    def network(self) -> OptimizedNetwork:
        """The head's optimised network."""
        return self.head.network

    @property
    def placement(self) -> Placement:
        """The head's report, with that of the rest once it has run."""
        report = self.head.placement
        if self._dynamic is not None:
            report = report.followed_by(self._dynamic.placement)
        rest = self._rest
        return report if rest is None else report.followed_by(rest.placement)

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Everything that runs, as far as it has run."""
        parts = (self.head, self._dynamic, self._rest)
        return tuple(layer for part in parts if part is not None for layer in part.layers)

    def run(
        self,
        sources: Sequence[Array],
        results: Targets | None = None,
        cancellation: Cancellation | None = None,
    ) -> list[Array]:
        """Execute once; parameters and result as for `StepProgram.run`."""
        head_results: Sequence[Array] = ()
        if self._split.head.results:
            head_results = self.head.run(sources, None, cancellation)
        return self._run_rest_after(sources, head_results, results, cancellation)

    def held_memory(self) -> HeldMemory:
        """Make memory of the head that the application holds; later parts have their own."""
        head = self.head
        assert isinstance(head, CompiledProgram)  # the outermost one
        return HeldMemory(head, head.placement.arena_bytes, self._run_rest_after)

    def make_ready(self) -> None:
        """Make the head's memory for the first execution now."""
        self.head.make_ready()

    def free_idle(self) -> None:
        """Give idle working memory back, as far as it is known where."""
        for part in (self.head, self._dynamic, self._rest):
            if part is not None:
                part.free_idle()

    def _run_rest_after(
        self,
        inputs: Sequence[Array],
        arrays: Sequence[Array],
        results: Targets | None,
        cancellation: Cancellation | None = None,
    ) -> list[Array]:
        """Execute all but the head, which has made its results already."""
        split = self._split
        by_value = dict(zip(split.sources, inputs, strict=True))
        by_value.update(zip(split.head.results, arrays, strict=True))
        if split.dynamic is not None and self._dynamic is not None:
            sources = [by_value[value] for value in split.dynamic.sources]
            arrays = self._dynamic.run(sources, cancellation)
            by_value.update(zip(split.dynamic.results, arrays, strict=True))
        if split.rest is not None:
            sources = [by_value[value] for value in split.rest.sources]
            arrays = self._run_rest(split.rest, sources, cancellation)
            by_value.update(zip(split.rest.results, arrays, strict=True))
        return self._hand_over(by_value, results, {id(array) for array in inputs})

    def _run_rest(
        self, rest: GraphPart, arrays: Sequence[Array], cancellation: Cancellation | None
    ) -> list[Array]:
        """Make the rest for what its sources have turned out to be, and run it."""
        pairs = zip(arrays, self._split.decisive, strict=True)
        values = [array if is_decisive else None for array, is_decisive in pairs]
        shapes = [array.shape for array in arrays]
        key = (self._identity, tuple(shapes), *map(self._key_part, values))
        program = self._make_rest(key, rest.graph, shapes, values)
        results = program.run(arrays, None, cancellation)
        self._rest = program
        return results

    def _key_part(self, array: Array | None) -> object:
        """Return a value's part of the key of the rest's program, apart from its shape."""
        if array is None:
            return None
        if array.size > LARGEST_KEY_ELEMENTS:
            raise UnimplementedError(
                "an operand that decides on shapes is too large",
                expected=f"at most {LARGEST_KEY_ELEMENTS} elements",
                actual=str(array.size),
            )
        if array.dtype.hasobject:  # whose bytes are addresses
            return tuple(array.reshape(-1).tolist())
        # All elements, and no digest: a program for other values would give wrong answers.
        return array.tobytes()

    def _hand_over(
        self,
        by_value: dict[Value, Array],
        results: Sequence[Array | None] | None,
        used: set[int],  # ids of arrays that are not handed out
    ) -> list[Array]:
        """Results in order, written to the caller's arrays where given."""
        arrays: list[Array] = []
        for index, value in enumerate(self._split.results):
            array = value.data if value.data is not None else by_value[value]
            target = results[index] if results is not None else None
            if target is not None:
                check_output_array(value.name, value.info.with_shape(array.shape), target)
                target[...] = array
                array = target
            # Callers may write to the results: no array is handed out twice, and no constant.
            elif id(array) in used or value.data is not None:
                array = array.copy()
            used.add(id(array))
            arrays.append(array)
        return arrays


NetworkProgram: TypeAlias = CompiledProgram | StagedProgram
"""Program of a network for some input shapes."""

Surround: TypeAlias = Callable[[Shapes, NetworkProgram], BoundProgram]
"""Adds to the program for some shapes what every execution of a network does."""
