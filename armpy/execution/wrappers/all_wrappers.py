"""Surrounding of plans: what every execution of a loaded network does besides its steps."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, NoReturn

from armpy.backend import Capability, has_matching_capability
from armpy.core.vlog import is_on
from armpy.errors import InvalidArgumentError
from armpy.execution.arrays.importing_slots import ImportingInputSlot, ImportingOutputSlot
from armpy.execution.arrays.slots import InputSlot, OutputSlot
from armpy.execution.programs.bound_program import BoundProgram, PlanKey
from armpy.execution.programs.held_memory import HeldMemory
from armpy.execution.programs.importing_plan import ImportingPlan
from armpy.execution.programs.protocols import ProgramPlan, Run
from armpy.execution.programs.state import SharedState, VariableState
from armpy.execution.programs.static_plan import StaticPlan
from armpy.execution.programs.stepwise_plan import StepwisePlan
from armpy.execution.settings import NetworkSettings
from armpy.execution.steps.control_flow import Shapes
from armpy.execution.wrappers.fallback import FallbackPlan, PlanSource
from armpy.execution.wrappers.protected import binds_protected, check_plan, protected
from armpy.execution.wrappers.state_runs import binds_plan, binds_run, observed, with_state
from armpy.graph import Graph
from armpy.ops.backend_internal import MemCopy
from armpy.plugins.proxy.guard import BackendProxy

if TYPE_CHECKING:
    from armpy.execution.wrappers.debugging import DebugCallback


def _refuse(*_: object) -> NoReturn:
    """Execute nothing in working memory that the application has not made."""
    raise InvalidArgumentError(
        "the network is executed in working memory of the application's (external_memory)",
        fix="Make some with create_working_memory, and run in it",
    )


class ExecutionWrappers:
    """Wrappers of every execution of a loaded network.

    Parameters
    ----------
    graph : Graph
    settings : NetworkSettings
    shared_state : SharedState
    state : VariableState
        The network's part of it.
    backends : sequence of BackendProxy
    number : int
        That tells the loaded network from others.

    Notes
    -----
    None of what it makes holds the loaded network: networks go with the last reference to them.
    """

    def __init__(
        self,
        graph: Graph,
        settings: NetworkSettings,
        shared_state: SharedState,
        state: VariableState,
        backends: Sequence[BackendProxy] = (),
        number: int = 0,
    ) -> None:
        self._graph = graph
        self._settings = settings
        self._shared_state = shared_state
        self._state = state
        self._number = number
        self._cancellable = {one.get_id() for one in backends if _is_cancellable(one)}

    def prepared(
        self,
        shapes: Shapes,
        plan: ProgramPlan,
        memory: HeldMemory | None = None,
        *,
        falls_back: tuple[PlanSource, PlanKey] | None = None,
        debug: tuple[Graph, DebugCallback] | None = None,
    ) -> BoundProgram:
        """Surround a plan.

        Parameters
        ----------
        shapes : tuple of tuple of int
        plan : ProgramPlan
        memory : HeldMemory, optional
            What it is executed in; some of the plan's own if left out.
        falls_back : tuple of PlanSource and PlanKey, optional
            Whose plan it is, if another one may take its place when a backend fails.
        debug : tuple of Graph and callable, optional
            What is told to whom.
        """
        run: Run = plan.run if memory is None else memory.run
        is_static = isinstance(plan, (StaticPlan, ImportingPlan))
        bound: StaticPlan | ImportingPlan | FallbackPlan | None = None
        if isinstance(plan, (StaticPlan, ImportingPlan)):
            bound = plan
        falls_back_now = falls_back if self._settings.properties.on_failure == "next" else None
        if falls_back_now is not None:
            # Below state and profiling: a failed attempt changes no variable, and its time counts.
            again = FallbackPlan(*falls_back_now, plan, run)
            run, bound = again.run, bound and again
        result_infos = plan.result_infos
        if debug is not None:
            from armpy.execution.wrappers.debugging import DebugPlan  # noqa: PLC0415 - few debug

            told = DebugPlan(debug[0], run, result_infos, debug[1])
            run, bound, result_infos, is_static = told.run, None, told.result_infos, False
        profiler, after_run = self._settings.profiler, self._settings.after_run
        if self._graph.variables:
            about = self._graph.variables, self._shared_state, self._state
            num_outputs = len(result_infos) - len(self._graph.variables)
            is_profiled = profiler is not None
            run = with_state(run, num_outputs, is_static, *about, is_profiled=is_profiled)
        if profiler is not None or after_run is not None:
            run = observed(run, profiler, after_run)
        if is_on.execution:
            from armpy.execution.wrappers.logged import logged_run  # noqa: PLC0415 - few log

            run, bound = logged_run(run, self._number), None
        # Variables have other arrays from call to call, so backends can prepare nothing with them.
        if bound is not None and memory is None and not self._graph.variables:
            bind = binds_plan(bound, profiler, after_run)
        else:
            bind = binds_run(run)
        if self._settings.properties.external_memory and memory is None:
            run = bind = _refuse
        if self._settings.protected_mode:
            # Outermost: a tensor that is not protected gets no further.
            check_plan(plan)
            run, bind = protected(run), binds_protected(bind)
        pairs = zip(self._graph.output_names, result_infos, strict=False)
        source = self._settings.properties.output_source
        outputs = tuple(
            [
                ImportingOutputSlot(name, info, source) if source else OutputSlot(name, info)
                for name, info in pairs
            ]
        )
        # Callbacks are the application's own code, which is not run elsewhere.
        stops = debug is not None or (falls_back_now is None and self._stops_in_place(plan))
        return BoundProgram(shapes, plan, run, bind, stops, self.input_slots(shapes), outputs)

    def _stops_in_place(self, plan: ProgramPlan) -> bool:
        """Whether all that a plan runs stops soon when it is told so."""
        if isinstance(plan, StepwisePlan):  # what it runs is planned on the way
            return False
        # Copies are the core's own and cannot be stopped, but they are short.
        placed = plan.network.backend_ids
        return all(
            placed[layer.id] in self._cancellable or isinstance(layer.operation, MemCopy)
            for layer in plan.layers
        )

    def input_slots(self, shapes: Sequence[tuple[int, ...] | None]) -> tuple[InputSlot, ...]:
        """What each input takes, in place in some shapes or, for None, converted."""
        limit_bytes = self._settings.memory_limit_bytes
        pairs = zip(self._graph.inputs, shapes, strict=True)
        source = self._settings.properties.input_source
        if source:
            slot = partial(ImportingInputSlot, limit_bytes=limit_bytes, sources=source)
            return tuple([slot(v.name, v.info, shape) for v, shape in pairs])
        return tuple([InputSlot(v.name, v.info, shape, limit_bytes) for v, shape in pairs])


def _is_cancellable(backend: BackendProxy) -> bool:
    """Whether a backend's executions stop soon when they are told so."""
    capabilities = backend.get_capabilities()
    return has_matching_capability(Capability.CANCELLABLE_EXECUTION, True, capabilities)
