"""Runs a fully shaped network: a flat list of prepared steps over planned memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import ExitStack

from armpy.graph import Layer, Value
from armpy.ops.operation import Array
from armpy.optimizer import OptimizedNetwork, Placement
from armpy.profiling import Profiler
from armpy.runtime.session import BackendSession
from armpy.runtime.state import State
from armpy.runtime.steps import Execute, memory_of, prepare_steps, raise_for_step
from armpy.runtime.working_memory import WorkingMemory
from armpy.types import BackendId

MAX_IDLE_MEMORIES = 4
"""Working memories that are kept for the next execution; more are made when threads need them."""


class StaticPlan:
    """The prepared steps of one optimised network, for executions side by side.

    Parameters
    ----------
    network : OptimizedNetwork
        Fully shaped.
    sessions : mapping of str to BackendSession
        By backend id.
    profiler : Profiler, optional
        Is told how long each step takes.

    Raises
    ------
    PreparationError
        If backends fail to make workloads; it holds all of them, so that they move at once.
    """

    def __init__(
        self,
        network: OptimizedNetwork,
        sessions: Mapping[BackendId, BackendSession],
        profiler: Profiler | None = None,
    ) -> None:
        self.network = network
        self._sessions = sessions
        graph = network.graph
        self._executes = prepare_steps(network, sessions, profiler)
        self.result_infos = tuple(value.info for value in graph.results)
        self._idle: deque[WorkingMemory] = deque(maxlen=MAX_IDLE_MEMORIES)
        self._held = memory_of(network, sessions)
        made = {value for layer in graph.layers for value in layer.outputs}
        self._writes_directly: list[bool] = []
        seen: set[Value] = set()
        for value in graph.results:
            self._writes_directly.append(value in made and value not in seen)
            seen.add(value)
        self._writes_all = all(self._writes_directly)

    @property
    def placement(self) -> Placement:
        """Which layer runs where and why."""
        return self.network.placement

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Everything that runs."""
        return self.network.graph.layers

    def run(
        self, sources: Sequence[Array], results: Sequence[Array | None] | None = None
    ) -> list[Array]:
        """Execute once; any number of threads may do so at the same time.

        Parameters
        ----------
        sources : sequence of ndarray
            One per source of the graph (inputs, then variables), checked already. Not
            written to.
        results : sequence of (ndarray or None), optional
            Arrays to write results to, which overlap no source; new ones where None.

        Returns
        -------
        list of ndarray
            One per result of the graph (outputs, then variables' next values).

        Raises
        ------
        BackendError
            If a backend fails; its own ArmpyErrors are raised as they are.
        """
        if not self._held:  # by far the commonest case, which is to cost nothing
            return self._run(sources, results)
        with ExitStack() as stack:
            for shared in self._held:
                stack.enter_context(shared)
            return self._run(sources, results)

    def _run(self, sources: Sequence[Array], results: Sequence[Array | None] | None) -> list[Array]:
        """Execute once while the backends hold their memory."""
        memory = self._take_memory()
        arrays = memory.bind(sources, results)
        self._execute(memory)
        return arrays

    def call(
        self,
        inputs: Mapping[str, object],
        outputs: Mapping[str, Array],
        state: State | None = None,
    ) -> dict[str, Array] | None:
        """Execute once, if a caller's arrays can be used as they are.

        Parameters
        ----------
        inputs : mapping of str to array_like
        outputs : mapping of str to ndarray
            None of them, or all.
        state : State, optional
            What the variables hold; advanced.

        Returns
        -------
        dict of str to ndarray, or None
            Every output; None if nothing was done, and `run` is to be used.

        Raises
        ------
        BackendError
            As for `run`.
        """
        if self._held:
            return None
        memory = self._take_memory()
        results = memory.bind_call(inputs, outputs)
        if results is None:
            memory.unbind()
            self._idle.append(memory)
        elif state is None:
            self._execute(memory)
        else:
            arrays = memory.bind_state(state.arrays, state.spare)
            self._execute(memory)
            state.advance(arrays, is_own=True)
        return results

    def _execute(self, memory: WorkingMemory) -> None:
        """Run the steps on memory that is bound, then unbind it and keep it for the next time."""
        execute: Execute
        step = 0
        try:
            for execute, ins, outs in memory.steps:
                execute(ins, outs)
                step += 1
            if not self._writes_all:
                memory.copy_results()
        except BaseException as error:  # noqa: BLE001 - plugin boundary: named and raised
            raise_for_step(self.network, step, error)
        finally:
            memory.unbind()
        self._idle.append(memory)

    def _take_memory(self) -> WorkingMemory:
        """What was kept for the next execution, or what is made for it."""
        try:
            return self._idle.pop()
        except IndexError:  # asking first whether one is left would race with other threads
            return self.new_memory()

    def new_memory(self) -> WorkingMemory:
        """Allocate what one execution needs."""
        return WorkingMemory(self.network, self._executes, self._sessions, self._writes_directly)
