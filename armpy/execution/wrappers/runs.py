"""Runs of programs with whatever is to be done around them: variables, places, profiles, marks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from armpy.backend import Cancellation, cancellable, current_cancellation
from armpy.core.system_trace import trace_section
from armpy.core.text_memory import limited_text
from armpy.errors import InvalidArgumentError
from armpy.execution.programs.state import SharedState, VariableState
from armpy.execution.scheduling.stop_signal import acquire, commit
from armpy.execution.steps.control_flow import Targets
from armpy.graph import Graph, Variable
from armpy.ops.operation import Array
from armpy.profiling import WatchedLock, measured_execution
from armpy.tensor import format_shape

if TYPE_CHECKING:
    from armpy.execution.programs.program import Bind, Run
    from armpy.profiling import Profiler


class Runs(NamedTuple):
    """A program's execution, once and many times with the same arrays; wrappers add to it."""

    run: Run  # executes once
    # Prepares many executions; left out where arrays or steps are known only when they run.
    bind: Bind | None = None

    @property
    def binding(self) -> Bind:
        """Return a binding that prepares executions as far as they can be prepared."""
        return self.bind or _binds_run(self.run)


def _binds_run(run: Run) -> Bind:
    """Prepare executions whose arrays or steps are known only when they run."""

    def bind(sources: Sequence[Array], results: Targets) -> Callable[[], Sequence[Array]]:
        # Copied for each execution, which puts new arrays where there are none.
        targets: list[Array | None] = [*results]
        cancellation = current_cancellation()

        def execute() -> Sequence[Array]:
            if cancellation is None or current_cancellation() is cancellation:
                return run(sources, [*targets], cancellation)
            with cancellable(cancellation):
                return run(sources, [*targets], cancellation)

        return execute

    return bind


def with_state(
    runs: Runs,
    graph: Graph,
    shared_state: SharedState,
    state: VariableState,  # the network's part of it
    *,
    is_static: bool,  # whether it is a static program: no other program writes its arrays
    is_profiled: bool,  # whether the profiler records waiting for the variables
) -> Runs:
    """Execute a program with variables as further sources and results, one execution at a time."""
    run_program, variables, num_outputs = runs.run, graph.variables, len(graph.outputs)
    lock = WatchedLock(shared_state.lock, "the variables") if is_profiled else shared_state.lock

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
            spare = [None] * len(variables) if state.spare is None else state.spare
            targets = [*([None] * num_outputs if results is None else results), *spare]
            arrays = run_program([*sources, *state.arrays], targets, cancellation)
            following = arrays[num_outputs:]
            if not is_static:
                _check_state(variables, following)
            # Before the variables change: an execution that was stopped leaves them as they were.
            commit(cancellation)
            state.advance(following, is_own=is_static)
        finally:
            lock.release()
        return arrays[:num_outputs]

    if runs.bind is None or not is_static:
        return Runs(run)
    return Runs(run, partial(_bind_both, run, runs.bind, shared_state, state, lock))


def _bind_both(
    run: Run,
    bind_program: Bind,
    shared_state: SharedState,
    state: VariableState,
    lock: threading.Lock | WatchedLock,
    sources: Sequence[Array],
    results: Targets,
) -> Callable[[], Sequence[Array] | None]:
    """Prepare executions with the two sets of arrays that variables are in by turns.

    Until the state has both, and after whatever else put other arrays there, executions are those
    of `run`, or are prepared once more.
    """
    unprepared = _binds_run(run)(sources, results)
    if any(target is None for target in results):
        return unprepared
    cancellation = current_cancellation()
    # The latest two, with the lists that they are for.
    prepared: list[tuple[list[Array], list[Array], Callable[[], object]]] = []

    def prepare(arrays: list[Array], spare: list[Array]) -> Callable[[], object]:
        for known_arrays, known_spare, call in prepared:
            if known_arrays is arrays and known_spare is spare:
                return call
        with nullcontext() if cancellation is None else cancellable(cancellation):
            call = bind_program([*sources, *arrays], [*results, *spare])
        prepared[:] = [*prepared[-1:], (arrays, spare, call)]
        return call

    def execute() -> Sequence[Array] | None:
        acquire(lock, cancellation)
        try:
            pair = state.pair if shared_state.latest is state else None
            if pair is not None:
                prepare(*pair)()
                commit(cancellation)
                state.advance(pair[1], is_own=True)
                return None
        finally:
            lock.release()
        return unprepared()

    return execute


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


def observed(runs: Runs, profiler: Profiler | None, after_run: Callable[[], None] | None) -> Runs:
    """Notify a profiler, and other observers of the end of an execution, also of a failed one."""
    run, bind = runs

    def run_observed(
        sources: Sequence[Array],
        results: Targets | None = None,
        cancellation: Cancellation | None = None,
    ) -> list[Array]:
        try:
            if profiler is None:
                return run(sources, results, cancellation)
            # Waits for other executions are its time as well.
            return measured_execution(profiler, run, sources, results, cancellation)
        finally:
            if after_run is not None:
                after_run()

    if bind is None:
        return Runs(run_observed)

    def bind_observed(
        sources: Sequence[Array], results: Targets
    ) -> Callable[[], Sequence[Array] | None]:
        execute = bind(sources, results)

        def execute_observed() -> Sequence[Array] | None:
            try:
                return execute() if profiler is None else measured_execution(profiler, execute)
            finally:
                if after_run is not None:
                    after_run()

        return execute_observed

    return Runs(run_observed, bind_observed)


def in_places(
    runs: Runs,
    places: threading.Semaphore,  # shared by all executions of the network
    *,
    is_profiled: bool,  # whether waits are recorded in the profile
) -> Runs:
    """Let each execution wait for a place, unless it is stopped before."""
    lock = WatchedLock(places, "a place of the network") if is_profiled else places

    @contextmanager
    def place(cancellation: Cancellation | None) -> Iterator[None]:
        acquire(lock, cancellation)
        try:
            yield
        finally:
            lock.release()

    return _within(runs, place)


def with_limited_text(
    runs: Runs,
    limit_bytes: int,  # most that the text of an execution may take up
) -> Runs:
    """Limit the text of each execution."""
    return _within(runs, lambda _: limited_text(limit_bytes))


def traced(
    runs: Runs,
    number: int,  # of the loaded network
) -> Runs:
    """Mark each execution of a loaded network as a section."""
    name = f"armpy execute network {number}"
    return _within(runs, lambda _: trace_section(name))


def _within(
    runs: Runs, context: Callable[[Cancellation | None], AbstractContextManager[None]]
) -> Runs:
    """Execute in a context, which is made for each execution from its cancellation."""
    run, bind = runs

    def run_within(
        sources: Sequence[Array],
        results: Targets | None = None,
        cancellation: Cancellation | None = None,
    ) -> list[Array]:
        with context(cancellation):
            return run(sources, results, cancellation)

    if bind is None:
        return Runs(run_within)

    def bind_within(
        sources: Sequence[Array], results: Targets
    ) -> Callable[[], Sequence[Array] | None]:
        execute = bind(sources, results)

        def execute_within() -> Sequence[Array] | None:
            with context(current_cancellation()):
                return execute()

        return execute_within

    return Runs(run_within, bind_within)
