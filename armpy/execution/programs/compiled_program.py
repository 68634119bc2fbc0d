"""Program of a network whose shapes are all known, compiled in this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from armpy.backend import WorkloadInfo, current_cancellation
from armpy.compiler import OptimizedNetwork, Placement
from armpy.execution.programs.arenas import OutOfMemoryError, make_constants
from armpy.execution.programs.held_memory import HeldMemory
from armpy.execution.programs.loop_limits import limited_layers, limited_steps
from armpy.execution.programs.memory import StepMemory
from armpy.execution.programs.program import StepProgram
from armpy.execution.programs.resources import ProgramResources
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
from armpy.graph import Layer, Value
from armpy.ops.backend_internal import MemCopy, PreCompiled
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy.types import HOST, BackendId


class SizedNetwork(NamedTuple):
    """The facts about a network that follow from some sizes."""

    layers: Sequence[tuple[PreCompiled, WorkloadInfo]]
    sources: tuple[TensorInfo, ...]
    results: tuple[TensorInfo, ...]
    make_network: Callable[[], OptimizedNetwork]  # few ask for it
    num_numbers: int  # that follow from the sizes
    in_place: frozenset[tuple[int, int]]  # sources and results that may be one array each


class CompiledProgram(StepProgram):
    """Prepared steps of an optimised network, which is fully shaped.

    It takes no working memory, which the first execution does.
    """

    _resources: ProgramResources
    _steps: Sequence[Step]
    sizes: SizedNetwork | None
    original: CompiledProgram | None

    def __init__(
        self,
        network: OptimizedNetwork | None,  # made on request of the sizes if there is none
        steps: Sequence[Step],  # one per layer
        resources: ProgramResources,
        sizes: SizedNetwork | None = None,  # that it was resized for
        original: CompiledProgram | None = None,  # the program that it was resized from
    ) -> None:
        if network is not None:
            self.network = network
        sources = _infos(self.network.graph.sources) if sizes is None else sizes.sources
        results = _infos(self.network.graph.results) if sizes is None else sizes.results
        super().__init__(resources, steps, sources, results, sizes, original)

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
        resources = ProgramResources(network, steps, sessions, executors, limited, held, constants)
        resources.try_imports()
        return cls(network, steps, resources)

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
        return self._resources.stops_loops

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

    def resize(self, memory: StepMemory) -> None:
        """Make memory of a program for other sizes fit this one."""
        if self.sizes is None:
            raise RuntimeError("a program that others were resized from is not executed")
        memory.resize(self._steps, (*self.source_infos, *self.result_infos))
        memory.sizes = self.sizes

    def held_memory(self) -> HeldMemory:
        """Make memory that the application holds."""
        return HeldMemory(self, self.placement.arena_bytes)

    def bind(self, sources: Sequence[Array], results: Sequence[Array]) -> Callable[[], None]:
        """Prepare many executions with the same arrays, in working memory of their own.

        The function that is returned executes once, for one thread at a time, and raises as `run`.

        Raises BackendError if a backend fails to prepare them.
        """
        # It may be abandoned, so that nothing of it can be prepared.
        if self._resources.stops_loops:
            # Another one after a failure: the execution that was abandoned has the last.
            held = self.held_memory()
            cancellation = current_cancellation()

            def execute() -> None:
                held.run(sources, [*results], cancellation)

            return execute
        memory = self.take_memory()
        try:
            return self.bind_in(memory, sources, results)
        except BaseException:  # it is not used again, as in `StepProgram.run`
            memory.free()
            raise

    def bind_in(
        self, memory: StepMemory, sources: Sequence[Array], results: Sequence[Array]
    ) -> Callable[[], None]:
        """`bind` in memory that no other caller may use from now on."""
        return self._resources.bind(memory, self._steps, sources, results)


def _infos(values: Sequence[Value]) -> tuple[TensorInfo, ...]:
    """The infos of some values."""
    return tuple([value.info for value in values])


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
