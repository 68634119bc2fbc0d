"""ProgramPlan of a network that reads and writes imported tensors."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armpy.backend import (
    Cancellation,
    IMemoryOptimizerStrategy,
    ITensorHandle,
    current_cancellation,
)
from armpy.compiler import Placement
from armpy.compiler.imported import ImportedNetwork, import_tensors
from armpy.execution.arrays.imported_tensor import ImportedTensor
from armpy.execution.programs.held_memory import ExecutionMemory
from armpy.execution.programs.imports import shapes_depend_on_values
from armpy.execution.programs.loop_limits import LimitedMemory
from armpy.execution.programs.program import StepProgram
from armpy.execution.programs.static_plan import CompiledProgram, StaticPlan
from armpy.execution.programs.working_memory import ImportRefusedError, WorkingMemory
from armpy.execution.scheduling.executors import Executors
from armpy.execution.steps.control_flow import Targets
from armpy.execution.steps.profiled import Measure
from armpy.execution.steps.session import BackendSession, HandleFactories, Sessions
from armpy.execution.steps.step import PreparationError, Step
from armpy.graph import Layer
from armpy.ops.operation import Array
from armpy.types import BackendId

if TYPE_CHECKING:
    from armpy.execution.programs.protocols import ProgramPlan

_NOTHING: Array = np.empty(0, np.uint8)


@dataclass(frozen=True, eq=False, slots=True)
class _Place:
    """A handle's place among those of a step."""

    handles: list[ITensorHandle] | list[ITensorHandle | None]
    index: int

    def put(self, handle: ITensorHandle) -> None:
        """Put a handle there."""
        self.handles[self.index] = handle


class ImportingPlan:
    """StepProgram whose steps are given imported tensors' own handles.

    Parameters
    ----------
    network : ImportedNetwork
    sessions : mapping of str to BackendSession
        By backend id.
    executors : Executors
        Run what has loops that the core has to stop.
    measure : callable, optional
        Gives each step with its time taken.
    known : mapping of int to Step
        Of the plan that the network was made from.

    Notes
    -----
    Sources and results are those of that plan: `ImportedTensor` objects stand in the place of
    arrays for what is imported.
    """

    def __init__(
        self,
        network: ImportedNetwork,
        sessions: Mapping[BackendId, BackendSession],
        executors: Executors,
        measure: Measure | None,
        known: Mapping[int, Step],
    ) -> None:
        # Weak, as places lie in a memory's own lists and go with it.
        self._places: weakref.WeakKeyDictionary[WorkingMemory, dict[int, list[_Place]]] = (
            weakref.WeakKeyDictionary()
        )
        self.network = network
        self._executors = executors
        self._parts = CompiledProgram(network, sessions, measure, known)
        self._program = StepProgram(self._parts)
        self.result_infos = tuple(value.info for value in network.graph.results)

    @property
    def placement(self) -> Placement:
        """Which layer runs where and why."""
        return self.network.placement

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Everything that runs."""
        return self.network.graph.layers

    def new_memory(self) -> ExecutionMemory:
        """Make memory for one execution at a time; errors as of `CompiledProgram.new_memory`."""
        return self._executed(self._parts.new_memory())

    def make_ready(self) -> None:
        """Make memory for the first execution now; errors as for `new_memory`."""
        self._program.make_ready()

    def free_idle(self) -> None:
        """Give idle memory back."""
        self._program.free_idle()

    def run(
        self,
        sources: Sequence[Array | ImportedTensor],
        results: Targets | None = None,
        cancellation: Cancellation | None = None,
    ) -> list[Array]:
        """Execute once as `StaticPlan.run`."""
        nothing: list[Array | None] = [None] * len(self.result_infos)
        targets: Targets = nothing if results is None else results
        # A tensor that is closed meanwhile is given back when this has ended.
        with self._in_use(sources, targets):
            memory = self._program.take_memory()
            executed = self._executed(memory)
            places = self._put(memory, sources, targets)
            try:
                made = executed.run(self._arrays(sources), _plain(targets), cancellation)
            except BaseException:  # it is not used again, as in `StepProgram.run`
                executed.free()
                raise
            for handle, place in places:  # whoever drops a tensor is rid of it
                place.put(handle)
            self._program.put_back(memory)
        pairs = zip(targets, made, strict=True)
        return [given if isinstance(given, ImportedTensor) else array for given, array in pairs]

    def bind(
        self,
        sources: Sequence[Array | ImportedTensor],
        results: Sequence[Array | ImportedTensor],
    ) -> Callable[[], None]:
        """Prepare many executions as `StaticPlan.bind`; each fails once a tensor is closed."""
        with self._in_use(sources, results):
            # Not put back: from now on the steps in it have these tensors' handles.
            memory = self._program.take_memory()
            self._put(memory, sources, results)
            arrays: list[Array] = [
                _NOTHING if isinstance(one, ImportedTensor) else one for one in results
            ]
            given = self._arrays(sources)
            if self._parts.limited:
                execute = _bound(self._executed(memory), given, arrays)
            else:
                execute = memory.bind(given, arrays)

        def execute_imported() -> None:
            with self._in_use(sources, results):
                execute()

        return execute_imported

    def _executed(self, memory: WorkingMemory) -> ExecutionMemory:
        """The memory as executions run in it; in place, as what is imported is not left alone."""
        if not self._parts.limited:
            return memory
        return LimitedMemory(memory, self._executors, in_place=True)

    def _in_use(self, *tensors: Sequence[object]) -> ExitStack:
        """Keep imported tensors from being closed."""
        with ExitStack() as stack:
            for some in tensors:
                for one in some:
                    if isinstance(one, ImportedTensor):
                        stack.enter_context(one.in_use())
            return stack.pop_all()

    def _arrays(self, sources: Sequence[Array | ImportedTensor]) -> list[Array]:
        """What the graph's sources hold: nothing where handles stand for them."""
        arrays: list[Array] = []
        for index, source in enumerate(sources):
            if isinstance(source, ImportedTensor):
                # An input is a source for each backend that has imported it.
                arrays += [_NOTHING] * len(self.network.importers[index] or ())
            else:
                arrays.append(source)
        return arrays

    def _put(
        self,
        memory: WorkingMemory,
        sources: Sequence[Array | ImportedTensor],
        results: Sequence[Array | ImportedTensor | None],
    ) -> list[tuple[ITensorHandle, _Place]]:
        """Put the tensors' handles in place; what has been there."""
        found = self._places.get(memory)
        if found is None:
            found = self._places[memory] = _places_of(memory)
        number = 0
        before: list[tuple[ITensorHandle, _Place]] = []
        wanted: list[tuple[ITensorHandle, ITensorHandle]] = []
        for index, source in enumerate(sources):
            if not isinstance(source, ImportedTensor):
                number += 1
                continue
            for backend_id in self.network.importers[index] or ():
                wanted.append((memory.sources[number], source.handle(backend_id)))
                number += 1
        for index, result in enumerate(results):
            if isinstance(result, ImportedTensor):
                backend_id = self.network.targets[index] or ""
                wanted.append((memory.results[index], result.handle(backend_id)))
        for holder, handle in wanted:
            for place in found.get(id(holder), ()):
                before.append((holder, place))
                place.put(handle)
        return before


