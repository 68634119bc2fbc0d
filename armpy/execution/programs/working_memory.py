"""Working memory of one execution: arenas, tensor handles, and the caller's arrays."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
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
from armpy.errors import ArmpyError, MemoryImportError
from armpy.execution.memory.arena_pool import arena_pool
from armpy.execution.memory.shared_memory import SharedMemory
from armpy.execution.programs.arenas import Constants, Holdings, make_handles
from armpy.execution.programs.loop_limits import LoopLimits
from armpy.execution.programs.program import StepMemory
from armpy.execution.steps.session import BackendSession
from armpy.execution.steps.step import Step, raise_for_step
from armpy.execution.steps.watched_steps import WatchedSteps, queueing_of
from armpy.graph import Graph, Value
from armpy.ops.operation import Array
from armpy.plugins.proxy.guarded_call import ask_method
from armpy.tensor import TensorInfo
from armpy.types import BackendId


class ImportRefusedError(Exception):
    """A backend did not import a tensor after all; caught by callers that can copy it."""

    def __init__(self, name: str, backend_id: BackendId, cause: ArmpyError) -> None:
        super().__init__(str(cause))
        self.key = (name, backend_id)
        self.cause = cause
        self.answer = Support.no(ReasonCode.OTHER, str(cause))


class WorkingMemory(StepMemory):
    """Arenas and tensor handles of one execution at a time.

    Raises OutOfMemoryError if a backend cannot make its arenas or the handles in them;
    ImportRefusedError if a backend cannot import an input.
    """

    def __init__(
        self,
        network: OptimizedNetwork,  # fully shaped
        prepared: Sequence[Step],  # one per layer
        sessions: Mapping[BackendId, BackendSession],
        constants: Constants,
        held: Sequence[SharedMemory] = (),  # by backends during executions
        limits: LoopLimits | None = None,  # of loops that the core has to stop
    ) -> None:
        graph = network.graph
        super().__init__(
            [value.info for value in graph.sources], [value.info for value in graph.results]
        )
        self._limits = limits
        if limits is not None:  # a method in between would take longer, and few have such loops
            self.run = limits.run_of(self)  # type: ignore[method-assign,assignment]  # the same
        holdings = Holdings()
        self._free = weakref.finalize(self, holdings.give_back)
        self._free.atexit = False  # the runtime's end comes first, and drops it
        try:
            # Finalised from here on: whatever fails below, earlier objects are released.
            handles = make_handles(self, network.memory, sessions, holdings)
            imported = _make_imports(network, sessions, handles, holdings)
        except BaseException:  # an error that is kept keeps no memory
            self.free()
            raise
        handles.update(zip(graph.sources, self.sources, strict=True))
        handles.update(_string_handles(graph))
        copies: list[tuple[HostTensorHandle, Value]] = []
        written = {value for layer in graph.layers for value in layer.outputs}
        for value, handle in zip(graph.results, self.results, strict=True):
            # Each result once: of a value that is two outputs, the second array is a copy.
            if value in written:  # a step writes the first of its results in place
                written.remove(value)
                handles[value] = handle
                continue
            if value not in handles and value.data is not None:  # a constant
                handles[value] = HostTensorHandle(value.info, value.data)
            copies.append((handle, value))
        self._copies = [(handle, handles[value]) for handle, value in copies]
        self._network = network
        self._prepared = prepared
        self._queueing = queueing_of(network, prepared)
        self._held = held
        # What few networks need is done where steps are watched, so that others do not ask for it.
        self._is_always_watched = self._queueing is not None or bool(held)
        self._watched: WatchedSteps | None = None
        for layer, step in zip(graph.layers, prepared, strict=True):
            backend_id = network.backend_ids[layer.id]
            ins: list[ITensorHandle | None] = []
            for read in layer.inputs:
                if read is None:
                    ins.append(None)
                elif (read, backend_id) in constants:
                    ins.append(constants[read, backend_id].handle)
                elif (read, backend_id) in imported:
                    ins.append(imported[read, backend_id])
                else:
                    ins.append(handles[read])
            self.steps.append((step.execute, ins, [handles[v] for v in layer.outputs]))
        self._take_sizes([step.for_arrays for step in prepared])

    def resize(self, prepared: Sequence[Step], infos: Sequence[TensorInfo]) -> None:
        """Execute the same layers with other sizes of sources and results from now on."""
        for handle, info in zip(self._bound, infos, strict=True):
            handle._info = info
        self.steps = [
            (step.execute, ins, outs)
            for step, (_, ins, outs) in zip(prepared, self.steps, strict=True)
        ]
        self._take_sizes([step.for_arrays for step in prepared])
        self._prepared, self._watched = prepared, None

    @property
    def bytes_by_backend(self) -> Mapping[BackendId, int]:
        """Its bytes on each backend as it was made, its programs' own memory included."""
        return self._network.placement.arena_bytes

    def free(self) -> None:
        """Give everything back at once, or when an execution that was abandoned has ended."""
        if self._limits is not None and self._limits.leaves_alone():
            return
        self.steps, self._copies, self._watched = [], [], None
        self._free()
        arena_pool.leave(self)

    def bind(self, sources: Sequence[Array], results: Sequence[Array]) -> Callable[[], None]:
        """Put some arrays in place for good; return a function that executes once with them.

        No other caller may use this working memory from now on.
        """
        if self._limits is not None:  # on another thread, where nothing of it can be prepared
            cancellation = current_cancellation()

            def execute_apart() -> None:
                self.run(sources, [*results], cancellation)

            return execute_apart
        if not self._held:
            return self._bind(sources, results)
        with self._holding():
            execute = self._bind(sources, results)

        def execute_holding() -> None:
            with self._holding():
                execute()

        return execute_holding

    def _bind(self, sources: Sequence[Array], results: Sequence[Array]) -> Callable[[], None]:
        """`bind` without holding what backends share."""
        for handle, array in zip(self._bound, (*sources, *results), strict=True):
            handle.array = array
        calls: list[Callable[[], object]] = []
        try:
            for step, (_, ins, outs) in zip(self._prepared, self.steps, strict=True):
                calls.append(step.bind(ins, outs))
            if self._copies:
                calls.append(self._copy_results)
        except BaseException as error:  # noqa: BLE001 - plugin boundary: named and raised
            raise_for_step(self._network, len(calls), error)
        cancellation = current_cancellation()
        all_bound = all(step.is_bound for step in self._prepared)
        # Most networks are taken in whole by one backend, which stops when it is cancelled.
        if len(calls) == 1 and all_bound and self._queueing is None:
            (call,) = calls

            def execute_one() -> None:
                try:
                    call()
                except BaseException as error:  # noqa: BLE001 - as above
                    raise_for_step(self._network, 0, error)  # which keeps this memory, too

            return execute_one

        if self._queueing is None and cancellation is not None:
            return self._stoppable(calls, cancellation)
        self._watched = WatchedSteps(self._network, calls, self._queueing)
        return partial(self._run_bound, None if all_bound else cancellation, cancellation)

    def _stoppable(
        self, calls: Sequence[Callable[[], object]], cancellation: Cancellation
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
                raise_for_step(self._network, step, error)

        return execute

    def _run_bound(self, visible: Cancellation | None, cancellation: Cancellation | None) -> None:
        """Execute the bound program once; `visible` is the cancellation that workloads see."""
        if visible is None:
            self._watched_steps().run(cancellation)
        else:
            with cancellable(visible):
                self._watched_steps().run(cancellation)

    def _watched_steps(self) -> WatchedSteps:
        """The steps for whatever arrays are in place, made when they are first wanted."""
        if self._watched is None:
            calls: list[Callable[[], object]] = [
                partial(execute, ins, outs) for execute, ins, outs in self.steps
            ]
            if self._copies:
                calls.append(self._copy_results)
            self._watched = WatchedSteps(self._network, calls, self._queueing)
        return self._watched

    def _run_watched(self, cancellation: Cancellation | None) -> None:
        """Execute the steps for whatever arrays are in place, watching what stops them."""
        if not self._held:
            self._watched_steps().run(cancellation)
            return
        with self._holding():
            self._watched_steps().run(cancellation)

    def _holding(self) -> ExitStack:
        """Hold what backends share between executions."""
        with ExitStack() as stack:
            for shared in self._held:
                stack.enter_context(shared)
            return stack.pop_all()

    def _raise(self, step: int, error: BaseException) -> NoReturn:
        """Raise what a step raised, with the names of its backend and layer."""
        raise_for_step(self._network, step, error)


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
