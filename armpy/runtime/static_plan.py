"""Static plan of a fully shaped network: prepared steps over planned memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack

from armpy.graph import Layer
from armpy.ops.operation import Array
from armpy.optimizer import OptimizedNetwork, Placement
from armpy.profiling import Profiler
from armpy.runtime.control_flow import Targets
from armpy.runtime.session import BackendSession
from armpy.runtime.steps import memory_of, prepare_steps
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
        self._steps = prepare_steps(network, sessions, profiler)
        self.result_infos = tuple(value.info for value in graph.results)
        self._idle: deque[WorkingMemory] = deque(maxlen=MAX_IDLE_MEMORIES)

    @property
    def placement(self) -> Placement:
        """Which layer runs where and why."""
        return self.network.placement

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Everything that runs."""
        return self.network.graph.layers

    def run(self, sources: Sequence[Array], results: Targets | None = None) -> list[Array]:
        """Execute once; any number of threads may do so at the same time.

        Parameters
        ----------
        sources : sequence of ndarray
            One per source of the graph (inputs, then variables), checked already. Not
            written to.
        results : list of (ndarray or None), optional
            Arrays to write results to, which overlap no source. None is replaced by a new one.

        Returns
        -------
        list of ndarray
            One per result of the graph (outputs, then variables' next values).

        Raises
        ------
        BackendError
            If a backend fails; its own ArmpyErrors are raised as they are.
        """
        try:
            memory = self._idle.pop()
        except IndexError:  # asking first whether one is left would race with other threads
            memory = self.new_memory()
        # While it is here no other thread can have it, so that an execution needs no lock.
        made = memory.run(sources, results)
        self._idle.append(memory)  # one whose execution failed is not used again
        return made

    def bind(self, sources: Sequence[Array], results: Sequence[Array]) -> Callable[[], None]:
        """Prepare many executions with the same arrays, in working memory of their own.

        Parameters
        ----------
        sources, results : sequence of ndarray
            As for `run`; all of the results.

        Returns
        -------
        callable
            Executes once; for one thread at a time. Raises as `run` does.

        Raises
        ------
        BackendError
            If a backend fails to prepare them.
        """
        return self.new_memory().bind(sources, results)

    def new_memory(self) -> WorkingMemory:
        """Allocate what one execution needs."""
        return WorkingMemory(self.network, self._steps, self._sessions)


class HoldingPlan(StaticPlan):
    """A static plan some of whose backends hold memory during executions; few do."""

    def run(self, sources: Sequence[Array], results: Targets | None = None) -> list[Array]:
        """Execute once as `StaticPlan.run`, between acquiring and releasing the memory."""
        with ExitStack() as stack:
            for shared in memory_of(self.network, self._sessions):
                stack.enter_context(shared)
            return super().run(sources, results)

    def bind(self, sources: Sequence[Array], results: Sequence[Array]) -> Callable[[], None]:
        """Prepare many executions as `StaticPlan.bind`, each holding the memory."""
        shared_memories = memory_of(self.network, self._sessions)
        with ExitStack() as stack:
            for shared in shared_memories:
                stack.enter_context(shared)
            execute = super().bind(sources, results)

        def execute_holding() -> None:
            with ExitStack() as stack:
                for shared in shared_memories:
                    stack.enter_context(shared)
                execute()

        return execute_holding


def static_plan(
    network: OptimizedNetwork,
    sessions: Mapping[BackendId, BackendSession],
    profiler: Profiler | None = None,
) -> StaticPlan:
    """The plan of the right kind; parameters and errors as for `StaticPlan`."""
    kind = HoldingPlan if memory_of(network, sessions) else StaticPlan
    return kind(network, sessions, profiler)
