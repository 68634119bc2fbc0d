"""Loaded network: one that is ready to run, whatever its inputs' shapes turn out to be."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING

from armpy.compiler import Evaluator, OptimizedNetwork, Placement, specialize
from armpy.compiler.graph_dumps import dump
from armpy.errors import (
    ArmpyError,
    InvalidArgumentError,
    LayerValidationError,
)
from armpy.execution import background
from armpy.execution.arrays.imported_tensor import ImportedTensor
from armpy.execution.calls.binding import Binding
from armpy.execution.calls.execution import Execution
from armpy.execution.programs.held_memory import HeldMemory
from armpy.execution.programs.imports import Importer, import_by_name, import_given, imports_in
from armpy.execution.programs.loop_timeout import UNSET, Unset, loop_timeout
from armpy.execution.programs.plan_cache import PlanCache
from armpy.execution.programs.planning import Planner
from armpy.execution.programs.program import BoundProgram, PlanKey
from armpy.execution.programs.staged_program import NetworkProgram
from armpy.execution.programs.state import SharedState
from armpy.execution.programs.symbolic_programs import SymbolicPrograms
from armpy.execution.settings import NetworkSettings
from armpy.execution.steps.control_flow import Shapes
from armpy.execution.subgraph_networks import SubgraphNetworks
from armpy.execution.wrappers.all_wrappers import ExecutionWrappers
from armpy.graph import Graph, graphs_of, nested_graphs, verify_graph
from armpy.ops.operation import Array
from armpy.plugins.proxy.guard import BackendProxy
from armpy.profiling import phase, profiled_by
from armpy.tensor import TensorInfo, format_shape
from armpy.types import BackendId

if TYPE_CHECKING:
    from armpy.execution.calls.debugged_network import DebuggedNetwork
    from armpy.execution.calls.invocation import Invocation
    from armpy.execution.calls.network_memory import NetworkMemory
    from armpy.execution.wrappers.debugging import DebugCallback, DebugWrapper

_log = logging.getLogger("armpy.execution")


class LoadedNetwork:
    """A graph, its backends, and a plan for every set of shapes it was lately called with.

    Parameters
    ----------
    graph : Graph
        Dimensions may be unknown.
    backends : sequence of BackendProxy
        Most preferred first.
    evaluator : Evaluator, optional
        Folds constants.
    settings : NetworkSettings
    subgraphs : SubgraphNetworks, optional
        That of the network whose control flow runs this one.
    shared_state : SharedState, optional
        That of other networks of the model, whose variables it shares.
    wanted : mapping of int to str, optional
        By layer id, the backends that an optimised network says.
    again : callable, optional
        Where nobody is to wait for what is compiled: returns what another process makes the same
        network with, see `armpy.execution.background.Tiers`.
    original : LoadedNetwork, optional
        The same network under other names, whose plans this one runs.

    Attributes
    ----------
    tiers : Tiers or None
        What runs until all is compiled, if nobody is to wait for that.
    keeper : callable, optional
        Is told what has been prepared from the network, to keep it for other processes.

    Raises
    ------
    GraphValidationError
        If the graph, or one that its control flow runs, is not well formed.
    InvalidArgumentError
        If a variable is another in a network that it is shared with.
    MemoryLimitError
        If more memory is needed for the default shapes than is allowed.

    Notes
    -----
    A fully shaped graph runs as a `CompiledProgram`. One whose shapes depend on values runs as
    a `StagedProgram`. Graphs that control flow runs are loaded networks themselves, which are
    prepared with the layer if its shapes are known, else when they first run. Executions run
    side by side, except those of networks with variables, which come one after the other, also
    where several networks share them.
    """

    def __init__(
        self,
        graph: Graph,
        backends: Sequence[BackendProxy],
        evaluator: Evaluator | None,
        settings: NetworkSettings,
        subgraphs: SubgraphNetworks[LoadedNetwork] | None = None,
        shared_state: SharedState | None = None,
        wanted: Mapping[int, BackendId] | None = None,
        again: Callable[[], object] | None = None,
        original: LoadedNetwork | None = None,
    ) -> None:
        self.original = original
        is_inner = subgraphs is not None
        if not is_inner:
            with phase("validate"):
                # Once, for all graphs inside too: inner networks are made without it.
                for part in (graph, *nested_graphs(graph)):
                    verify_graph(part)
            dump(settings.optimizer, "loaded", graph)
        self.graph = specialize(graph, evaluator=evaluator) if original is None else graph
        if not is_inner and settings.optimizer.shape_inference == "validate_only":
            from armpy.compiler.shape_inference import check_shapes_known  # noqa: PLC0415 - few validate only

            check_shapes_known(self.graph)
        self.profiler = settings.profiler
        self.backends = tuple(backends)
        self._evaluator = evaluator
        self._settings = settings
        if original is not None:  # what backends prepared, and which failed, is common to both
            subgraphs = original._subgraphs
        self._subgraphs: SubgraphNetworks[LoadedNetwork] = subgraphs or SubgraphNetworks(
            backends, evaluator, settings, _load_inner
        )
        name = self._subgraphs.graph_names.get(graph, "")
        planner = Planner(self._subgraphs, LoadedNetwork, name, wanted, is_inner=is_inner)
        about = self.graph, self.backends, evaluator, settings
        symbolic = SymbolicPrograms(*about, is_possible=not wanted)
        # One for the outer network and those inside, which make plans from each other's calls: with
        # a lock each, two threads could wait for each other.
        self._lock = self._subgraphs.lock
        self.plan_cache = PlanCache(self.graph, evaluator, settings, planner, symbolic, self._lock)
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
            is_inner=is_inner,
        )
        self.inputs = self._wrappers.input_slots([None] * len(self.graph.inputs))
        self.latest: BoundProgram | None = None
        self.keeper: Callable[[LoadedNetwork, BoundProgram], None] | None = None
        self.executors = settings.executors
        self._is_closed = False
        # Weak, all three: nothing lives longer because the network knows of it.
        self._executions: weakref.WeakSet[Execution] = weakref.WeakSet()
        self._memories: weakref.WeakSet[NetworkMemory] = weakref.WeakSet()
        self.imported: weakref.WeakSet[ImportedTensor] = weakref.WeakSet()
        self._renamed: weakref.WeakSet[LoadedNetwork] = weakref.WeakSet()
        if original is not None:
            original._renamed.add(self)
        self.tiers = None if again is None else background.Tiers(self, settings, again)
        if not is_inner:  # an inner one is told for which shapes
            try:
                self._prepare_default()
            except BaseException:
                if original is None:
                    self._subgraphs.sessions.close()  # the error's traceback keeps what was made
                raise

    def default_shapes(self) -> list[tuple[int, ...]] | None:
        """The shape of each input to prepare for; None if one is not known."""
        shapes = []
        for value, default in zip(self.graph.inputs, self.graph.default_shapes, strict=True):
            shape = value.info.known_shape if value.info.is_fully_shaped else default
            if shape is None:
                return None
            shapes.append(shape)
        return shapes

    def _prepare_default(self) -> None:
        """Make the plan for the default shapes, if there are any that work.

        Notes
        -----
        Where dimensions are open, a file's default (often all 1) can be too small for the
        network's windows. That is for the caller's shapes to decide.
        """
        shapes = self.default_shapes()
        if shapes is None:
            return
        try:
            self.prepare(shapes)
        except LayerValidationError as error:
            if all(value.info.is_fully_shaped for value in self.graph.inputs):
                raise
            _log.info("not prepared for the default shapes %s: %s", shapes, error)

    def prepare(self, shapes: Sequence[tuple[int, ...]]) -> None:
        """Make the plan for some input shapes now instead of at the first call.

        Parameters
        ----------
        shapes : sequence of tuple of int
            One per input.
        """
        self._use(tuple(shapes))

    def prepare_together(self, several: Sequence[Sequence[tuple[int, ...]]]) -> int:
        """Make plans for several sets of input shapes, which share what constants are packed to.

        Parameters
        ----------
        several : sequence of sequence of tuple of int
            For each set one shape per input; kernels are chosen for the first.

        Returns
        -------
        int
            For how many of them: the first one alone if each would have constants of its own.

        Notes
        -----
        None of them becomes the latest, so that calls do not wait for this.
        """
        for number, shapes in enumerate(several):
            with self._lock:
                self._check_open()
                if number and self.plan_cache.symbolic.has_failed:
                    return number
                self.plan_cache.symbolic.trace_at_once()
                self._find(tuple(map(tuple, shapes)))
        return len(several)

    @property
    def is_closed(self) -> bool:
        """Whether it has been unloaded."""
        return self._is_closed

    @property
    def memory_limit_bytes(self) -> int:
        """The most that one execution may take."""
        return self._settings.memory_limit_bytes

    @property
    def tracing_error(self) -> ArmpyError | None:
        """How a backend's program for traced sizes has broken the contract; None if it has not."""
        return self.plan_cache.symbolic.error

    @property
    def optimized(self) -> OptimizedNetwork | None:
        """The optimised network of the latest plan; None before the first one."""
        latest = self.latest
        return None if latest is None else latest.plan.network

    @property
    def title(self) -> str:
        """What the model is called; may be empty."""
        return self._settings.name

    @property
    def inner_networks(self) -> tuple[LoadedNetwork, ...]:
        """The loaded networks of all graphs that control flow runs."""
        return self._subgraphs.networks

    @property
    def plans(self) -> tuple[NetworkProgram, ...]:
        """What it is prepared for, the latest last."""
        return tuple(self.plan_cache.plans.values())

    @property
    def placement(self) -> Placement | None:
        """The placement report of the latest plan; None before the first one.

        Notes
        -----
        Where shapes depend on values, the layers behind them are in it after an execution.
        Graphs that control flow runs are in it once each, as soon as they have a plan.
        """
        latest = self.latest
        if latest is None:
            return None
        maker = self._maker_of(latest)
        report = latest.plan.placement
        seen: set[Graph] = set()
        for where, inner in maker._inner_networks("", seen):
            inner_latest = inner.latest
            if inner_latest is not None:
                report = report.followed_by(inner_latest.plan.placement.inside(where))
        return report if self.tiers is None else self.tiers.reported(report, latest)

    def _inner_networks(self, where: str, seen: set[Graph]) -> list[tuple[str, LoadedNetwork]]:
        """The loaded networks that control flow runs, each once, with where they belong."""
        found: list[tuple[str, LoadedNetwork]] = []
        latest = self.latest
        for layer in latest.plan.layers if latest is not None else ():
            for name, graph in graphs_of(layer.operation):
                inner = self._subgraphs.find(graph)
                if inner is not None and graph not in seen:
                    seen.add(graph)
                    place = f"{where}{layer.name}/{name}"
                    found += [(place, inner), *inner._inner_networks(f"{place}/", seen)]
        return found

    def run(
        self,
        inputs: Sequence[Array],
        outputs: Sequence[Array | None] | None = None,
        *,
        loop_timeout_s: float | Unset | None = UNSET,
        deadline_s: float | None = None,
    ) -> list[Array]:
        """Execute once.

        Parameters
        ----------
        inputs : sequence of ndarray
            One per graph input, checked against its info.
        outputs : sequence of (ndarray or None), optional
            Arrays to write to; new ones where None. They overlap no input.
        loop_timeout_s : float, optional
            How long an outermost If or While may take, with all that it runs; None for no
            limit. Left out, the settings say it.
        deadline_s : float, optional
            How long all of it may take.

        Returns
        -------
        list of ndarray
            One per graph output.

        Raises
        ------
        ExecutionTimeoutError
            If one takes longer, or all of it.
        """
        if deadline_s is not None:
            from armpy.execution.calls import async_execution  # noqa: PLC0415 - futures are slow to import, and most programs call

            return async_execution.run_in_order(self, inputs, outputs, deadline_s, loop_timeout_s)
        # A copy, as an execution puts new arrays where there are none.
        results = None if outputs is None else list(outputs)
        run = self.prepared_for(inputs, results or ()).run
        if loop_timeout_s is UNSET:
            return run(inputs, results)
        with loop_timeout(loop_timeout_s):
            return run(inputs, results)

    def invoke(self, asked: Invocation) -> dict[str, Array]:
        """Execute once, with inputs and outputs by name.

        Parameters
        ----------
        asked : Invocation

        Returns
        -------
        dict of str to ndarray
            Every output.

        Raises
        ------
        InvalidArgumentError
            If inputs or outputs do not fit the network, or each other what is asked for.
        ExecutionTimeoutError
            If it takes longer than it may.
        """
        if asked.deadline_s is not None:
            from armpy.execution.calls import async_execution  # noqa: PLC0415 - as for `run`

            asked.check_deadline()
            return async_execution.run(self, asked)
        return asked.run(asked.callee(self))

    def find_prepared(self, inputs: Sequence[Array]) -> BoundProgram | None:
        """The network prepared for the shapes of some inputs, if it is already."""
        return self.plan_cache.ready.get(tuple([array.shape for array in inputs]))

    def bind(self, asked: Invocation) -> Execution:
        """Prepare many executions with the same arrays.

        Parameters
        ----------
        asked : Invocation
            What every execution asks; its inputs are arrays, which are read in place.

        Raises
        ------
        InvalidArgumentError
            If inputs or outputs do not fit the network, or an input could not be read in place.
        """
        binding = Binding(asked.callee(self), asked.inputs, asked.outputs)
        execution = Execution(binding, self.executors, self.number, asked)
        # Under the lock, so that `close` either knows of it or is seen here.
        with self._lock:
            self._executions.add(execution)
            if self._is_closed:
                execution.close()
        return execution

    def create_working_memory(
        self, shapes: Sequence[tuple[int, ...]] | None = None
    ) -> NetworkMemory:
        """Make working memory that executions with some input shapes can be run in.

        Parameters
        ----------
        shapes : sequence of tuple of int, optional
            One per input; those that the network was lately prepared for if left out.

        Raises
        ------
        InvalidArgumentError
            If shapes are left out, and none are known.
        MemoryLimitError
            If there is no memory left; a backend's own ArmpyErrors are raised as they are.
        """
        latest = self.latest
        if shapes is None:
            shapes = self.default_shapes() if latest is None else latest.shapes
        if shapes is None:
            raise InvalidArgumentError(
                "the shapes of the inputs are not known yet",
                expected=self.describe_shapes(),
                fix="Say for which the working memory is",
            )
        with self._lock:
            self._check_open()
            key = tuple(shapes)
            plan = self._find(key).plan
            held: HeldMemory = plan.held_memory()
            # Few applications make working memory themselves.
            from armpy.execution.calls.network_memory import NetworkMemory  # noqa: PLC0415 - as above

            made = NetworkMemory(self, self._prepared(key, plan, held), held)
            self._memories.add(made)
        return made

    def free_working_memory(self) -> None:
        """Give the working memory that no execution is using back; the next one makes it anew.

        Notes
        -----
        What `create_working_memory` made stays, and so does what bound executions have.
        """
        with self._lock:
            for network in (self, *self._subgraphs.networks):
                network.free_own_memory()

    def free_own_memory(self) -> None:
        """`free_working_memory` without the networks that control flow runs."""
        self.plan_cache.free_idle(self.latest)

    def close(self) -> None:
        """Give prepared memory back; executions under way come to their end, others fail."""
        with self._lock:
            # First, as calls look at it without the lock.
            self._is_closed = True
            if self.tiers is not None:
                self.tiers.close()
            self._forget_plans()  # whoever holds a plan yet holds no memory
            if self.original is None:
                self._subgraphs.close()
            for execution in [*self._executions]:
                execution.close()
            for memory in [*self._memories]:
                memory.close()
            for tensor in [*self.imported]:
                tensor.close()
            for network in [*self._renamed]:
                network.close()

    def output_infos(self, shapes: Sequence[tuple[int, ...]]) -> tuple[TensorInfo, ...]:
        """Info of each output for some input shapes; what depends on values is not known."""
        return self.plan(tuple(shapes)).result_infos[: len(self.graph.outputs)]

    def prepared_for(
        self, inputs: Sequence[Array], targets: Sequence[Array | None] = ()
    ) -> BoundProgram:
        """The network prepared for the shapes of some inputs.

        Parameters
        ----------
        inputs, targets : sequence of ndarray
            Imported tensors in their place are checked; in a list, those that are plain host memory
            are replaced by their arrays.

        Raises
        ------
        InvalidArgumentError
            If an imported tensor is closed, or of another input, output or network.
        """
        prepared = self._use(tuple([array.shape for array in inputs]))
        import_given(self, prepared, inputs, targets)
        key = imports_in(self, prepared, inputs, targets)
        if not key:
            return prepared
        with self._lock:
            # By what is imported and who does it, and not by the tensors: equal ones share a plan.
            if key not in prepared.importing:
                planner = self._maker_of(prepared).plan_cache.planner
                plan = planner.importing_program(prepared.plan, inputs, targets)
                prepared.importing[key] = self._wrappers.prepared(prepared.shapes, plan)
            return prepared.importing[key]

    def import_inputs(self, given: Mapping[str, object]) -> dict[str, ImportedTensor]:
        """Let backends use memory where it lies; see `armpy.Model.import_inputs`."""
        return import_by_name(self, given, is_output=False)

    def import_outputs(self, given: Mapping[str, object]) -> dict[str, ImportedTensor]:
        """Let backends use memory where it lies; see `armpy.Model.import_outputs`."""
        return import_by_name(self, given, is_output=True)

    def importer(self, prepared: BoundProgram | None = None) -> Importer:
        """What imports memory for the shapes that the network is prepared for.

        Parameters
        ----------
        prepared : BoundProgram, optional
            The network prepared for some shapes; for the latest ones if left out.

        Raises
        ------
        InvalidArgumentError
            If the network is closed, or not prepared for any shapes.
        """
        if prepared is None:
            self.settle()  # memory is imported for what runs from then on
            shapes = self.default_shapes() if self.latest is None else self.latest.shapes
            if shapes is None:
                raise InvalidArgumentError(
                    "the inputs have no shapes yet", fix="Prepare for some with Model.prepare"
                )
            prepared = self._use(tuple(shapes))
        maker = self._maker_of(prepared)
        return Importer(self, prepared.plan, maker._subgraphs.sessions)

    def _maker_of(self, prepared: BoundProgram | None) -> LoadedNetwork:
        """The network that has made a plan: this one, or that of the slower tier."""
        maker = None if self.tiers is None else background.maker_of(prepared)
        return maker if isinstance(maker, LoadedNetwork) else self

    def plan(self, key: Shapes) -> NetworkProgram:
        """The plan for some input shapes."""
        plan: NetworkProgram = self._use(key).plan
        return plan

    def _use(self, key: Shapes) -> BoundProgram:
        """Make some input shapes the latest ones, without a lock where they are already."""
        latest = self.latest
        # Read once: another thread may call with other shapes, or close the network.
        if latest is not None and latest.shapes == key:
            return latest
        self._check_open()
        # Without the lock, which may be held until all is compiled.
        known = None if self.tiers is None else self.plan_cache.ready.get(key)
        prepared = self.latest = known or self._find(key)
        if self.tiers is not None:  # it may have been exchanged before it was the latest
            prepared = self.latest = self.plan_cache.ready.get(key, prepared)
        if self._is_closed:  # by another thread, meanwhile
            self.latest = None
        return prepared

    def debugging(self, callback: DebugCallback) -> DebuggedNetwork:
        """The network with a callback that is told every value; see `armpy.Model.run`."""
        from armpy.execution.calls.debugged_network import DebuggedNetwork  # noqa: PLC0415 - few debug

        return DebuggedNetwork(self, callback)

    def prepared_to_debug(self, shapes: Shapes, debug: DebugWrapper) -> BoundProgram:
        """The network prepared for some input shapes, with a wrapper that tells every value."""
        with self._lock:
            self._check_open()
            graph = self.plan_cache.specialized(shapes)
            plan = self._debug_plan(shapes, graph)
            key = self.plan_cache.debug_key(shapes)
            return self._wrappers.prepared(
                shapes,
                plan,
                falls_back=(self.plan_without, key),
                debug=lambda runs: debug(runs, graph),
            )

    def _debug_plan(self, shapes: Shapes, graph: Graph) -> NetworkProgram:
        """The plan in which every value is a result."""
        from armpy.execution.wrappers.debugging import with_every_value  # noqa: PLC0415 - few debug

        return self.plan_cache.debugging(shapes, lambda: with_every_value(graph))

    def plan_without(
        self, backend_id: BackendId, error: ArmpyError, key: PlanKey
    ) -> NetworkProgram:
        """A plan that gives no layers to a backend that has failed while it was executing one.

        Parameters
        ----------
        backend_id : str
        error : ArmpyError
            What it has raised.
        key : tuple
            What the plan is for.

        Raises
        ------
        ArmpyError
            If there is none; the backend keeps its layers then.
        """
        if self.original is not None:
            self.original.plan_without(backend_id, error, key)
            self._forget_plans()
            return self._plan_for(key)
        with self._lock:
            self._check_open()
            # Of several executions that fail at the same time, one makes the plans new for all.
            is_news = self._subgraphs.fail(backend_id, error)
            if is_news:
                for network in (self, *self._subgraphs.networks):
                    network._forget_plans()
            try:
                plan = self._plan_for(key)
            except BaseException:
                if is_news:
                    # Nobody else takes its layers: it may do better the next time.
                    self._subgraphs.forgive(backend_id)
                raise
        if is_news:
            text = "%s has failed and loses its layers, which are executed again: %s"
            _log.warning(text, backend_id, error)
        return plan

    def _plan_for(self, key: PlanKey) -> NetworkProgram:
        """The plan for some input shapes, be it that for debugging."""
        shapes = self.plan_cache.debugged_shapes(key)
        if shapes is not None:
            return self._debug_plan(shapes, self.plan_cache.specialized(shapes))
        return self.plan(key)  # type: ignore[arg-type]  # what is left are shapes

    def _forget_plans(self) -> None:
        """Make plans anew when they are needed next."""
        self.free_own_memory()
        self.plan_cache.forget()
        self.latest = None

    def _check_open(self) -> None:
        """Check that it has not been unloaded."""
        if self._is_closed:
            raise InvalidArgumentError("the network has been unloaded", fix="Load it again")

    def _prepared(
        self, shapes: Shapes, plan: NetworkProgram, memory: HeldMemory | None = None
    ) -> BoundProgram:
        """Surround a plan with what every execution of this network is to do."""
        return self._wrappers.prepared(shapes, plan, memory, falls_back=(self.plan_without, shapes))

    def reset_state(self) -> None:
        """Give every variable its initial elements again, for all networks that share them."""
        with self.shared_state.lock:
            self.shared_state.reset()

    def _find(self, shapes: Shapes) -> BoundProgram:
        """The network prepared for some input shapes, which is done if need be."""
        with self._lock:
            prepared = self.plan_cache.ready.get(shapes)
            if prepared is None:
                with profiled_by(self.profiler), phase("prepare"):
                    # With the lock, or threads with the same shapes would do it all again.
                    resized = self.plan_cache.resized(shapes)
                    if resized is None and self.tiers is not None:
                        prepared = self.tiers.prepared(self, shapes)
                    else:
                        prepared = self._prepared(shapes, resized or self._first_plan(shapes))
                self.plan_cache.ready[shapes] = prepared
                # What runs until all is compiled is nothing to keep: who compiles keeps that.
                is_whole = resized is None and self._maker_of(prepared) is self
                if is_whole and self.keeper is not None:
                    self.keeper(self, prepared)
            self.plan_cache.keep(shapes, prepared.plan)
            return prepared

    def compiled(self, shapes: Shapes) -> BoundProgram:
        """The network prepared for some input shapes, whatever has to be compiled for it."""
        with self._lock, profiled_by(self.profiler), phase("prepare"):
            self._check_open()
            return self._prepared(shapes, self._first_plan(shapes))

    def exchange(self, prepared: BoundProgram) -> None:
        """Let calls from now on run another program for its shapes; others end on the former."""
        with self._lock:
            self._check_open()
            # First, for calls that have found the former one and are about to note it as the
            # latest: they look here behind that.
            self.plan_cache.ready[prepared.shapes] = prepared
            self.plan_cache.keep(prepared.shapes, prepared.plan)
            latest = self.latest
            if latest is not None and latest.shapes == prepared.shapes:
                self.latest = prepared

    def without(self, backend_ids: Collection[BackendId]) -> LoadedNetwork:
        """The same network on the other backends, for plans that this one surrounds."""
        left = [one for one in self.backends if one.get_id() not in backend_ids]
        return LoadedNetwork(self.graph, left, self._evaluator, self._settings)

    def surrounded(self, shapes: Shapes, plan: NetworkProgram) -> BoundProgram:
        """Another network's plan of the same graph, with what executions of this one do."""
        return self._prepared(shapes, plan)

    def settle(self) -> None:
        """Wait for what is compiled in the background; go on as it is where that fails."""
        if self.tiers is not None:
            self.tiers.settle()

    def wait_compiled(self, timeout_s: float | None = None) -> None:
        """Wait for what is compiled in the background; errors as for `Tiers.wait`."""
        if self.tiers is not None:
            self.tiers.wait(timeout_s)

    def _first_plan(self, shapes: Shapes) -> NetworkProgram:
        """The plan for some input shapes, made from the network."""
        if self.original is not None:
            # Not by `plan`, after which it would be the original's latest.
            plan: NetworkProgram = self.original._find(shapes).plan
            return plan
        return self.plan_cache.first(shapes)

    def describe_shapes(self) -> str:
        """Names and shapes of the inputs, for messages."""
        return ", ".join(f"{v.name}{format_shape(v.info.shape)}" for v in self.graph.inputs)


# The next number is one step, so that threads need no lock for it.
_numbers = count()


def _load_inner(graph: Graph, subgraphs: SubgraphNetworks[LoadedNetwork]) -> LoadedNetwork:
    """Load a graph that control flow runs."""
    return LoadedNetwork(
        graph, subgraphs.backends, subgraphs.evaluator, subgraphs.settings, subgraphs
    )
