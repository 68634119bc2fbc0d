"""A network that is ready to run, whatever its inputs' shapes turn out to be."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import TypeAlias

from armpy.backend import IBackendInternal, IMemoryManager, IWorkloadFactory, ReasonCode, Support
from armpy.errors import ArmpyError, InvalidArgumentError
from armpy.graph import Graph
from armpy.ops.operation import Array
from armpy.optimizer import (
    Evaluator,
    OptimizedNetwork,
    OptimizerOptions,
    Placement,
    optimize_graph,
    specialize,
)
from armpy.optimizer.assign import Exclusions
from armpy.runtime.static_plan import PreparationError, StaticPlan
from armpy.runtime.stepwise_plan import StepwisePlan, split_at_unknown
from armpy.tensor import format_shape
from armpy.types import BackendId

_log = logging.getLogger("armpy.runtime")

Plan: TypeAlias = StaticPlan | StepwisePlan
PlanKey: TypeAlias = tuple[object, ...]

DEFAULT_PLAN_CACHE_SIZE = 8
"""How many input shapes a loaded network stays prepared for."""


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
    ) -> None:
        if plan_cache_size < 1:
            raise InvalidArgumentError(
                "the plan cache is too small", expected="1 or more", actual=str(plan_cache_size)
            )
        self.graph = specialize(graph, evaluator=evaluator)
        self._backends = tuple(backends)
        self._evaluator = evaluator
        self._options = options
        self._plans: OrderedDict[PlanKey, Plan] = OrderedDict()
        self._cache_size = plan_cache_size
        self._lock = threading.RLock()
        self._run_lock = threading.Lock()
        self._excluded: Exclusions = {}
        self._managers = {b.backend_id: b.create_memory_manager() for b in self._backends}
        self._factories: dict[BackendId, IWorkloadFactory] = {
            b.backend_id: b.create_workload_factory(self._managers[b.backend_id])
            for b in self._backends
        }
        self._memory_users = _MemoryUsers([m for m in self._managers.values() if m is not None])
        self._state = [variable.initial for variable in self.graph.variables]
        self._latest: tuple[PlanKey, Plan] | None = None
        self.prepare(self.default_shapes())

    def default_shapes(self) -> list[tuple[int, ...]] | None:
        """The shape of each input to prepare for; None if one is not known."""
        shapes = []
        for value, default in zip(self.graph.inputs, self.graph.default_shapes, strict=True):
            shape = value.info.known_shape if value.info.is_fully_shaped else default
            if shape is None:
                return None
            shapes.append(shape)
        return shapes

    def prepare(self, shapes: Sequence[tuple[int, ...]] | None) -> None:
        """Make the plan for some input shapes now instead of at the first call.

        Parameters
        ----------
        shapes : sequence of tuple of int, or None
            One per input; with None only what needs no shapes is checked.
        """
        if shapes is None:
            return
        key: PlanKey = tuple(shapes)
        self._latest = (key, self._plan(key))

    @property
    def optimized(self) -> OptimizedNetwork | None:
        """The optimised network of the latest plan; None before the first one."""
        return None if self._latest is None else self._latest[1].network

    @property
    def placement(self) -> Placement | None:
        """The placement report of the latest plan; None before the first one."""
        return None if self.optimized is None else self.optimized.placement

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
        key: PlanKey = tuple(array.shape for array in inputs)
        latest = self._latest
        if latest is not None and latest[0] == key:
            plan = latest[1]
        else:
            plan = self._plan(key)
            self._latest = (key, plan)
        with self._memory_users:
            if not self._state:
                return plan.run(inputs, outputs)
            with self._run_lock:
                return self._run_with_state(plan, inputs, outputs)

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
                rest = specialize(graph, shapes, values, self._evaluator)
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
            try:
                plan = StaticPlan(network, self._factories)
            except PreparationError as failure:
                self._exclude(network, failure)
                continue
            _log.info("%s", network.placement)
            return plan

    def _exclude(self, network: OptimizedNetwork, failure: PreparationError) -> None:
        """Remember what a backend could not prepare.

        Raises
        ------
        ArmpyError
            If the backend is the last one and raised it: there is nobody else to ask.
        """
        cause = failure.__cause__
        if failure.backend_id == self._backends[-1].backend_id and isinstance(cause, ArmpyError):
            raise cause
        _log.warning("%s; it moves to the next backend", failure, exc_info=failure)
        answer = Support.no(ReasonCode.PREPARATION, f"preparation failed: {failure.__cause__}")
        for layer_id in network.origins.get(failure.layer.id, (failure.layer.id,)):
            self._excluded[layer_id, failure.backend_id] = answer

    def describe_shapes(self) -> str:
        """Names and shapes of the inputs, for messages."""
        return ", ".join(f"{v.name}{format_shape(v.info.shape)}" for v in self.graph.inputs)


class _MemoryUsers:
    """Acquires backends' memory for the first of overlapping executions until the last ends."""

    def __init__(self, managers: Sequence[IMemoryManager]) -> None:
        self._managers = managers
        self._users = 0
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        if self._managers:
            with self._lock:
                if self._users == 0:
                    for manager in self._managers:
                        manager.acquire()
                self._users += 1

    def __exit__(self, *exc_info: object) -> None:
        if self._managers:
            with self._lock:
                self._users -= 1
                if self._users == 0:
                    for manager in self._managers:
                        manager.release()
