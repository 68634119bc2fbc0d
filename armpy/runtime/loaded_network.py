"""A network that is ready to run, whatever its inputs' shapes turn out to be."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from armpy.backend import ICustomAllocator, ReasonCode, Support
from armpy.errors import (
    ArmpyError,
    BackendError,
    InvalidArgumentError,
    LayerValidationError,
    MemoryLimitError,
)
from armpy.graph import Graph, verify_graph
from armpy.logs import wants_traceback
from armpy.ops.operation import Array, located
from armpy.optimizer import (
    Evaluator,
    OptimizedNetwork,
    OptimizerOptions,
    Placement,
    optimize_graph,
    specialize,
)
from armpy.optimizer.assign import Exclusions
from armpy.optimizer.bridge import HOST
from armpy.plugins.guard import GuardedBackend
from armpy.profiling import Profiler
from armpy.runtime.host import host_session
from armpy.runtime.session import open_session
from armpy.runtime.static_plan import PreparationError, PreparationFailure, StaticPlan
from armpy.runtime.stepwise_plan import StepwisePlan, split_at_unknown
from armpy.tensor import TensorInfo, format_shape
from armpy.types import BackendId

_log = logging.getLogger("armpy.runtime")

Plan: TypeAlias = StaticPlan | StepwisePlan
PlanKey: TypeAlias = tuple[object, ...]

DEFAULT_PLAN_CACHE_SIZE = 8
"""How many input shapes a loaded network stays prepared for."""

DEFAULT_MEMORY_LIMIT_BYTES = 4 << 30
"""Most memory that a model's tensors, or one execution, may need unless the caller says more."""


@dataclass(frozen=True, slots=True)
class NetworkSettings:
    """What a runtime's options mean for one loaded network.

    Parameters
    ----------
    optimizer : OptimizerOptions
    plan_cache_size : int
        Number of plans kept; the least recently used one goes first.
    memory_limit_bytes : int
        Most working memory and results that one execution may need.
    allocators : mapping of str to ICustomAllocator
        The application's, by backend id.
    profiler : Profiler, optional
        Is told how long executions and their steps take.
    after_run : callable, optional
        Called when an execution has come to its end.
    """

    optimizer: OptimizerOptions
    plan_cache_size: int = DEFAULT_PLAN_CACHE_SIZE
    memory_limit_bytes: int = DEFAULT_MEMORY_LIMIT_BYTES
    allocators: Mapping[BackendId, ICustomAllocator] = field(default_factory=dict)
    profiler: Profiler | None = None
    after_run: Callable[[], None] | None = None


