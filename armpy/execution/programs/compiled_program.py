"""Program of a network whose shapes are all known, compiled in this process."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from typing import NamedTuple

from armpy.backend import WorkloadInfo, current_cancellation
from armpy.compiler import OptimizedNetwork, Placement
from armpy.compiler.imported import ImportedNetwork
from armpy.execution.memory import idle_release
from armpy.execution.memory.shared_memory import SharedMemory
from armpy.execution.programs.arenas import Constants, OutOfMemoryError, make_constants
from armpy.execution.programs.held_memory import HeldMemory
from armpy.execution.programs.loop_limits import LoopLimits, limited_layers, limited_steps
from armpy.execution.programs.program import StepProgram
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
    prepared_step,
)
from armpy.graph import Layer
from armpy.ops.backend_internal import MemCopy, PreCompiled
from armpy.ops.operation import Array
from armpy.plugins.proxy.error_attribution import blamed
from armpy.profiling import phase
from armpy.tensor import TensorInfo
from armpy.types import HOST, BackendId

_log = logging.getLogger("armpy.execution")


class SizedNetwork(NamedTuple):
    """The facts about a network that follow from some sizes."""

    layers: Sequence[tuple[PreCompiled, WorkloadInfo]]
    sources: tuple[TensorInfo, ...]
    results: tuple[TensorInfo, ...]
    make_network: Callable[[], OptimizedNetwork]  # few ask for it
    num_numbers: int  # that follow from the sizes
    in_place: frozenset[tuple[int, int]]  # sources and results that may be one array each


class ProgramResources(NamedTuple):
    """The resources of a network's program that do not depend on sizes."""

    sessions: Mapping[BackendId, BackendSession]
    executors: Executors  # run programs with loops that the core has to stop
    limited: AbstractSet[int]  # ids of the layers with such loops
    held: Sequence[SharedMemory]  # by backends during executions
    constants: Constants


