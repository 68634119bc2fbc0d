"""Static plan of a fully shaped network: its program, compiled now."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from armpy.backend import current_cancellation
from armpy.compiler import OptimizedNetwork, Placement
from armpy.execution.error_attribution import blamed
from armpy.execution.memory import idle_release
from armpy.execution.programs.arenas import OutOfMemoryError, make_constants
from armpy.execution.programs.held_memory import ExecutionMemory, HeldMemory
from armpy.execution.programs.loop_limits import (
    LimitedMemory,
    limited_layers,
    limited_run,
    limited_steps,
)
from armpy.execution.programs.program import StepProgram
from armpy.execution.programs.protocols import Run
from armpy.execution.programs.working_memory import ImportRefusedError, WorkingMemory
from armpy.execution.scheduling.executors import Executors
from armpy.execution.steps.profiled import Measure
from armpy.execution.steps.session import BackendSession
from armpy.execution.steps.step import (
    PreparationError,
    PreparationFailure,
    Step,
    memory_of,
    prepare_steps,
)
from armpy.graph import Layer
from armpy.ops.backend_internal import MemCopy
from armpy.ops.operation import Array
from armpy.profiling import phase
from armpy.types import HOST, BackendId

_log = logging.getLogger("armpy.execution")


class CompiledProgram:
    """Prepared steps of an optimised network, and what their memory is made of.

    They are the parts of a `StepProgram`.

    Parameters
    ----------
    network : OptimizedNetwork
        Fully shaped.
    sessions : mapping of str to BackendSession
        By backend id.
    measure : callable, optional
        Gives each step with its time taken.
    known : mapping of int to Step, optional
        By layer id, what is prepared already.

    Attributes
    ----------
    steps : list of Step
        One per layer.
    limited : frozenset of int
        Ids of the layers with loops that the core has to stop.

    Raises
    ------
    PreparationError
        If backends fail to make workloads, or one fails to make constants; it holds all of the
        layers, so that they move at once.
    ImportRefusedError
        If a backend does not import a tensor of another one.
    """

    def __init__(
        self,
        network: OptimizedNetwork,
        sessions: Mapping[BackendId, BackendSession],
        measure: Measure | None = None,
        known: Mapping[int, Step] | None = None,
    ) -> None:
        self._network = network
        self._sessions = sessions
        self.limited = limited_layers(network, sessions)
        steps = prepare_steps(network, sessions, measure, known)
        self.steps = limited_steps(network, steps, self.limited, known or {})
        self._held = memory_of(network, sessions)
        # Now and not in the first execution: where a device is full, its layers move elsewhere.
        try:
            self._constants = make_constants(network, sessions)
        except OutOfMemoryError as error:
            raise _preparation_error(network, error) from error
        # In memory that goes back at once: what an execution refuses could not be copied.
        if network.imports:
            self._try_imports()

    def _try_imports(self) -> None:
        """Let backends import each other's tensors while these can still be copied instead."""
        try:
            self._make_memory().free()
        except OutOfMemoryError as error:
            _log.info("no import is tried, as there is no memory for it now: %s", error)

    def new_memory(self) -> WorkingMemory:
        """Make what one execution at a time needs.

        Raises
        ------
        MemoryLimitError
            If there is no memory left; a backend's own ArmpyErrors are raised as they are.
        MemoryImportError
            If a backend cannot import what it reads in another one's memory.
        """
        try:
            try:
                return self._make_memory()
            except OutOfMemoryError as error:
                # Once more, as what idles elsewhere may be what the device has not got.
                if not idle_release.watchdog.reclaim(error.backend_id):
                    raise
            return self._make_memory()
        except OutOfMemoryError as error:
            cause = blamed(error.backend_id, error.cause, is_memory=True)
            raise cause from error.cause.__cause__
        except ImportRefusedError as error:
            raise error.cause from error.cause.__cause__

    def free_workloads(self) -> None:
        """Let workloads give back what they keep between executions."""
        for step in self.steps:
            step.free_idle()

    def uses(self, backend_id: BackendId) -> bool:
        """Whether a backend has layers of it."""
        return backend_id in self._network.backend_ids.values()

    def _make_memory(self) -> WorkingMemory:
        """`new_memory`, with errors as of `WorkingMemory`."""
        made_of = self._network, self.steps, self._sessions, self._constants, self._held
        with phase("make working memory"):
            return WorkingMemory(*made_of)


