"""Runs of plans with whatever is to be done around them: variables, profiles, bound arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from armpy.backend import Cancellation, cancellable, current_cancellation
from armpy.errors import InvalidArgumentError
from armpy.execution.programs.protocols import Bind, Run
from armpy.execution.programs.state import SharedState, VariableState
from armpy.execution.scheduling.stop_signal import acquire, commit
from armpy.execution.steps.control_flow import Targets
from armpy.graph import Variable
from armpy.ops.operation import Array
from armpy.profiling import Profiler, WatchedLock, measured_execution
from armpy.tensor import format_shape


def with_state(
    run_plan: Run,
    num_outputs: int,
    is_static: bool,
    variables: Sequence[Variable],
    shared_state: SharedState,
    state: VariableState,
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
            # Before the variables change: an execution that was stopped leaves them as they were.
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
    """Plan that backends prepare executions of, too."""

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
        # Copied for each execution, which puts new arrays where there are none.
        given: list[Array | None] = [*results]
        cancellation = current_cancellation()

        def execute() -> Sequence[Array]:
            if cancellation is None or current_cancellation() is cancellation:
                return run(sources, [*given], cancellation)
            with cancellable(cancellation):
                return run(sources, [*given], cancellation)

        return execute

    return bind
