"""Executions that are started and not called, and calls that have deadlines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from armpy.execution.calls.run import CheckedCall, checked_call, shown
from armpy.execution.scheduling.stop_signal import CancellationToken, deadline_in
from armpy.execution.scheduling.tasks import ExecutionFuture, ExecutionTask
from armpy.ops.operation import Array
from armpy.types import Priority

if TYPE_CHECKING:
    from armpy.execution.calls.callee import LoadedCallee

Named: TypeAlias = dict[str, Array]
Finish: TypeAlias = Callable[[Named], Named]


def start(
    network: LoadedCallee,
    arrays: Sequence[Array],
    outputs: Mapping[str, object] | None = None,
    *,
    priority: Priority = Priority.MEDIUM,
    deadline_s: float | None = None,
    keep_alive: object = None,
    finish: Finish | None = None,
) -> ExecutionFuture[Named]:
    """Execute once on a thread of the runtime's.

    Parameters
    ----------
    network : LoadedCallee
    arrays : sequence of ndarray
        The inputs, read already.
    outputs : mapping of str to ndarray, optional
        Arrays to write outputs to; the ones missing are made.
    priority : Priority
    deadline_s : float, optional
        How long it may take from now on, with the time that it waits.
    keep_alive : object
        What has to live as long; networks go with their runtime.
    finish : callable, optional
        Makes of the outputs what the caller is to have.

    Returns
    -------
    ExecutionFuture
        Of every output by name.

    Raises
    ------
    InvalidArgumentError
        If the runtime is closed. What is wrong with the outputs, the future tells.
    """
    task = _task(network, arrays, outputs, priority, deadline_in(deadline_s), finish)
    task.keep_alive = keep_alive
    future = task.submitted()
    try:
        network.executors.submit(task)
        task.watch()
    except BaseException:
        task.stop()  # it may run by now, or wait, and nobody has the future
        raise
    return future


def run(
    network: LoadedCallee,
    arrays: Sequence[Array],
    outputs: Mapping[str, object] | None = None,
    *,
    deadline_s: float | None,
) -> Named:
    """Execute once until a deadline; parameters and result as for `start`.

    Raises
    ------
    ExecutionTimeoutError
        If it takes longer.
    """
    task = _task(network, arrays, outputs, Priority.MEDIUM, deadline_in(deadline_s))
    # Planning cannot be stopped, so new shapes are another thread's, too.
    ready = network.find_prepared(arrays)
    if ready is not None and ready.stops_in_place:
        return task.call()
    future = task.submitted()
    try:
        network.executors.run_apart(task)
    except BaseException:
        task.stop()
        raise
    return task.wait(future)


def _task(
    network: LoadedCallee,
    arrays: Sequence[Array],
    outputs: Mapping[str, object] | None,
    priority: Priority,
    deadline: float | None,
    finish: Finish | None = None,
) -> ExecutionTask[Named]:
    """What executes once."""

    def work(task: ExecutionTask[Named]) -> Named:
        # Shapes that are new are planned here, which may take long and cannot be stopped.
        call = checked_call(network, arrays, outputs)
        made = shown(call.given, dict(zip(call.names, _made(call, task), strict=True)))
        return made if finish is None else finish(made)

    # A new one for each, as what was abandoned goes on looking at its own.
    signal = CancellationToken()
    signal.reset(deadline)
    return ExecutionTask(work, signal, priority, network.number)


def _made(call: CheckedCall, task: ExecutionTask[Named]) -> Sequence[Array]:
    """Execute a call; its results."""
    run = call.prepared.run
    if call.prepared.stops_in_place or call.writes_imported:
        # Who stops by itself needs no arrays of its own, and what is imported can have none.
        task.enter_place()
        return run(call.sources, call.targets, task.signal)
    # Into arrays of its own, as the backend goes on with them if it is abandoned.
    made = run(call.sources, None, task.signal)
    task.signal.commit()
    return call.write(made)