class StaticPlan:
    """The program of one optimised network, and what is known of it.

    Parameters
    ----------
    network, sessions, measure, known
        As for `CompiledProgram`; errors as of that, too.
    executors : Executors
        Run what has loops that the core has to stop.

    Attributes
    ----------
    program : StepProgram
    run : Run
        Executes once, as `StepProgram.run` does; any number of threads may do so at the same time.
    result_infos : tuple of TensorInfo
        Of the graph's results.

    Notes
    -----
    It takes no working memory, which the first execution does. Where backends are to import
    tensors of each other, some is made and given back at once, as that tells whether they do.
    """

    def __init__(
        self,
        network: OptimizedNetwork,
        sessions: Mapping[BackendId, BackendSession],
        executors: Executors,
        measure: Measure | None = None,
        known: Mapping[int, Step] | None = None,
    ) -> None:
        self.network = network
        self._parts = CompiledProgram(network, sessions, measure, known)
        self._executors = executors
        self.program = StepProgram(self._parts)
        # A call goes to the program itself: a method in between would take longer.
        self.run: Run = self.program.run
        if self._parts.limited:
            self.run = limited_run(executors, self.program.run)
        self.result_infos = tuple(value.info for value in network.graph.results)

    @property
    def placement(self) -> Placement:
        """Which layer runs where and why."""
        return self.network.placement

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Everything that runs."""
        return self.network.graph.layers

    @property
    def steps(self) -> dict[int, Step]:
        """What each layer's backend made of it, by layer id."""
        ids = (layer.id for layer in self.layers)
        return dict(zip(ids, self._parts.steps, strict=True))

    @property
    def stops_loops(self) -> bool:
        """Whether it has loops that the core has to stop."""
        return bool(self._parts.limited)

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
        if self._parts.limited:
            return self._bind_limited(sources, results)
        memory = self.program.take_memory()
        try:
            return memory.bind(sources, results)
        except BaseException:  # it is not used again, as in `StepProgram.run`
            memory.free()
            raise

    def _bind_limited(
        self, sources: Sequence[Array], results: Sequence[Array]
    ) -> Callable[[], None]:
        """`bind` where an execution may be abandoned: nothing of it can be prepared."""
        held = HeldMemory(self)  # another one after a failure: who was abandoned has the last
        cancellation = current_cancellation()

        def execute() -> None:
            held.run(sources, [*results], cancellation)

        return execute

    def new_memory(self) -> ExecutionMemory:
        """Make memory for one execution at a time; errors as of `CompiledProgram.new_memory`."""
        memory = self._parts.new_memory()
        return LimitedMemory(memory, self._executors) if self._parts.limited else memory

    def make_ready(self) -> None:
        """Make memory for the first execution now; errors as for `new_memory`."""
        self.program.make_ready()

    def free_idle(self) -> None:
        """Give idle memory back, that of workloads included; the next execution makes it anew."""
        self.program.free_idle()


def _preparation_error(network: OptimizedNetwork, error: OutOfMemoryError) -> PreparationError:
    """What moves the layers of a backend without memory elsewhere.

    Raises
    ------
    ArmpyError
        What the backend raised, if nobody else could do it.
    """
    backend_id = error.backend_id
    # Without copies, which are the core's own and planned anew with the layers that move.
    layers = [
        layer
        for layer in network.graph.layers
        if network.backend_ids[layer.id] == backend_id and not isinstance(layer.operation, MemCopy)
    ]
    if not layers or backend_id == HOST:
        raise error.cause from error.cause.__cause__
    return PreparationError([PreparationFailure(tuple(layers), backend_id, error.cause)])
