"""Loaded networks prepared for certain input shapes: what they take, and how they are executed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from armpy.backend import Cancellation, cancellable, current_cancellation
from armpy.errors import InvalidArgumentError
from armpy.graph import Variable
from armpy.ops.operation import Array
from armpy.profiling import Profiler, WatchedLock, measured_execution
from armpy.runtime.control_flow import Shapes, Targets
from armpy.runtime.slots import InputSlot, OutputSlot
from armpy.runtime.state import SharedState, State
from armpy.runtime.static_plan import StaticPlan
from armpy.runtime.stepwise_plan import StepwisePlan
from armpy.runtime.stopping import acquire, commit
from armpy.tensor import format_shape

Plan: TypeAlias = StaticPlan | StepwisePlan
PlanKey: TypeAlias = tuple[object, ...]
"""What tells a plan of a loaded network from its others: the input shapes, most of all."""


class Run(Protocol):
    """What executes once."""

    def __call__(
        self,
        sources: Sequence[Array],
        results: Targets | None = None,
        cancellation: Cancellation | None = None,
        /,
    ) -> list[Array]:
        """Execute once; parameters and result as for `StaticPlan.run`."""


class Bind(Protocol):
    """What prepares many executions with the same arrays."""

    def __call__(
        self, sources: Sequence[Array], results: Targets, /
    ) -> Callable[[], Sequence[Array] | None]:
        """Prepare executions.

        Parameters
        ----------
        sources, results : sequence of ndarray
            As for `StaticPlan.run`, inputs and outputs only.

        Returns
        -------
        callable
            Executes once, by one thread at a time; gives the results if some were made anew.
        """


class Prepared:
    """A loaded network prepared for some input shapes.

    Parameters
    ----------
    shapes : tuple of tuple of int
    plan : Plan
    run : callable
        Executes the plan, with whatever is to be done around that; takes inputs and outputs only.
    bind : callable
        Prepares many such executions, which the current cancellation stops.
    stops_in_place : bool
        Whether executions stop soon when they are told so.
    inputs : tuple of InputSlot
    outputs : tuple of OutputSlot

    Attributes
    ----------
    importing : dict of tuple to Prepared
        The same network with some inputs and outputs imported, by what these are.
    """

    __slots__ = (
        "bind",
        "importing",
        "inputs",
        "outputs",
        "plan",
        "run",
        "shapes",
        "stops_in_place",
    )

    def __init__(
        self,
        shapes: Shapes,
        plan: Plan,
        run: Run,
        bind: Bind,
        stops_in_place: bool,
        inputs: tuple[InputSlot, ...],
        outputs: tuple[OutputSlot, ...],
    ) -> None:
        self.shapes = shapes
        self.plan = plan
        self.run = run
        self.bind = bind
        self.stops_in_place = stops_in_place
        self.inputs = inputs
        self.outputs = outputs
        self.importing: dict[tuple[object, ...], Prepared] = {}


def with_state(
    run_plan: Run,
    num_outputs: int,
    is_static: bool,
    variables: Sequence[Variable],
    shared_state: SharedState,
    state: State,
    *,
    is_profiled: bool = False,
) -> Run:
    """Execute a plan with variables as further sources and results, one execution at a time."""
    lock = WatchedLock(shared_state.lock, "the variables") if is_profiled else shared_state.lock
    # Only a static plan writes arrays that it gives to nobody else.

    def run(
        sources: Sequence[Array],
        results: Targets | None = None,
        cancellation: Cancellation | None = None,
    ) -> list[Array]:
        # From reading the variables to writing them: in between, an execution of any network
        # that shares them would read what is about to change, and its own change would be lost.
        acquire(lock, cancellation)
        try:
            if shared_state.latest is not state:
                shared_state.hand_over(state)
            given = [*([None] * num_outputs if results is None else results), *state.spare]
            made = run_plan([*sources, *state.arrays], given, cancellation)
            following = made[num_outputs:]
            if not is_static:
                _check_state(variables, following)
            commit(cancellation)
            state.advance(following, is_own=is_static)
        finally:
            lock.release()
        return made[:num_outputs]

    return run


def _check_state(variables: Sequence[Variable], arrays: Sequence[Array]) -> None:
    """Check what variables are to hold; shapes that depend on values are known only now."""
    for variable, array in zip(variables, arrays, strict=True):
        if array.shape != variable.initial.shape:
            raise InvalidArgumentError(
                "a variable is assigned a tensor of another shape",
                where=f"variable '{variable.value.name}'",
                expected=format_shape(variable.initial.shape),
                actual=format_shape(array.shape),
            )


def observed(run: Run, profiler: Profiler | None, after_run: Callable[[], None] | None) -> Run:
    """Tell a profiler, and whoever else wants to know, when an execution has come to its end."""

    def run_observed(
        sources: Sequence[Array],
        results: Targets | None = None,
        cancellation: Cancellation | None = None,
    ) -> list[Array]:
        if profiler is None:
            made = run(sources, results, cancellation)
        else:  # waits for other executions are its time as well
            made = measured_execution(profiler, run, sources, results, cancellation)
        if after_run is not None:
            after_run()
        return made

    return run_observed


class _Bindable(Protocol):
    """What backends prepare executions of, too."""

    def bind(self, sources: Sequence[Array], results: Sequence[Array]) -> Callable[[], None]:
        """As `StaticPlan.bind`."""


def binds_plan(
    plan: _Bindable, profiler: Profiler | None, after_run: Callable[[], None] | None
) -> Bind:
    """Prepare executions of a plan that the backends prepare, too."""

    def bind(sources: Sequence[Array], results: Targets) -> Callable[[], None]:
        execute = plan.bind(sources, results)  # type: ignore[arg-type]  # all shapes are known
        if profiler is None and after_run is None:
            return execute

        def execute_observed() -> None:
            if profiler is None:
                execute()
            else:
                measured_execution(profiler, execute)
            if after_run is not None:
                after_run()

        return execute_observed

    return bind


def binds_run(run: Run) -> Bind:
    """Prepare executions whose arrays or steps are known only when they run."""

    def bind(sources: Sequence[Array], results: Targets) -> Callable[[], Sequence[Array]]:
        given: list[Array | None] = [*results]
        cancellation = current_cancellation()

        def execute() -> Sequence[Array]:
            if cancellation is None or current_cancellation() is cancellation:
                return run(sources, [*given], cancellation)
            with cancellable(cancellation):
                return run(sources, [*given], cancellation)

        return execute

    return bind