def _bound(
    memory: ExecutionMemory, sources: Sequence[Array], results: Sequence[Array]
) -> Callable[[], None]:
    """Execute with the same arrays, of which nothing can be prepared."""
    cancellation = current_cancellation()

    def execute() -> None:
        memory.run(sources, [*results], cancellation)

    return execute


def _plain(results: Targets) -> Targets:
    """What the graph's results are written to: nothing where handles stand for them."""
    return [_NOTHING if isinstance(one, ImportedTensor) else one for one in results]


def _places_of(memory: WorkingMemory) -> dict[int, list[_Place]]:
    """Where steps are given the handles of a memory's sources and results, by their ids."""
    bound = {id(handle) for handle in (*memory.sources, *memory.results)}
    found: dict[int, list[_Place]] = {}
    for _, ins, outs in memory.steps:
        for handles in (ins, outs):
            for index, handle in enumerate(handles):
                if id(handle) in bound:
                    found.setdefault(id(handle), []).append(_Place(handles, index))
    return found


def importing_plan(
    plan: ProgramPlan,
    inputs: Sequence[Array | ImportedTensor],
    targets: Sequence[Array | ImportedTensor | None],
    sessions: Sessions,
    strategies: Mapping[BackendId, IMemoryOptimizerStrategy],
    executors: Executors,
    measure: Measure | None,
) -> ImportingPlan:
    """The plan for a call with imported tensors, for all calls with such ones.

    Parameters
    ----------
    plan : ProgramPlan
        For a call with arrays.
    inputs, targets : sequence of (ndarray or ImportedTensor)
    sessions : Sessions
    strategies : mapping of str to IMemoryOptimizerStrategy
    executors : Executors
    measure : callable, optional

    Raises
    ------
    MemoryImportError
        If the network's shapes depend on values.
    ArmpyError
        If a backend cannot make what the plan needs.
    """
    if not isinstance(plan, StaticPlan):
        raise shapes_depend_on_values()
    network = import_tensors(
        plan.network,
        HandleFactories(sessions),
        {i: one.factories for i, one in enumerate(inputs) if isinstance(one, ImportedTensor)},
        {
            i: next(iter(one.factories.items()))
            for i, one in enumerate(targets)
            if isinstance(one, ImportedTensor)
        },
        strategies,
    )
    try:
        return ImportingPlan(network, sessions, executors, measure, plan.steps)
    except PreparationError as error:
        cause = error.failures[0].cause
        raise cause from cause.__cause__
    except ImportRefusedError as error:
        raise error.cause from error.cause.__cause__
