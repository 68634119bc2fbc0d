"""Executions that are started and not called, and calls that have deadlines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from armpy.execution.arrays.calls import Call, checked_call, shown
from armpy.execution.scheduling.stop_signal import StopSignal, deadline_in
from armpy.execution.scheduling.tasks import ExecutionFuture, Job, wait
from armpy.ops.operation import Array
from armpy.types import Priority

if TYPE_CHECKING:
    from armpy.execution.loaded_network import LoadedNetwork

Named: TypeAlias = dict[str, Array]
Finish: TypeAlias = Callable[[Named], Named]


def start(
    network: LoadedNetwork,
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
    network : LoadedNetwork
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
    job = _job(network, arrays, outputs, priority, deadline_in(deadline_s), finish)
    job.keep_alive = keep_alive
    future = job.submitted()
    try:
        network.executors.submit(job)
        job.watch()
    except BaseException:
        job.stop()  # it may run by now, or wait, and nobody has the future
        raise
    return future


def run(
    network: LoadedNetwork,
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
    job = _job(network, arrays, outputs, Priority.MEDIUM, deadline_in(deadline_s))
    ready = network.find_prepared(arrays)
    if ready is not None and ready.stops_in_place:
        return job.call()
    future = job.submitted()
    try:
        network.executors.run_apart(job)
    except BaseException:
        job.stop()
        raise
    return wait(job, future)


def _job(
    network: LoadedNetwork,
    arrays: Sequence[Array],
    outputs: Mapping[str, object] | None,
    priority: Priority,
    deadline: float | None,
    finish: Finish | None = None,
) -> Job[Named]:
    """What executes once."""

    def work(job: Job[Named]) -> Named:
        # Shapes that are new are planned here, which may take long and cannot be stopped.
        call = checked_call(network, arrays, outputs)
        made = shown(call.given, dict(zip(call.names, _made(call, job), strict=True)))
        return made if finish is None else finish(made)

    signal = StopSignal()
    signal.reset(deadline)
    return Job(work, signal, priority, network.number)


def _made(call: Call, job: Job[Named]) -> Sequence[Array]:
    """Execute a call; its results."""
    run = call.prepared.run
    if call.prepared.stops_in_place or call.writes_imported:
        job.enter_place()
        return run(call.sources, call.targets, job.signal)
    made = run(call.sources, None, job.signal)
    job.signal.commit()
    return call.write(made)
