"""Limits of loops that backends execute themselves: the core stops one that takes too long.

Notes
-----
Only the backend can end a layer that is under way. So an execution with such a layer has a
thread and results of its own, and is abandoned when the time of the layer is up.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from armpy.backend import Cancellation, current_cancellation
from armpy.backend.control_flow import (
    begin_control_flow,
    current_timeout_s,
    end_control_flow,
    loop_timeout_s,
)
from armpy.compiler import OptimizedNetwork
from armpy.errors import ArmpyError, InvalidArgumentError
from armpy.execution import scheduling
from armpy.execution.programs.memory import StepMemory
from armpy.execution.scheduling.stop_signal import CancellationToken
from armpy.execution.steps.control_flow import Targets, timed_out
from armpy.execution.steps.session import BackendSession
from armpy.execution.steps.step import Inputs, Outputs, Step
from armpy.execution.steps.watched_steps import waiting
from armpy.graph import Layer
from armpy.ops.operation import Array
from armpy.plugins.proxy.guarded_call import named_error
from armpy.types import HOST, BackendId

if TYPE_CHECKING:
    from armpy.execution.programs.program import Run
    from armpy.execution.scheduling.executors import Executors
    from armpy.execution.scheduling.tasks import ExecutionFuture, ExecutionTask

_task: ContextVar[ExecutionTask[list[Array]] | None] = ContextVar("task", default=None)
"""The execution that a loop belongs to, for the code that has to stop it."""

# Far below the 10 ms within which a stop is promised to be effective.
_SLICE_S = 0.002
"""How long to wait for an execution before looking whether the one around it is stopped."""


def limited_layers(
    network: OptimizedNetwork, sessions: Mapping[BackendId, BackendSession]
) -> frozenset[int]:
    """Ids of the layers that loop on backends that do not keep the time-out of loops themselves."""
    backend_ids = network.backend_ids
    return frozenset(
        number for number in network.looping if not sessions[backend_ids[number]].keeps_loop_timeout
    )


def limited_steps(
    network: OptimizedNetwork,
    steps: Sequence[Step],  # one per layer, made for the network's time-out
    # Ids of the layers whose execution the core stops; the other backends stop themselves
    limited: AbstractSet[int],
    known: Container[int] = (),  # ids of the layers whose steps have a budget already
) -> list[Step]:
    """Steps whose loops have one budget of time each."""
    timed = {
        number
        for number in network.looping
        # The core's own control flow begins its budget itself.
        if number not in known and network.backend_ids[number] != HOST
    }
    return [
        _timed(step, network.backend_ids[layer.id], layer, is_stopped=layer.id in limited)
        if layer.id in timed
        else step
        for layer, step in zip(network.graph.layers, steps, strict=True)
    ]


def _timed(step: Step, backend_id: BackendId, layer: Layer, *, is_stopped: bool) -> Step:
    """A step whose budget of time begins with it, unless it lies in other control flow.

    Its execution may be stopped when the time is up.
    """
    where = f"{backend_id} / {layer.where}"
    timeout_s = loop_timeout_s()
    step = waiting(backend_id, step)

    def timed(call: Callable[[], object]) -> None:
        budget, token = begin_control_flow(timeout_s)
        try:
            limit_s = current_timeout_s(timeout_s)
            if limit_s is None or not is_stopped:
                call()
                return
            error = timed_out(limit_s, "no end")
            with _stopped_at(budget.end_s, named_error(where, error)):
                call()
        finally:
            end_control_flow(token)

    def execute(inputs: Inputs, outputs: Outputs) -> None:
        timed(lambda: step.execute(inputs, outputs))

    def bind(inputs: Inputs, outputs: Outputs) -> Callable[[], object]:
        return partial(timed, step.bind(inputs, outputs))

    return replace(step, execute=execute, bind=bind, for_arrays=None)


@contextmanager
def _stopped_at(end_s: float, error: ArmpyError) -> Iterator[None]:
    """Stop the execution that this belongs to with an error when the time is up."""
    task = _task.get()

    def stop() -> None:
        if task is not None:
            task.stop(reason=error)

    deadlines = scheduling.deadlines.deadlines
    watch = scheduling.deadlines.Watch(end_s, stop)
    deadlines.begin(watch)
    try:
        yield
    finally:
        deadlines.end(watch)


def run_apart(
    executors: Executors,
    work: Callable[[Cancellation], list[Array]],  # executes; is given what stops it
    # What stops the execution around it; the current one if there is none
    cancellation: Cancellation | None,
    *,
    # Whether it writes the caller's arrays. It is not abandoned then: an execution whose time is up
    # fails when its backend is done.
    in_place: bool = False,
) -> list[Array]:
    """Execute something on another thread, so that a loop in it can be abandoned.

    Raises ExecutionTimeoutError if a loop takes longer than it may.
    """

    def in_task(task: ExecutionTask[list[Array]]) -> list[Array]:
        token = _task.set(task)
        try:
            if in_place:
                task.enter_place()
            results = work(task.signal)
            # From here on a loop's time-out comes too late: the results are there.
            task.signal.commit()
            return results
        finally:
            _task.reset(token)

    task = scheduling.ExecutionTask(in_task, CancellationToken())
    future = task.submitted()
    try:
        # The thread's place is not counted: executions that wait here would take up all of them.
        executors.run_apart(task)
    # It may be under way, and no caller would wait for it.
    except BaseException:
        task.stop()
        raise
    return _wait(task, future, cancellation or current_cancellation())


class LoopLimits:
    """Limits of the loops that are executed in a working memory, for the core to stop them.

    Executions that write results `in_place`, where the caller has them, cannot be abandoned: those
    whose time is up fail when their backend is done.
    """

    def __init__(self, executors: Executors, *, in_place: bool) -> None:
        self._executors = executors
        self._in_place = in_place
        # A caller that gives up an execution and the thread that ends it agree on which frees.
        self._lock = threading.Lock()
        self._is_running = self._is_unwanted = False

    def apply_to(self, memory: StepMemory) -> None:
        """Execute in a memory with the limits from now on."""
        # A method in between would take longer, and few networks have such loops.
        memory.run = self._run_of(memory)  # type: ignore[method-assign,assignment]  # the same
        memory.leaves_alone = self._leaves_alone

    def _run_of(self, memory: StepMemory) -> Run:
        """Executions in a memory, which take place on another thread.

        They raise an `ExecutionTimeoutError` if a loop takes longer than it may.
        """
        # Weak, as the memory has this: the thread that executes in it holds it.
        reference = weakref.ref(memory)

        def run(
            sources: Sequence[Array],
            results: Targets | None = None,
            cancellation: Cancellation | None = None,
        ) -> list[Array]:
            memory = reference()
            assert memory is not None
            return self._run(memory, sources, results, cancellation)

        return run

    def _run(
        self,
        memory: StepMemory,
        sources: Sequence[Array],
        results: Targets | None,
        cancellation: Cancellation | None,
    ) -> list[Array]:
        # Into arrays of its own: an execution that was abandoned writes nothing that others have.
        in_place = results if self._in_place else None

        def work(signal: Cancellation) -> list[Array]:
            try:
                return StepMemory.run(memory, sources, in_place, signal)
            finally:
                self._end(memory)

        # Before it starts: a caller that frees the memory at once leaves it to the other thread.
        self._is_running = True
        try:
            outputs = run_apart(self._executors, work, cancellation, in_place=self._in_place)
        except InvalidArgumentError:  # the runtime is closed: nothing was begun
            self._is_running = False
            raise
        return outputs if in_place is not None or results is None else _taken(results, outputs)

    def _leaves_alone(self) -> bool:
        """Return whether unwanted memory has to wait for an execution, which frees it then."""
        with self._lock:
            self._is_unwanted = True
            return self._is_running

    def _end(self, memory: StepMemory) -> None:
        with self._lock:
            self._is_running = False
            if not self._is_unwanted:
                return
        memory.free()


def _taken(results: Targets, outputs: Sequence[Array]) -> list[Array]:
    """Results in the arrays that the caller has given for some of them."""
    arrays = []
    for target, array in zip(results, outputs, strict=True):
        if target is not None:
            target[...] = array
        arrays.append(array if target is None else target)
    return arrays


def _wait(
    task: ExecutionTask[list[Array]],
    future: ExecutionFuture[list[Array]],
    outer: Cancellation | None,
) -> list[Array]:
    """Wait for an execution, and stop it if the one around it is stopped."""
    if outer is None:
        return task.wait(future)
    try:
        while True:
            try:
                future.exception(_SLICE_S)
                break
            except TimeoutError:
                if outer.is_cancelled:
                    task.stop(reason=outer.error)
    # As after Ctrl-C: no caller waits for it any more.
    except BaseException:
        task.stop()
        raise
    return future.result()
