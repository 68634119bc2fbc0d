"""Loaded network: one that is ready to run, whatever its inputs' shapes turn out to be."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

from armpy.backend.control_flow import for_one_turn
from armpy.compiler import Evaluator, OptimizedNetwork, Placement, default_shapes, specialize
from armpy.compiler.validation import check_shapes_known, validate
from armpy.errors import Argument, ArmpyError, InvalidArgumentError, LayerValidationError
from armpy.execution import background, calls, wrappers
from armpy.execution.programs.cache import DEBUG, ProgramCache
from armpy.execution.programs.held_memory import HeldMemory
from armpy.execution.programs.imports import ImportedTensors, Importer
from armpy.execution.programs.planning import Planner
from armpy.execution.programs.program import BoundProgram, ProgramKey
from armpy.execution.programs.staged_program import NetworkProgram
from armpy.execution.programs.state import SharedState
from armpy.execution.programs.subgraph_networks import SubgraphNetworks
from armpy.execution.programs.traced.trace import Traces
from armpy.execution.scheduling.loop_timeout import UNSET, Unset, loop_timeout
from armpy.execution.setup.settings import NetworkSettings
from armpy.execution.steps.control_flow import Shapes
from armpy.execution.wrappers.all_wrappers import ExecutionWrappers
from armpy.graph import Graph
from armpy.ops.operation import Array
from armpy.plugins.proxy.guard import BackendProxy
from armpy.profiling import phase, profiled_by
from armpy.tensor import TensorInfo, format_shape
from armpy.types import BackendId

if TYPE_CHECKING:
    from armpy.execution.calls.execution import Execution
    from armpy.execution.calls.invocation import Invocation
    from armpy.execution.calls.network_memory import NetworkMemory
    from armpy.execution.wrappers.debugging import DebugWrapper
    from armpy.execution.wrappers.spread import Spread

_log = logging.getLogger("armpy.execution")


class LoadedNetwork:
    """A graph, its backends, and a program for every set of shapes it was lately called with.

    Raises GraphValidationError if the graph, or one that its control flow runs, is not well formed;
    InvalidArgumentError if a variable differs from the variable that it is shared with;
    MemoryLimitError if the default shapes need more memory than is allowed.

    A fully shaped graph runs as a `CompiledProgram`, one whose shapes depend on values as a
    `StagedProgram`. Graphs that control flow runs are loaded networks themselves, prepared with the
    layer if its shapes are known, else when they first run. Executions run at the same time, except
    those of networks that have or share variables.
    """

    def __init__(
        self,
        graph: Graph,  # dimensions may be unknown
        backends: Sequence[BackendProxy],  # most preferred first
        evaluator: Evaluator | None,  # folds constants
        settings: NetworkSettings,
        subgraphs: SubgraphNetworks[LoadedNetwork] | None = None,  # if control flow runs this one
        shared_state: SharedState | None = None,  # with the model's other networks
        wanted: Mapping[int, BackendId] | None = None,  # of an optimised network, by layer id
        # Compiles in the background: returns what another process makes the same network with.
        again: Callable[[], object] | None = None,
        # The same under other names, whose programs this one runs.
        original: LoadedNetwork | None = None,
    ) -> None:
        self.original = original
        is_inner = subgraphs is not None
        if not is_inner:  # which has been validated with the outer one
            validate(graph, settings.optimizer)
        self.graph = specialize(graph, evaluator=evaluator) if original is None else graph
        if not is_inner and settings.optimizer.shape_inference == "validate_only":
            check_shapes_known(self.graph)
        self.profiler = settings.profiler
        self.backends = tuple(backends)
        self._evaluator = evaluator
        self.settings = settings
        self.memory_limit_bytes = settings.memory_limit_bytes
        self.subgraphs: SubgraphNetworks[LoadedNetwork] = (
            original.subgraphs if original is not None else subgraphs
        ) or SubgraphNetworks(
            backends,
            evaluator,
            settings,
            lambda inner, several: LoadedNetwork(inner, backends, evaluator, settings, several),
        )
        name = self.subgraphs.graph_names.get(graph, "")
        planner = Planner(self.subgraphs, name, wanted)
        traces = Traces(self.graph, self.backends, evaluator, settings, is_possible=not wanted)
        # One for the outer network and those inside, which make programs from each other's calls:
        # with a lock each, two threads could wait for each other.
        self._lock = self.subgraphs.lock
        self.shared_state = shared_state or SharedState()
        states = self.shared_state.open(self.graph.variables)
        self.number = next(_numbers)
        self._wrappers = ExecutionWrappers(
            self.graph,
            settings,
            self.shared_state,
            states,
            self.backends,
            self.number,
            weakref.WeakMethod(self.program_without),  # weak, as the network has the wrappers
            is_inner=is_inner,
        )
        self.program_cache: ProgramCache = ProgramCache(
            self.graph,
            evaluator,
            settings,
            planner,
            traces,
            self._lock,
            self._wrappers.surrounded,
            None if original is None else original.program_cache,
        )
        self.inputs = self._wrappers.input_slots([None] * len(self.graph.inputs))
        self.latest: BoundProgram | None = None
        self.executors = settings.executors
        self.is_closed = False
        self.imported = ImportedTensors(self)
        # Weak: the network closes them and does not keep them alive.
        self._users: weakref.WeakSet[Execution | NetworkMemory | LoadedNetwork] = weakref.WeakSet()
        if original is not None:
            original._users.add(self)
        self.tiers: background.Tiers | None = None
        self.spread: Spread | None = None if original is None else original.spread
        self._add_other_ways(again, is_inner=is_inner)
        if not is_inner:  # an inner one is given its shapes
            try:
                self._prepare_default()
            except BaseException:
                if original is None:
                    self.subgraphs.sessions.close()  # the error's traceback keeps the objects
                raise

    def _add_other_ways(self, again: Callable[[], object] | None, *, is_inner: bool) -> None:
        """Let programs be compiled in the background, and executions be spread over backends."""
        surround = self._wrappers.surrounded
        if again is not None:
            self.tiers = background.Tiers(self, surround, self.settings, again)
            self.program_cache.tiers = self.tiers.prepared
        if self.settings.spread and not is_inner and self.original is None:
            rows = self.settings.spread == "rows"
            self.spread = wrappers.Spread(self, self.settings.properties, divides_rows=rows)
        if self.spread is not None:
            self.program_cache.spread = partial(self.spread.prepared, surround)

    def prepare(self, shapes: Shapes) -> BoundProgram:
        """Make some input shapes, one per input, the latest ones; prepare their program if needed.

        No lock is taken where they are the latest already.
        """
        latest = self.latest
        # Read once: another thread may call with other shapes, or close the network.
        if latest is not None and latest.shapes == shapes:
            return latest
        self._check_open()
        # Without the lock, which may be held until all is compiled.
        known = None if self.tiers is None else self.program_cache.ready.get(shapes)
        prepared = self.latest = known or self.program_cache.program_for(shapes)
        if self.tiers is not None:  # it may have been exchanged before it was the latest
            prepared = self.latest = self.program_cache.ready.get(shapes, prepared)
        if self.is_closed:  # by another thread, meanwhile
            self.latest = None
        return prepared

    def _prepare_default(self) -> None:
        """Make the program for the default shapes, if there are any that work.

        Where dimensions are open, a file's default (often all 1) can be too small for the network's
        windows. That is for the caller's shapes to decide.
        """
        shapes = default_shapes(self.graph)
        if shapes is None:
            return
        try:
            self.prepare(shapes)
        except LayerValidationError as error:
            if all(value.info.is_fully_shaped for value in self.graph.inputs):
                raise
            _log.info("not prepared for the default shapes %s: %s", shapes, error)

    def prepare_together(self, several: Sequence[Sequence[tuple[int, ...]]]) -> int:
        """Make programs for several sets of input shapes that share packed constants.

        Kernels are chosen for the first set, and none becomes the latest, so that calls do not
        wait. The number of sets prepared is returned: 1 if each would pack its own constants.
        """
        for number, shapes in enumerate(several):
            with self._lock:
                self._check_open()
                if number and self.program_cache.traces.has_failed:
                    return number
                self.program_cache.traces.trace_at_once()
                self.program_cache.program_for(tuple(map(tuple, shapes)))
        return len(several)

    @property
    def latest_program(self) -> NetworkProgram | None:
        """The program of the latest shapes; None before the first one."""
        latest = self.latest
        return None if latest is None else latest.program

    @property
    def optimized(self) -> OptimizedNetwork | None:
        """The optimised network of the latest program; None before the first one."""
        program = self.latest_program
        return None if program is None else program.network

    @property
    def placement(self) -> Placement | None:
        """The placement report of the latest program; None without one.

        Where shapes depend on values, the layers that follow are in it after an execution.
        """
        latest = self.latest
        if latest is None:
            return None
        maker: LoadedNetwork = latest.maker or self
        report = maker.subgraphs.placement(latest.program)
        for backend_id, program in latest.others.items():
            report = report.followed_by(program.placement.inside(backend_id))
        return report if self.tiers is None else self.tiers.reported(report, latest)

    def run(
        self,
        inputs: Sequence[Array],
        outputs: Sequence[Array | None] | None = None,
        *,
        loop_timeout_s: float | Unset | None = UNSET,
        deadline_s: float | None = None,
    ) -> list[Array]:
        """Execute once; ExecutionTimeoutError is raised at the deadline or a loop's limit.

        Parameters
        ----------
        inputs : sequence of ndarray
            One per graph input, checked against its info.
        outputs : sequence of (ndarray or None), optional
            Arrays to write to, which overlap no input; new ones where None.
        loop_timeout_s, deadline_s : float, optional
            Limits of each outermost If or While, and of all; None for no limit.
        """
        if deadline_s is not None:
            return calls.async_execution.run_in_order(
                self, inputs, outputs, deadline_s, loop_timeout_s
            )
        # A copy, as an execution puts new arrays where there are none.
        results = None if outputs is None else list(outputs)
        run = self.prepared_for(inputs, results or ()).run
        if loop_timeout_s is UNSET:
            return run(inputs, results)
        with loop_timeout(loop_timeout_s):
            return run(inputs, results)

    def invoke(self, asked: Invocation) -> dict[str, Array]:
        """Execute once and return every output by name; errors as for `armpy.Model.run`."""
        if asked.deadline_s is not None:
            asked.check_deadline()
            return calls.async_execution.run(self, asked)
        return asked.run(asked.callee(self))

    def bind(self, asked: Invocation) -> Execution:
        """Prepare many executions with the same arrays; errors as for `armpy.Model.bind`."""
        binding = calls.Binding(asked.callee(self), asked.inputs, asked.outputs)
        execution = calls.Execution(binding, self.executors, self.number, asked)
        # Under the lock, so that `close` either knows of it or is seen here.
        with self._lock:
            self._users.add(execution)
            if self.is_closed:
                execution.close()
        return execution

    def describe_shapes(self) -> str:
        """Names and shapes of the inputs, for messages."""
        return ", ".join(f"{v.name} {format_shape(v.info.shape)}" for v in self.graph.inputs)

    def latest_shapes(self) -> Shapes:
        """Return the input shapes of the latest program, or the default ones."""
        shapes = default_shapes(self.graph) if self.latest is None else self.latest.shapes
        if shapes is None:
            raise InvalidArgumentError(
                "the shapes of the inputs are not known yet",
                argument=Argument("shapes"),
                expected=self.describe_shapes(),
                fix="Give them, or prepare for some with Model.prepare",
            )
        return shapes

    def create_working_memory(
        self, shapes: Sequence[tuple[int, ...]] | None = None
    ) -> NetworkMemory:
        """Make memory to execute in; see `armpy.Model.create_working_memory`."""
        key = self.latest_shapes() if shapes is None else tuple(shapes)
        with self._lock:
            self._check_open()
            program = self.program_cache.program_for(key).program
            held: HeldMemory = program.held_memory()
            prepared = self._wrappers.surrounded(key, program, held)
            memory = calls.NetworkMemory(self, prepared, held)
            self._users.add(memory)
        return memory

    def free_working_memory(self) -> None:
        """Free the working memory that no execution, caller or bound execution has."""
        with self._lock:
            spread = () if self.spread is None else self.spread.networks
            for network in (self, *self.subgraphs.networks, *spread):
                network.program_cache.free_idle(network.latest)

    def close(self) -> None:
        """Give prepared memory back; executions under way come to their end, others fail."""
        with self._lock:
            # First, as calls look at it without the lock.
            self.is_closed = True
            if self.tiers is not None:
                self.tiers.close()
            self.forget_programs()  # a program that is still referenced holds no memory
            users = [*self._users, self.imported]
            if self.original is None:
                self.subgraphs.close()
                users += [] if self.spread is None else self.spread.networks
            for user in users:
                user.close()

    def output_infos(self, shapes: Sequence[tuple[int, ...]]) -> tuple[TensorInfo, ...]:
        """Info of each output for some input shapes; dimensions that depend on values are open."""
        return self.program_for(tuple(shapes)).result_infos[: len(self.graph.outputs)]

    def prepared_for(
        self, inputs: Sequence[Array], targets: Sequence[Array | None] = ()
    ) -> BoundProgram:
        """Return the program for the shapes of some inputs, and for their imported tensors.

        In lists, imported tensors in plain host memory are replaced by their arrays.
        InvalidArgumentError is raised for tensors that are closed, or of another network.
        """
        prepared = self.prepare(tuple([array.shape for array in inputs]))
        key = self.imported.of_call(prepared, inputs, targets)
        if not key:
            return prepared
        with self._lock:
            # By the imports and their backends, and not by the tensors: equal ones share a program.
            if key not in prepared.importing:
                maker: LoadedNetwork = prepared.maker or self
                planner = maker.program_cache.planner
                program = planner.importing_program(prepared.program, inputs, targets)
                prepared.importing[key] = self._wrappers.prepared(prepared.shapes, program)
            return prepared.importing[key]

    def find_prepared(self, inputs: Sequence[Array]) -> BoundProgram | None:
        """Return the program for the shapes of some inputs, if it is ready."""
        return self.program_cache.ready.get(tuple([array.shape for array in inputs]))

    def importer(self, prepared: BoundProgram | None = None) -> Importer:
        """Return what imports memory for a prepared program, or for `latest_shapes`."""
        if prepared is None:
            if self.tiers is not None:
                self.tiers.settle()  # memory is imported for what runs from then on
            prepared = self.prepare(self.latest_shapes())
        maker: LoadedNetwork = prepared.maker or self
        return Importer(self, prepared.program, maker.subgraphs.sessions)

    def program_for(self, shapes: Shapes, *, is_passing: bool = False) -> NetworkProgram:
        """The program for some input shapes; `is_passing` if backends need not store it."""
        latest, program = self.latest, None
        if latest is not None and latest.shapes == shapes:
            program = latest.program
        elif self.spread is None:
            program = self.program_cache.inner(shapes)
        if program is None:
            with for_one_turn() if is_passing else nullcontext():
                program = self.prepare(shapes).program
        return program  # type: ignore[no-any-return]  # a program

    def prepared_to_debug(self, shapes: Shapes, debug: DebugWrapper) -> BoundProgram:
        """The network prepared for some input shapes, with a wrapper that shows every value."""
        with self._lock:
            self._check_open()
            graph, key = self.program_cache.specialized(shapes), (DEBUG, shapes)
            return self._wrappers.prepared(
                shapes,
                self.program_cache.debugged(key),
                key=key,
                debug=lambda runs: debug(runs, graph),
            )

    def program_without(
        self, backend_id: BackendId, error: ArmpyError, key: ProgramKey
    ) -> NetworkProgram:
        """Make the program for a key without a backend that has failed to execute a layer.

        If no other backend takes its layers, an ArmpyError is raised and the backend keeps them.
        """
        if self.original is not None:
            self.original.program_without(backend_id, error, key)
            self.forget_programs()
            return self._program_by_key(key)
        with self._lock:
            self._check_open()
            with self.subgraphs.without_backend(self, backend_id, error):
                return self._program_by_key(key)

    def _program_by_key(self, key: ProgramKey) -> NetworkProgram:
        """The program for some input shapes, or that for debugging with them."""
        if key[:1] == (DEBUG,):
            return self.program_cache.debugged(key)
        return self.program_for(key)  # type: ignore[arg-type]  # the rest are shapes

    def forget_programs(self) -> None:
        """Make programs anew when they are needed next."""
        self.program_cache.free_idle(self.latest)
        self.program_cache.forget()
        self.latest = None

    def _check_open(self) -> None:
        """Check that it has not been unloaded."""
        if self.is_closed:
            raise InvalidArgumentError("the network has been unloaded", fix="Load it again")

    def compiled(self, shapes: Shapes) -> BoundProgram:
        """The network prepared for some input shapes, whatever has to be compiled for it."""
        with self._lock, profiled_by(self.profiler), phase("prepare"):
            self._check_open()
            return self.program_cache.made(shapes)

    def exchange(self, prepared: BoundProgram) -> None:
        """Let calls from now on run another program for its shapes; others end on the former."""
        with self._lock:
            self._check_open()
            # First, for calls that have found the former one and are about to note it as the
            # latest: they look here after that.
            self.program_cache.exchange(prepared)
            latest = self.latest
            if latest is not None and latest.shapes == prepared.shapes:
                self.latest = prepared

    def on(self, backends: Sequence[BackendProxy]) -> LoadedNetwork:
        """The same network on these backends, for programs that this one surrounds."""
        settings = replace(self.settings, spread=None)
        return LoadedNetwork(self.graph, backends, self._evaluator, settings)


# The next number is one step, so that threads need no lock for it.
_numbers = count()
