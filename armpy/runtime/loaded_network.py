"""A network that is ready to run, whatever its inputs' shapes turn out to be."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import TypeAlias

from armpy.backend import IBackendInternal, IMemoryManager, IWorkloadFactory, ReasonCode, Support
from armpy.errors import (
    ArmpyError,
    BackendError,
    InvalidArgumentError,
    LayerValidationError,
    MemoryLimitError,
)
from armpy.graph import Graph, verify_graph
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
from armpy.runtime.boundary import call_backend
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


class LoadedNetwork:
    """A graph, its backends, and a plan for every set of shapes it was lately called with.

    Parameters
    ----------
    graph : Graph
        Dimensions may be unknown.
    backends : sequence of IBackendInternal
        Most preferred first.
    evaluator : Evaluator, optional
        Folds constants.
    options : OptimizerOptions
    plan_cache_size : int
        Number of plans kept; the least recently used one goes first.
    memory_limit_bytes : int
        Most working memory and results that one execution may need.

    Raises
    ------
    MemoryLimitError
        If more is needed for the default shapes.

    Notes
    -----
    A fully shaped graph runs as a `StaticPlan`. One whose shapes depend on values runs as
    a `StepwisePlan`. Executions run side by side, except those of networks with variables,
    which come one after the other.
    """

    def __init__(
        self,
        graph: Graph,
        backends: Sequence[IBackendInternal],
        evaluator: Evaluator | None,
        options: OptimizerOptions,
        plan_cache_size: int = DEFAULT_PLAN_CACHE_SIZE,
        memory_limit_bytes: int = DEFAULT_MEMORY_LIMIT_BYTES,
    ) -> None:
        if plan_cache_size < 1:
            raise InvalidArgumentError(
                "the plan cache is too small", expected="1 or more", actual=str(plan_cache_size)
            )
        verify_graph(graph)
        self.graph = specialize(graph, evaluator=evaluator)
        self._backends = tuple(backends)
        self._evaluator = evaluator
        self._options = options
        self._plans: OrderedDict[PlanKey, Plan] = OrderedDict()
        self._cache_size = plan_cache_size
        self._memory_limit_bytes = memory_limit_bytes
        self._lock = threading.RLock()
        self._run_lock = threading.Lock()
        self._excluded: Exclusions = {}
        self._managers: dict[BackendId, IMemoryManager] = {}
        self._factories: dict[BackendId, IWorkloadFactory] = {}
        for backend in self._backends:
            self._make_factory(backend)
        self._memory_users = _MemoryUsers(self._managers)
        self._state = [variable.initial for variable in self.graph.variables]
        self._latest: tuple[PlanKey, Plan] | None = None
        self._prepare_default()

    def _make_factory(self, backend: IBackendInternal) -> None:
        """Make a backend's memory manager and factory; one that fails gets no layers."""
        backend_id = backend.backend_id
        try:
            manager = call_backend(backend_id, backend.create_memory_manager)
            factory = call_backend(backend_id, backend.create_workload_factory, manager)
            if not isinstance(factory, IWorkloadFactory):
                raise BackendError(
                    f"create_workload_factory returned {factory!r}", where=backend_id
                )
        except ArmpyError as error:
            _log.warning("%s; its layers fall back", error, exc_info=True)
            answer = Support.no(ReasonCode.DEVICE, str(error))
            self._excluded |= {(layer.id, backend_id): answer for layer in self.graph.layers}
            return
        self._factories[backend_id] = factory
        if manager is not None:
            self._managers[backend_id] = manager

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
        with self._memory_users:
            if not self._state:
                return plan.run(inputs, outputs)
            with self._run_lock:
                return self._run_with_state(plan, inputs, outputs)

    def output_infos(self, shapes: Sequence[tuple[int, ...]]) -> tuple[TensorInfo, ...]:
        """Info of each output for some input shapes; what depends on values is not known."""
        return self._latest_plan(tuple(shapes)).result_infos[: len(self.graph.outputs)]

    def _latest_plan(self, key: PlanKey) -> Plan:
        """The plan for some input shapes, without a lock where they are the latest ones."""
        latest = self._latest
        if latest is not None and latest[0] == key:
            return latest[1]
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
        while len(self._plans) > self._cache_size:
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
        """Optimise and prepare; a backend that fails at a layer loses it to the next one."""
        while True:
            network = optimize_graph(graph, self._backends, self._options, self._excluded)
            self._check_memory(network)
            try:
                plan = StaticPlan(network, self._factories)
            except PreparationError as error:
                for failure in error.failures:
                    self._exclude(network, failure)
                continue
            _log.info("%s", network.placement)
            return plan

    def _check_memory(self, network: OptimizedNetwork) -> None:
        """Check what one execution needs against the limit, before anything is allocated."""
        results = sum(value.info.size_bytes for value in network.graph.results)
        needed = network.placement.peak_bytes + results
        if needed > self._memory_limit_bytes:
            raise MemoryLimitError(
                "one execution of the network needs too much memory",
                expected=f"at most {self._memory_limit_bytes} bytes (memory_limit_bytes)",
                actual=f"{needed} bytes",
            )

    def _exclude(self, network: OptimizedNetwork, failure: PreparationFailure) -> None:
        """Remember what a backend could not prepare.

        Raises
        ------
        ArmpyError
            If the backend is the last one and raised it: there is nobody else to ask.
        """
        cause = failure.cause
        if failure.backend_id == self._backends[-1].backend_id and isinstance(cause, ArmpyError):
            raise located(lambda: f"{failure.backend_id} / {failure.layer.where}", cause)
        _log.warning("%s; it moves to the next backend", failure, exc_info=cause)
        answer = Support.no(ReasonCode.PREPARATION, f"preparation failed: {cause}")
        for layer_id in network.origins.get(failure.layer.id, (failure.layer.id,)):
            self._excluded[layer_id, failure.backend_id] = answer

    def describe_shapes(self) -> str:
        """Names and shapes of the inputs, for messages."""
        return ", ".join(f"{v.name}{format_shape(v.info.shape)}" for v in self.graph.inputs)


class _MemoryUsers:
    """Acquires backends' memory for the first of overlapping executions until the last ends."""

    def __init__(self, managers: Mapping[BackendId, IMemoryManager]) -> None:
        self._managers = managers
        self._users = 0
        self._held = ExitStack()
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        if self._managers:
            with self._lock:
                if self._users == 0:
                    self._acquire()
                self._users += 1

    def _acquire(self) -> None:
        """Acquire all or, if one of them raises, none."""
        with ExitStack() as stack:
            for backend_id, manager in self._managers.items():
                call_backend(backend_id, manager.acquire)
                stack.callback(call_backend, backend_id, manager.release)
            self._held = stack.pop_all()

    def __exit__(self, *exc_info: object) -> None:
        if self._managers:
            with self._lock:
                self._users -= 1
                if self._users == 0:
                    self._held.close()
