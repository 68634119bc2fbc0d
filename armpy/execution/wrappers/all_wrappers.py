"""Wrappers of programs: all that an execution of a loaded network does besides its steps."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, NoReturn

from armpy.backend import Cancellation, Capability, MemorySource, has_matching_capability
from armpy.compiler.imported import ImportedNetwork
from armpy.core.system_trace import has_marks
from armpy.core.vlog import is_on
from armpy.errors import BackendCapabilityError, InvalidArgumentError
from armpy.execution import arrays, wrappers
from armpy.execution.arrays.imported_tensor import ImportedTensor
from armpy.execution.arrays.slots import InputSlot, OutputSlot
from armpy.execution.programs.compiled_program import CompiledProgram
from armpy.execution.programs.held_memory import HeldMemory
from armpy.execution.programs.program import BoundProgram, ProgramKey
from armpy.execution.programs.staged_program import NetworkProgram, StagedProgram
from armpy.execution.programs.state import SharedState, VariableState
from armpy.execution.setup.settings import NetworkSettings
from armpy.execution.steps.control_flow import Shapes, Targets
from armpy.execution.wrappers.runs import (
    Runs,
    in_places,
    observed,
    traced,
    with_limited_text,
    with_state,
)
from armpy.graph import Graph, nested_graphs
from armpy.ops.backend_internal import MemCopy
from armpy.ops.operation import Array
from armpy.plugins.proxy.guard import BackendProxy
from armpy.types import HOST

if TYPE_CHECKING:
    from armpy.execution.wrappers.fallback import WeakProgramWithout


def _refuse(*_: object) -> NoReturn:
    """Execute nothing in working memory that the application has not made."""
    raise InvalidArgumentError(
        "the network is executed in working memory of the application's (external_memory)",
        fix="Make some with create_working_memory, and run in it",
    )


class ExecutionWrappers:
    """Wrappers of every execution of a loaded network.

    None of its objects holds the loaded network: networks go with the last reference to them.
    """

    def __init__(
        self,
        graph: Graph,
        settings: NetworkSettings,
        shared_state: SharedState,
        state: VariableState,  # the network's part of it
        backends: Sequence[BackendProxy] = (),
        number: int = 0,  # that identifies the loaded network
        # Weak reference to a ProgramWithout; makes another program where a backend has failed;
        # none by default.
        program_without: WeakProgramWithout = lambda: None,
        *,
        # Whether control flow executes the network, within an execution of another one.
        is_inner: bool = False,
    ) -> None:
        self._graph = graph
        self._settings = settings
        self._shared_state = shared_state
        self._state = state
        self._number = number
        self._program_without = program_without
        limit = None if is_inner else settings.properties.max_executions
        self._places = None if limit is None else threading.Semaphore(limit)
        self._limits_text = not is_inner and _has_text(graph)
        # The backends whose executions stop soon when they are cancelled.
        stops = partial(has_matching_capability, Capability.CANCELLABLE_EXECUTION, True)
        self._cancellable = {b.get_id() for b in backends if stops(b.get_capabilities())}

    def prepared(
        self,
        shapes: Shapes,
        program: NetworkProgram,
        # Its working memory; some of the program's own if left out.
        memory: HeldMemory | None = None,
        *,
        # The program's purpose, if another one may take its place when a backend fails.
        key: ProgramKey | None = None,
        debug: Callable[[Runs], Runs] | None = None,  # wrapper that reports every value
    ) -> BoundProgram:
        """Surround a program."""
        # Calls spread over backends are executed again by the spread itself.
        if self._settings.properties.on_failure != "next" or self._settings.spread:
            key = None
        runs = _runs_of(program) if memory is None else Runs(memory.run)
        for wrapped in self._wrappers(program, memory, key, debug):
            runs = wrapped(runs)
        pairs = zip(self._graph.output_names, program.result_infos, strict=False)
        source = self._settings.properties.output_source
        outputs = tuple(
            [
                arrays.importing_slots.ImportingOutputSlot(name, info, source)
                if source
                else OutputSlot(name, info)
                for name, info in pairs
            ]
        )
        # Callbacks are the application's own code, which is not run elsewhere.
        stops = debug is not None or (key is None and self._stops_in_place(program))
        inputs = self.input_slots(shapes)
        return BoundProgram(shapes, program, runs.run, runs.binding, stops, inputs, outputs)

    def surrounded(
        self, shapes: Shapes, program: NetworkProgram, memory: HeldMemory | None = None
    ) -> BoundProgram:
        """Surround the program for some shapes, which falls back when a backend fails."""
        return self.prepared(shapes, program, memory, key=shapes)

    def _wrappers(
        self,
        program: NetworkProgram,
        memory: HeldMemory | None,
        key: ProgramKey | None,
        debug: Callable[[Runs], Runs] | None,
    ) -> Iterator[Callable[[Runs], Runs]]:
        """Wrappers of one program's runs, the innermost first.

        1. Falling back, below state and profiling: a failed attempt changes no variable, and its
           time counts.
        2. The limit of text, which control flow within an execution shares.
        3. Debugging, before state is written: what a callback raises leaves that as it was.
        4. State: variables are sources and results of the inner program.
        5. Places, of which a network has as many as its quota allows.
        6. Profiling, which counts the waits for places and variables as well.
        7. Verbose logging.
        8. Marks for the system's trace.
        9. Refusal of executions outside the application's own memory, where they have to be in it.
        10. Protected mode, outermost: a tensor that is not protected gets no further.
        """
        settings = self._settings
        profiler, after_run = settings.profiler, settings.after_run
        if key is not None:
            yield partial(
                wrappers.falling_back,
                program_without=self._program_without,
                key=key,
                program=program,
            )
        if self._limits_text:
            yield partial(with_limited_text, limit_bytes=settings.memory_limit_bytes)
        if debug is not None:
            yield debug
        if self._graph.variables:
            yield partial(
                with_state,
                graph=self._graph,
                shared_state=self._shared_state,
                state=self._state,
                is_static=debug is None and isinstance(program, CompiledProgram),
                is_profiled=profiler is not None,
            )
        if self._places is not None:
            yield partial(in_places, places=self._places, is_profiled=profiler is not None)
        if profiler is not None or after_run is not None:
            yield partial(observed, profiler=profiler, after_run=after_run)
        if is_on.execution:
            yield partial(wrappers.logged, number=self._number)
        if has_marks():
            yield partial(traced, number=self._number)
        if settings.properties.external_memory and memory is None:
            yield lambda _: Runs(_refuse, _refuse)
        if settings.protected_mode:
            check_program(program)
            yield protected

    def _stops_in_place(self, program: NetworkProgram) -> bool:
        """Return whether all that a program runs stops soon when it is cancelled."""
        if isinstance(program, StagedProgram):  # later steps are made on the way
            return False
        # Copies are the core's own and cannot be stopped, but they are short.
        known = program.original or program
        placed = known.network.backend_ids
        return all(
            placed[layer.id] in self._cancellable or isinstance(layer.operation, MemCopy)
            for layer in known.layers
        )

    def input_slots(self, shapes: Sequence[tuple[int, ...] | None]) -> tuple[InputSlot, ...]:
        """Return the slot of each input, in place in some shapes or, for None, converted."""
        limit_bytes = self._settings.memory_limit_bytes
        pairs = zip(self._graph.inputs, shapes, strict=True)
        source = self._settings.properties.input_source
        if source:
            slot = partial(
                arrays.importing_slots.ImportingInputSlot, limit_bytes=limit_bytes, sources=source
            )
            return tuple([slot(v.name, v.info, shape) for v, shape in pairs])
        return tuple([InputSlot(v.name, v.info, shape, limit_bytes) for v, shape in pairs])


def _has_text(graph: Graph) -> bool:
    """Return whether a graph has a tensor of strings, in its branches and loops as well."""
    parts = (graph, *nested_graphs(graph))
    return any(value.info.data_type.is_string for part in parts for value in part.values())


def _runs_of(program: NetworkProgram) -> Runs:
    """Runs of a program in its own memory."""
    if isinstance(program, StagedProgram):
        return Runs(program.run)
    if program.original is None and isinstance(program.network, ImportedNetwork):
        binding = wrappers.ImportBinding(program)
        return Runs(binding.run, binding.bind)  # type: ignore[arg-type]  # all shapes are known
    return Runs(program.run, program.bind)  # type: ignore[arg-type]  # as above


def check_program(program: NetworkProgram) -> None:
    """Check that no step of a program lets the host see a tensor.

    Raises
    ------
    BackendCapabilityError
        If shapes depend on values, there is control flow, or a tensor goes from one backend's
        memory to another's. As long as some inputs or outputs are not imported, nothing runs, and
        copies of these are no matter.
    """
    if isinstance(program, StagedProgram):
        raise _refused("its shapes depend on values")
    network = program.network
    graph = network.graph
    if graph.variables:
        raise _refused(f"it has variables ('{graph.variables[0].value.name}')")
    is_imported = isinstance(network, ImportedNetwork) and network.is_complete
    callers = {*graph.inputs, *graph.results}
    for layer in graph.layers:
        is_callers = not callers.isdisjoint((*layer.inputs, *layer.outputs))
        is_copy = layer.operation.name == "MemCopy"
        if is_copy and (is_imported or not is_callers):
            raise _refused(f"a tensor is copied by the host: {layer.name}")
        if not is_copy and network.backend_ids[layer.id] == HOST:
            raise _refused(f"{layer.where} runs on the host")


def protected(runs: Runs) -> Runs:
    """Execute, and prepare executions, with imported protected tensors alone."""
    run, bind = runs.run, runs.binding

    def run_protected(
        sources: Sequence[Array],
        results: Targets | None = None,
        cancellation: Cancellation | None = None,
    ) -> list[Array]:
        _check_tensors(sources, results)
        return run(sources, results, cancellation)

    def bind_protected(
        sources: Sequence[Array], results: Targets
    ) -> Callable[[], Sequence[Array] | None]:
        _check_tensors(sources, results)
        return bind(sources, results)

    return Runs(run_protected, bind_protected)


def _check_tensors(sources: Sequence[object], results: Sequence[object] | None) -> None:
    """Check the arguments for inputs and outputs."""
    for kind, tensors in (("input", sources), ("output", [None] if results is None else results)):
        for index, tensor in enumerate(tensors):
            source = tensor.memory.source if isinstance(tensor, ImportedTensor) else None
            if source is not MemorySource.DMA_BUF_PROTECTED:
                raise InvalidArgumentError(
                    "in protected mode, the host sees no tensor of a network",
                    where=f"{kind} {index}",
                    expected="an imported tensor in protected memory",
                    actual=type(tensor).__name__ if source is None else f"one in {source}",
                    fix="Import protected memory: Model.import_inputs, Model.import_outputs",
                )


def _refused(reason: str) -> BackendCapabilityError:
    """The error for a network that cannot be protected."""
    return BackendCapabilityError(f"the network cannot run in protected mode: {reason}")