class LoadedNetwork:
    """A graph, its backends, and a plan for every set of shapes it was lately called with.

    Parameters
    ----------
    graph : Graph
        Dimensions may be unknown.
    backends : sequence of GuardedBackend
        Most preferred first.
    evaluator : Evaluator, optional
        Folds constants.
    settings : NetworkSettings

    Raises
    ------
    MemoryLimitError
        If more memory is needed for the default shapes than is allowed.

    Notes
    -----
    A fully shaped graph runs as a `StaticPlan`. One whose shapes depend on values runs as
    a `StepwisePlan`. Executions run side by side, except those of networks with variables,
    which come one after the other.
    """

    def __init__(
        self,
        graph: Graph,
        backends: Sequence[GuardedBackend],
        evaluator: Evaluator | None,
        settings: NetworkSettings,
    ) -> None:
        verify_graph(graph)
        self.graph = specialize(graph, evaluator=evaluator)
        self.profiler = settings.profiler
        self._backends = tuple(backends)
        self._evaluator = evaluator
        self._settings = settings
        self._plans: OrderedDict[PlanKey, Plan] = OrderedDict()
        self._lock = threading.RLock()
        self._run_lock = threading.Lock()
        self._excluded: Exclusions = {}
        self._sessions = {HOST: host_session()}
        for backend in self._backends:
            self._open_session(backend)
        self._state = [variable.initial for variable in self.graph.variables]
        self._latest: tuple[PlanKey, Plan] | None = None
        self._is_closed = False
        self._prepare_default()

    def _open_session(self, backend: GuardedBackend) -> None:
        """Let a backend make what it needs for this network; one that fails gets no layers."""
        backend_id = backend.backend_id
        settings = self._settings
        try:
            self._sessions[backend_id] = open_session(
                backend,
                settings.optimizer.model_options.get(backend_id),
                settings.allocators.get(backend_id),
            )
        except ArmpyError as error:
            _log.warning("%s; its layers fall back", error, exc_info=wants_traceback(_log))
            answer = Support.no(ReasonCode.DEVICE, str(error))
            self._excluded |= {(layer.id, backend_id): answer for layer in self.graph.layers}

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
        key: PlanKey = tuple(shapes)
        self._latest = (key, self._plan(key))

    @property
    def optimized(self) -> OptimizedNetwork | None:
        """The optimised network of the latest plan; None before the first one."""
        return None if self._latest is None else self._latest[1].network

    @property
    def placement(self) -> Placement | None:
        """The placement report of the latest plan; None before the first one.

        Notes
        -----
        Where shapes depend on values, the layers behind them are in it after an execution.
        """
        return None if self._latest is None else self._latest[1].placement

    def run(
        self, inputs: Sequence[Array], outputs: Sequence[Array | None] | None = None
    ) -> list[Array]:
        """Execute once.

        Parameters
        ----------
        inputs : sequence of ndarray
            One per graph input, checked against its info.
        outputs : sequence of (ndarray or None), optional
            Arrays to write to; new ones where None. They overlap no input.

        Returns
        -------
        list of ndarray
            One per graph output.
        """
        plan = self._latest_plan(tuple(array.shape for array in inputs))
        started = time.perf_counter() if self.profiler is not None else 0.0
        if not self._state:
            results = plan.run(inputs, outputs)
        else:
            with self._run_lock:
                results = self._run_with_state(plan, inputs, outputs)
        if self.profiler is not None:
            self.profiler.add("Execute", "", started, time.perf_counter())
        if self._settings.after_run is not None:
            self._settings.after_run()
        return results

    def close(self) -> None:
        """Give prepared memory back; executions under way come to their end, others fail."""
        with self._lock:
            self._is_closed = True
            self._plans.clear()
            self._latest = None

    def output_infos(self, shapes: Sequence[tuple[int, ...]]) -> tuple[TensorInfo, ...]:
        """Info of each output for some input shapes; what depends on values is not known."""
        return self._latest_plan(tuple(shapes)).result_infos[: len(self.graph.outputs)]

    def _latest_plan(self, key: PlanKey) -> Plan:
        """The plan for some input shapes, without a lock where they are the latest ones."""
        latest = self._latest
        if latest is not None and latest[0] == key:
            return latest[1]
        if self._is_closed:
            raise InvalidArgumentError("the network has been unloaded", fix="Load it again")
        plan = self._plan(key)
        self._latest = (key, plan)
        return plan

    def _run_with_state(
        self, plan: Plan, inputs: Sequence[Array], outputs: Sequence[Array | None] | None
    ) -> list[Array]:
        """Execute with the variables as further sources and results."""
        num_outputs = len(self.graph.outputs)
        given = None if outputs is None else [*outputs, *[None] * len(self._state)]
        results = plan.run([*inputs, *self._state], given)
        self._state = results[num_outputs:]
        return results[:num_outputs]

    def reset_state(self) -> None:
        """Give every variable its initial elements again."""
        with self._run_lock:
            self._state = [variable.initial for variable in self.graph.variables]

    def _plan(self, key: PlanKey) -> Plan:
        """The plan for some input shapes, made if need be."""
        with self._lock:
            plan = self._plans.get(key)
            if plan is None:
                graph = self.graph
                if not graph.is_fully_shaped:
                    graph = specialize(graph, key, (), self._evaluator)  # type: ignore[arg-type]
                plan = self._make_plan(graph)
            return self._keep(key, plan)

    def _keep(self, key: PlanKey, plan: Plan) -> Plan:
        """Put a plan at the fresh end of the cache."""
        self._plans[key] = plan
        self._plans.move_to_end(key)
        while len(self._plans) > self._settings.plan_cache_size:
            self._plans.popitem(last=False)
        return plan

    def _rest_plan(self, key: PlanKey, graph: Graph, values: Sequence[Array | None]) -> Plan:
        """The plan for what is left of a network once some values are known."""
        with self._lock:
            plan = self._plans.get(key)
            if plan is None:
                shapes = [value.info.known_shape for value in graph.inputs]
                # The plan keeps the values, and the caller may be handed the same arrays.
                kept = [None if value is None else value.copy() for value in values]
                rest = specialize(graph, shapes, kept, self._evaluator)
                plan = self._make_plan(rest)
            return self._keep(key, plan)

    def _make_plan(self, graph: Graph) -> Plan:
        """Prepare a specialised graph."""
        if graph.is_fully_shaped:
            return self._static_plan(graph)
        split = split_at_unknown(graph)
        return StepwisePlan(split, self._static_plan(split.head), self._rest_plan)

    def _static_plan(self, graph: Graph) -> StaticPlan:
        """Optimise and prepare; a backend that fails at a layer loses it to the next one.

        Notes
        -----
        What fails for these shapes is no reason to leave the backend out for others.
        """
        excluded = dict(self._excluded)
        while True:
            handles = {name: session.handles for name, session in self._sessions.items()}
            network = optimize_graph(
                graph, self._backends, self._settings.optimizer, excluded, handles
            )
            self._check_memory(network)
            try:
                plan = StaticPlan(network, self._sessions, self.profiler)
            except PreparationError as error:
                for failure in error.failures:
                    self._exclude(network, failure, excluded)
                continue
            _log.info("%s", network.placement)
            return plan

    def _check_memory(self, network: OptimizedNetwork) -> None:
        """Check what one execution needs against the limit, before anything is allocated."""
        for value in network.graph.values():
            if not value.info.is_addressable:
                raise MemoryLimitError(
                    "a tensor without elements has dimensions that no array can have",
                    where=f"'{value.name}'",
                    actual=str(value.info),
                )
        results = sum(value.info.size_bytes for value in network.graph.results)
        needed = network.placement.peak_bytes + results
        if needed > self._settings.memory_limit_bytes:
            raise MemoryLimitError(
                "one execution of the network needs too much memory",
                expected=f"at most {self._settings.memory_limit_bytes} bytes (memory_limit_bytes)",
                actual=f"{needed} bytes",
            )

    def _exclude(
        self, network: OptimizedNetwork, failure: PreparationFailure, excluded: Exclusions
    ) -> None:
        """Add what a backend could not prepare to what it is not asked for again.

        Raises
        ------
        ArmpyError
            If the backend is the last one and raised it itself: nobody else can be asked.
        """
        cause = failure.cause
        is_last = failure.backend_id == self._backends[-1].backend_id
        if is_last and not isinstance(cause, BackendError):
            cause.where = cause.where.removeprefix(f"{failure.backend_id} / ")
            raise located(lambda: f"{failure.backend_id} / {failure.layer.where}", cause)
        _log.warning(
            "%s; it moves to the next backend",
            failure,
            exc_info=cause if wants_traceback(_log) else None,
        )
        answer = Support.no(ReasonCode.PREPARATION, f"preparation failed: {cause}")
        for layer_id in network.origins.get(failure.layer.id, (failure.layer.id,)):
            excluded[layer_id, failure.backend_id] = answer

    def describe_shapes(self) -> str:
        """Names and shapes of the inputs, for messages."""
        return ", ".join(f"{v.name}{format_shape(v.info.shape)}" for v in self.graph.inputs)
