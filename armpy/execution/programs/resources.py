"""Resources of a network's programs: they make memory, and execute steps in it."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import NoReturn

from armpy.backend import (
    Cancellation,
    ExternalMemory,
    HostTensorHandle,
    ITensorHandle,
    ReasonCode,
    Support,
    cancellable,
    current_cancellation,
)
from armpy.compiler import OptimizedNetwork
from armpy.compiler.imported import ImportedNetwork
from armpy.errors import ArmpyError, MemoryImportError
from armpy.execution.memory import idle_release
from armpy.execution.memory.shared_memory import SharedMemory, holding
from armpy.execution.programs.arenas import Constants, Holdings, OutOfMemoryError, make_handles
from armpy.execution.programs.loop_limits import LoopLimits
from armpy.execution.programs.memory import StepMemory
from armpy.execution.scheduling.executors import Executors
from armpy.execution.steps.session import BackendSession
from armpy.execution.steps.step import Step, raise_for_step
from armpy.execution.steps.watched_steps import WatchedSteps, queueing_of
from armpy.graph import Graph, Value
from armpy.ops.operation import Array
from armpy.plugins.proxy.error_attribution import blamed
from armpy.plugins.proxy.guarded_call import ask_method
from armpy.profiling import phase
from armpy.types import BackendId

_log = logging.getLogger("armpy.execution")


class ImportRefusedError(Exception):
    """A backend did not import a tensor after all; caught by callers that can copy it."""

    def __init__(self, name: str, backend_id: BackendId, cause: ArmpyError) -> None:
        super().__init__(str(cause))
        self.key = (name, backend_id)
        self.cause = cause
        self.answer = Support.no(ReasonCode.OTHER, str(cause))


class ProgramResources:
    """What the programs of an optimised network have in common, for whatever sizes they are.

    Its memory is that of the network's own sizes, which a program for other ones resizes.
    """

    def __init__(
        self,
        network: OptimizedNetwork,  # fully shaped
        steps: Sequence[Step],  # one per layer
        sessions: Mapping[BackendId, BackendSession],
        executors: Executors,  # run programs with loops that the core has to stop
        limited: AbstractSet[int],  # ids of the layers with such loops
        held: Sequence[SharedMemory],  # by backends during executions
        constants: Constants,
    ) -> None:
        self.sessions = sessions
        self._network = network
        self._steps = steps
        self._executors = executors
        self._limited = limited
        self._held = held
        self._constants = constants
        self._queueing = queueing_of(network, steps)

    @property
    def stops_loops(self) -> bool:
        """Return whether there are loops that the core has to stop."""
        return bool(self._limited)

    def uses(self, backend_id: BackendId) -> bool:
        """Return whether a backend has layers of the network."""
        return backend_id in self._network.backend_ids.values()

    def new_memory(self) -> StepMemory:
        """Make memory for one execution at a time; errors as of `StepProgram.new_memory`."""
        try:
            try:
                return self._make_memory()
            except OutOfMemoryError as error:
                # Once more, as idle memory elsewhere may be the memory that the device lacks.
                if not idle_release.watchdog.reclaim(error.backend_id):
                    raise
            return self._make_memory()
        except OutOfMemoryError as error:
            cause = blamed(error.backend_id, error.cause, is_memory=True)
            raise cause from error.cause.__cause__
        except ImportRefusedError as error:
            raise error.cause from error.cause.__cause__

    def try_imports(self) -> None:
        """Let backends import tensors of each other, where they are to; nothing of it is kept.

        Raises ImportRefusedError if one does not: what an execution refuses could not be copied.
        """
        if not self._network.imports:
            return
        try:
            self._make_memory().free()
        except OutOfMemoryError as error:
            _log.info("no import is tried, as there is no memory for it now: %s", error)

    def _make_memory(self) -> StepMemory:
        """Make memory.

        Raises OutOfMemoryError if a backend cannot make its arenas or the handles in them;
        ImportRefusedError if a backend cannot import an input.
        """
        graph = self._network.graph
        with phase("make working memory"):
            memory = StepMemory(
                [value.info for value in graph.sources],
                [value.info for value in graph.results],
                self._raise_for,
                self._watch,
                is_always_watched=self._queueing is not None or bool(self._held),
            )
            if self._limited:
                # Imported memory is not left alone.
                in_place = isinstance(self._network, ImportedNetwork)
                LoopLimits(self._executors, in_place=in_place).apply_to(memory)
            holdings = Holdings()
            memory.give_back = weakref.finalize(memory, holdings.give_back)
            memory.give_back.atexit = False  # the runtime's end comes first, and drops it
            try:
                # Finalised from here on: whatever fails below, earlier objects are released.
                self._fill(memory, holdings)
            except BaseException:  # an error that is kept keeps no memory
                memory.free()
                raise
        return memory

    def _fill(self, memory: StepMemory, holdings: Holdings) -> None:
        """Make the handles of memory, and the steps with them."""
        network, graph = self._network, self._network.graph
        handles = make_handles(memory, network.memory, self.sessions, holdings)
        imported = _make_imports(network, self.sessions, handles, holdings)
        handles.update(zip(graph.sources, memory.sources, strict=True))
        handles.update(_string_handles(graph))
        copied: list[tuple[HostTensorHandle, Value]] = []
        written = {value for layer in graph.layers for value in layer.outputs}
        for value, handle in zip(graph.results, memory.results, strict=True):
            # Each result once: of a value that is two outputs, the second array is a copy.
            if value in written:  # a step writes the first of its results in place
                written.remove(value)
                handles[value] = handle
                continue
            if value not in handles and value.data is not None:  # a constant
                handles[value] = HostTensorHandle(value.info, value.data)
            copied.append((handle, value))
        steps = []
        for layer, step in zip(graph.layers, self._steps, strict=True):
            backend_id = network.backend_ids[layer.id]
            ins: list[ITensorHandle | None] = []
            for read in layer.inputs:
                if read is None:
                    ins.append(None)
                elif (read, backend_id) in self._constants:
                    ins.append(self._constants[read, backend_id].handle)
                elif (read, backend_id) in imported:
                    ins.append(imported[read, backend_id])
                else:
                    ins.append(handles[read])
            steps.append((step.execute, ins, [handles[v] for v in layer.outputs]))
        copies = [(handle, handles[value]) for handle, value in copied]
        memory.fill(steps, [step.for_arrays for step in self._steps], copies)

    def _raise_for(self, step: int, error: BaseException) -> NoReturn:
        """Raise what a step raised, with the names of its backend and layer."""
        raise_for_step(self._network, step, error)

    def _watch(
        self, calls: Sequence[Callable[[], object]]
    ) -> Callable[[Cancellation | None], None]:
        """Return a function that makes the calls of all steps, watching what stops them."""
        watched = WatchedSteps(self._network, calls, self._queueing)
        if not self._held:
            return watched.run

        def run_holding(cancellation: Cancellation | None) -> None:
            with holding(self._held):
                watched.run(cancellation)

        return run_holding

    def bind(
        self,
        memory: StepMemory,
        steps: Sequence[Step],  # the memory's, for the sizes that it has now
        sources: Sequence[Array],
        results: Sequence[Array],
    ) -> Callable[[], None]:
        """Put some arrays in place for good; return a function that executes once with them.

        No other caller may use this memory from now on.
        """
        if self._limited:  # on another thread, where nothing of it can be prepared
            cancellation = current_cancellation()

            def execute_apart() -> None:
                memory.run(sources, [*results], cancellation)

            return execute_apart
        memory.put([*sources, *results])
        if not self._held:
            return self._bind(memory, steps)
        with holding(self._held):
            execute = self._bind(memory, steps)

        def execute_holding() -> None:
            with holding(self._held):
                execute()

        return execute_holding

    def _bind(self, memory: StepMemory, steps: Sequence[Step]) -> Callable[[], None]:
        """`bind` for the arrays that are in place, without holding what backends share."""
        calls: list[Callable[[], object]] = []
        try:
            for step, (_, ins, outs) in zip(steps, memory.steps, strict=True):
                calls.append(step.bind(ins, outs))
        except BaseException as error:  # noqa: BLE001 - plugin boundary: named and raised
            memory.raise_for(len(calls), error)
        if memory.copying is not None:
            calls.append(memory.copying)
        cancellation = current_cancellation()
        all_bound = all(step.is_bound for step in steps)
        # Most networks are taken in whole by one backend, which stops when it is cancelled.
        if len(calls) == 1 and all_bound and self._queueing is None:
            (call,) = calls

            def execute_one() -> None:
                try:
                    call()
                except BaseException as error:  # noqa: BLE001 - as above
                    memory.raise_for(0, error)  # which keeps the memory, too

            return execute_one

        if self._queueing is None and cancellation is not None:
            return _stoppable(memory, calls, cancellation)
        watched = WatchedSteps(self._network, calls, self._queueing)
        visible = None if all_bound else cancellation
        return partial(_run_bound, memory, watched, visible, cancellation)


def _stoppable(
    memory: StepMemory, calls: Sequence[Callable[[], object]], cancellation: Cancellation
) -> Callable[[], None]:
    """Return a function that makes the calls in order, and checks between them for a stop."""

    def execute() -> None:
        step = 0
        try:
            with cancellable(cancellation):
                for call in calls:
                    cancellation.check()
                    call()
                    step += 1
        except BaseException as error:  # noqa: BLE001 - plugin boundary: named and raised
            memory.raise_for(step, error)  # which keeps the memory, too

    return execute


def _run_bound(
    _: StepMemory,  # which is kept as long as this may be called
    watched: WatchedSteps,
    visible: Cancellation | None,  # that workloads see
    cancellation: Cancellation | None,
) -> None:
    """Execute bound steps once."""
    if visible is None:
        watched.run(cancellation)
    else:
        with cancellable(visible):
            watched.run(cancellation)


def _string_handles(graph: Graph) -> dict[Value, ITensorHandle]:
    """Handles of the tensors of strings between layers, which lie in no arena."""
    results = set(graph.results)
    return {
        value: HostTensorHandle(value.info, value.info.data_type.zeros(value.info.known_shape))
        for layer in graph.layers
        for value in layer.outputs
        if value.info.data_type.is_string and value not in results
    }


def _make_imports(
    network: OptimizedNetwork,
    sessions: Mapping[BackendId, BackendSession],
    handles: Mapping[Value, ITensorHandle],
    holdings: Holdings,
) -> dict[tuple[Value, BackendId], ITensorHandle]:
    """Let backends import their inputs in other backends' memory."""
    imported: dict[tuple[Value, BackendId], ITensorHandle] = {}
    for (value, backend_id), planned in network.imports.items():
        writer_id = network.memory.tensors[value].arena.backend_id
        factory = sessions[backend_id].factory(planned.factory_id)
        writer, source = handles[value], planned.source
        try:
            memory = ask_method(writer_id, ExternalMemory, writer, "export_memory", source)
            answer = factory.can_import(value.info, memory)
            if not answer:
                raise MemoryImportError(answer.text, where=f"{backend_id} / can_import")
            handle = factory.import_memory(value.info, memory)
        except ArmpyError as error:
            raise ImportRefusedError(value.name, backend_id, error) from error
        holdings.add(backend_id, factory, "unimport", handle)
        imported[value, backend_id] = handle
    return imported