class CompiledProgram(StepProgram[WorkingMemory]):
    """Prepared steps of an optimised network, which is fully shaped.

    It takes no working memory, which the first execution does.
    """

    def __init__(
        self,
        network: OptimizedNetwork | None,  # made on request of the sizes if there is none
        steps: Sequence[Step],  # one per layer
        resources: ProgramResources,
        sizes: SizedNetwork | None = None,  # that it was resized for
        original: CompiledProgram | None = None,  # the program that it was resized from
    ) -> None:
        super().__init__(original)
        if network is not None:
            self.network = network
        self.sizes: SizedNetwork | None = sizes
        self.original = original
        self._steps = steps
        self._resources = resources
        self.result_infos = (
            tuple(value.info for value in self.network.graph.results)
            if sizes is None
            else sizes.results
        )

    @classmethod
    def prepare(
        cls,
        network: OptimizedNetwork,
        sessions: Mapping[BackendId, BackendSession],
        executors: Executors,  # run programs with loops that the core has to stop
        measure: Measure | None = None,  # gives each step with its time taken
        known: Mapping[int, Step] | None = None,  # prepared workloads by layer id
    ) -> CompiledProgram:
        """Let backends prepare the steps of a network, and make its constants.

        Where backends are to import tensors of each other, working memory is made and given back
        at once, which shows whether they do.

        Raises
        ------
        PreparationError
            If backends fail to make workloads, or one fails to make constants; it holds all of the
            layers, so that they move at once.
        ImportRefusedError
            If a backend does not import a tensor of another one.
        """
        limited = limited_layers(network, sessions)
        steps = prepare_steps(network, sessions, measure, known)
        steps = limited_steps(network, steps, limited, known or {})
        held = memory_of(network, sessions)
        # Now and not in the first execution: where a device is full, its layers move elsewhere.
        try:
            constants = make_constants(network, sessions)
        except OutOfMemoryError as error:
            raise _preparation_error(network, error) from error
        resources = ProgramResources(sessions, executors, limited, held, constants)
        program = cls(network, steps, resources)
        # In memory that goes back at once: what an execution refuses could not be copied.
        if network.imports:
            try:
                program._make_memory().free()
            except OutOfMemoryError as error:
                _log.info("no import is tried, as there is no memory for it now: %s", error)
        return program

    @cached_property
    def network(self) -> OptimizedNetwork:
        """The network that it executes; made on request where the program was resized."""
        assert self.sizes is not None
        return self.sizes.make_network()

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
        """Return the steps that each layer's backend made of it, by layer id."""
        ids = (layer.id for layer in self.layers)
        return dict(zip(ids, self._steps, strict=True))

    @property
    def stops_loops(self) -> bool:
        """Return whether it has loops that the core has to stop."""
        return bool(self._resources.limited)

    def resized(self, sizes: SizedNetwork) -> CompiledProgram:
        """Prepare the same layers for other sizes.

        All of them read sources and constants, and write results. This program is not executed
        itself from then on: its working memory serves the programs for all sizes in turn.
        """
        sessions, steps = self._resources.sessions, [*self._steps]
        pairs = enumerate(zip(self.layers, sizes.layers, strict=True))
        for number, (layer, (operation, info)) in pairs:
            if operation is not layer.operation:
                session = sessions[self.network.backend_ids[layer.id]]
                steps[number] = prepared_step(
                    session.backend_id, session.workloads, operation, info
                )
        return CompiledProgram(None, steps, self._resources, sizes, self)

    def resize(self, memory: WorkingMemory) -> None:
        """Make memory of a program for other sizes fit this one."""
        sizes = self.sizes
        if sizes is None:
            raise RuntimeError("a program that others were resized from is not executed")
        memory.resize(self._steps, (*sizes.sources, *sizes.results))
        memory.sizes = sizes

    def _made(self) -> WorkingMemory:
        # The original's, which lives as long as there are programs for other sizes.
        return super()._made() if self.original is None else self.original._made()

    def new_memory(self) -> WorkingMemory:
        """Make memory for one execution at a time.

        Raises MemoryLimitError if there is no memory left; a backend's own ArmpyErrors are raised
        as they are; MemoryImportError if a backend cannot import an input in another one's memory.
        """
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

    def _make_memory(self) -> WorkingMemory:
        resources = self._resources
        limits: LoopLimits | None = None
        if resources.limited:
            # Imported memory is not left alone.
            in_place = isinstance(self.network, ImportedNetwork)
            limits = LoopLimits(resources.executors, in_place=in_place)
        with phase("make working memory"):
            return WorkingMemory(
                self.network,
                self._steps,
                resources.sessions,
                resources.constants,
                resources.held,
                limits,
            )

    def free_workloads(self) -> None:
        """Let workloads release memory that they keep between executions."""
        for step in self._steps:
            step.free_idle()

    def uses(self, backend_id: BackendId) -> bool:
        """Return whether a backend has layers of it."""
        return backend_id in self.network.backend_ids.values()

    def held_memory(self) -> HeldMemory:
        """Make memory that the application holds."""
        return HeldMemory(self.new_memory)

    def bind(self, sources: Sequence[Array], results: Sequence[Array]) -> Callable[[], None]:
        """Prepare many executions with the same arrays, in working memory of their own.

        The function that is returned executes once, for one thread at a time, and raises as `run`.

        Raises BackendError if a backend fails to prepare them.
        """
        if self._resources.limited:  # it may be abandoned, so that nothing of it can be prepared
            # Another one after a failure: the execution that was abandoned has the last.
            held = self.held_memory()
            cancellation = current_cancellation()

            def execute() -> None:
                held.run(sources, [*results], cancellation)

            return execute
        memory = self.take_memory()
        try:
            return memory.bind(sources, results)
        except BaseException:  # it is not used again, as in `StepProgram.run`
            memory.free()
            raise


def _preparation_error(network: OptimizedNetwork, error: OutOfMemoryError) -> PreparationError:
    """Return the error that moves the layers of a backend without memory elsewhere.

    Raises ArmpyError (the backend's error, if no other one could do it).
    """
    backend_id = error.backend_id
    # Without copies, which are the core's own and made anew with the layers that move.
    layers = [
        layer
        for layer in network.graph.layers
        if network.backend_ids[layer.id] == backend_id and not isinstance(layer.operation, MemCopy)
    ]
    if not layers or backend_id == HOST:
        raise error.cause from error.cause.__cause__
    return PreparationError([PreparationFailure(tuple(layers), backend_id, error.cause)])
