"""Executions that are started and not called, and calls that have deadlines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from armpy.execution.calls.invocation import Invocation
from armpy.execution.calls.run import CheckedCall, checked_call, read_inputs, shown
from armpy.execution.scheduling.stop_signal import CancellationToken
from armpy.execution.scheduling.tasks import ExecutionFuture, ExecutionTask
from armpy.ops.operation import Array

if TYPE_CHECKING:
    from armpy.execution.calls.callee import LoadedCallee
    from armpy.execution.calls.invocation import Named
    from armpy.execution.scheduling.loop_timeout import Unset


def start(
    network: LoadedCallee,
    asked: Invocation,  # the deadline counts from now on
) -> ExecutionFuture[Named]:
    """Execute once on a thread of the runtime's.

    Returns
    -------
    ExecutionFuture
        Of every output by name.

    Raises
    ------
    InvalidArgumentError
        If inputs do not fit, or the runtime is closed. Errors in the outputs are
        raised by the future's `result`.
    """
    with asked.loop_limit():
        task = _task(network, asked, read_inputs(network, asked.inputs, asked.quantize_inputs))
        task.keep_alive = asked.keep_alive
        future = task.submitted()
    try:
        network.executors.submit(task)
        task.watch()
    except BaseException:
        task.stop()  # it may run by now, or wait, and no caller has the future
        raise
    return future


def run(network: LoadedCallee, asked: Invocation) -> Named:
    """Execute once until a deadline; parameters, result and errors as for `start`.

    Raises ExecutionTimeoutError if it takes longer.
    """
    arrays = read_inputs(network, asked.inputs, asked.quantize_inputs)
    with asked.loop_limit():
        task = _task(network, asked, arrays)
        # Preparing cannot be stopped, so new shapes are another thread's, too.
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


def run_in_order(
    network: LoadedCallee,
    inputs: Sequence[Array],
    outputs: Sequence[Array | None] | None,
    deadline_s: float,
    loop_timeout_s: float | Unset | None,
) -> list[Array]:
    """`run` with arrays in order; parameters and result as of `LoadedNetwork.run`."""
    graph = network.graph
    targets = zip(graph.output_names, outputs or (), strict=False)
    asked = Invocation(
        {value.name: array for value, array in zip(graph.inputs, inputs, strict=True)},
        {name: array for name, array in targets if array is not None},
        deadline_s=deadline_s,
        loop_timeout_s=loop_timeout_s,
    )
    results = run(network, asked)
    return [results[name] for name in graph.output_names]


def _task(
    network: LoadedCallee, asked: Invocation, arrays: Sequence[Array]
) -> ExecutionTask[Named]:
    """Return a function that executes once."""
    # Not the whole of it, as it may hold copies of large inputs.
    outputs, finish = asked.outputs, asked.finish

    def work(task: ExecutionTask[Named]) -> Named:
        # Programs for new shapes are made here, which may take long and cannot be stopped.
        call = checked_call(network, arrays, outputs)
        results = shown(call.given, dict(zip(call.names, _made(call, task), strict=True)))
        return results if finish is None else finish(results)

    # A new one for each, as abandoned work goes on looking at its own.
    signal = CancellationToken()
    signal.reset(asked.deadline_s)
    return ExecutionTask(work, signal, asked.priority, network.number)


def _made(call: CheckedCall, task: ExecutionTask[Named]) -> Sequence[Array]:
    """Execute a call; its results."""
    run = call.prepared.run
    if call.prepared.stops_in_place or call.writes_imported:
        # Work that stops by itself needs no arrays of its own, and imports cannot have any.
        task.enter_place()
        return run(call.sources, call.targets, task.signal)
    # Into arrays of its own, as the backend goes on with them if it is abandoned.
    results = run(call.sources, None, task.signal)
    task.signal.commit()
    return call.write(results)
