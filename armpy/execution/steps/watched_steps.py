"""Steps that are watched: executions that can be stopped, and devices that have queues."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from armpy.backend import Cancellation, ICompletion, current_cancellation
from armpy.compiler import OptimizedNetwork
from armpy.core.dataclass import dataclass
from armpy.core.vlog import wants_traceback
from armpy.errors import ArmpyError, BackendError
from armpy.execution.steps.step import Inputs, Outputs, Step, raise_for_step
from armpy.ops.backend_internal import MemCopy
from armpy.plugins.proxy.guarded_call import ask_method, call_method, describe
from armpy.types import BackendId

_log = logging.getLogger("armpy.execution")

# Far below the 10 ms within which `Execution.cancel` promises to be effective.
_SLICE_S = 0.002
"""How long to wait for a device before looking whether to stop."""


def as_completion(backend_id: BackendId, answer: object) -> ICompletion | None:
    """Check the answer of a workload's ``enqueue``; raises BackendError if it is something else."""
    if answer is None:
        return None
    if not isinstance(answer, ICompletion):
        raise BackendError(
            "the answer has the wrong type",
            where=f"{backend_id} / enqueue",
            expected="ICompletion or None",
            actual=describe(answer),
        )
    return answer


def wait_for(
    backend_id: BackendId, completion: ICompletion, cancellation: Cancellation | None = None
) -> None:
    """Wait until a device has done its enqueued work, or stop it.

    Raises ExecutionCancelledError or ExecutionTimeoutError if it was stopped; BackendError if it
    fails; a backend's own ArmpyErrors are raised as they are.
    """
    if cancellation is not None:
        while not ask_method(backend_id, bool, completion, "wait", _SLICE_S):
            if cancellation.is_cancelled:
                stop(backend_id, completion)
                raise cancellation.error
    elif not ask_method(backend_id, bool, completion, "wait"):
        # Without a limit there is no reason to return early: the arrays may still be written to.
        raise BackendError("the device has not come to its end", where=f"{backend_id} / wait")


def stop(backend_id: BackendId, completion: ICompletion) -> None:
    """Stop a device, if it can be stopped, and wait until it uses no memory any more.

    Raises BackendError if it fails; a backend's own ArmpyErrors are raised as they are.
    """
    call_method(backend_id, completion, "cancel")
    ask_method(backend_id, bool, completion, "wait")


def waiting(backend_id: BackendId, step: Step) -> Step:
    """The same step, come back from when its device has done it or was stopped.

    For wrappers that need to know when a step is over. Both ways of executing it raise
    ExecutionCancelledError or ExecutionTimeoutError if the execution is stopped meanwhile, and
    BackendError if the device fails, or the workload answers something else.
    """
    if not step.enqueues:
        return step

    def finish(answer: object) -> None:
        completion = as_completion(backend_id, answer)
        if completion is not None:
            wait_for(backend_id, completion, current_cancellation())

    def execute(inputs: Inputs, outputs: Outputs) -> None:
        finish(step.execute(inputs, outputs))

    def bind(inputs: Inputs, outputs: Outputs) -> Callable[[], object]:
        call = step.bind(inputs, outputs)
        return lambda: finish(call())

    return replace(step, execute=execute, bind=bind, enqueues=False)


@dataclass(frozen=True, slots=True)
class QueueUse:
    """Use of queues by one step: the steps it waits for, and if it may go on after its call."""

    waits: bool  # whether all that was enqueued before has to have ended
    enqueues: bool  # whether it may go on after its call


def queueing_of(network: OptimizedNetwork, steps: Sequence[Step]) -> tuple[QueueUse, ...] | None:
    """Return each step's use of queues; None if no backend has any.

    A backend's queue keeps its own order. Other steps after it may read unfinished outputs, or
    write to memory that it reads.
    """
    if not any(step.enqueues for step in steps):
        return None
    uses = []
    busy: BackendId | None = None
    for layer, step in zip(network.graph.layers, steps, strict=True):
        backend_id = network.backend_ids[layer.id]
        enqueues = step.enqueues and not isinstance(layer.operation, MemCopy)
        waits = busy is not None and not (enqueues and busy == backend_id)
        uses.append(QueueUse(waits, enqueues))
        busy = backend_id if enqueues else None
    return tuple(uses)


class WatchedSteps:
    """The steps of one working memory, each a call, that can be stopped and waited for."""

    __slots__ = ("_calls", "_network", "_pending", "_queueing", "_step")

    def __init__(
        self,
        network: OptimizedNetwork,
        # One per step, and perhaps one after them that the core does itself.
        calls: Sequence[Callable[[], object]],
        queueing: Sequence[QueueUse] | None,  # None if no backend has a queue
    ) -> None:
        self._network = network
        self._calls = calls
        self._queueing = None
        if queueing is not None:
            # The core's work after the steps reads their outputs.
            after = [QueueUse(waits=True, enqueues=False)] * (len(calls) - len(queueing))
            self._queueing = [*queueing, *after]
        self._pending: list[tuple[int, BackendId, ICompletion]] = []
        self._step = 0

    def run(self, cancellation: Cancellation | None) -> None:
        """Execute once.

        Raises ExecutionCancelledError or ExecutionTimeoutError if it was stopped; BackendError if a
        backend fails; its own ArmpyErrors are raised as they are.
        """
        try:
            for step, call in enumerate(self._calls):
                self._step = step
                if cancellation is not None:
                    cancellation.check()
                if self._queueing is None:
                    call()
                else:
                    self._queue(self._queueing[step], call, cancellation)
            self._wait(cancellation)
        except BaseException as error:  # noqa: BLE001 - plugin boundary: named and raised
            failed = self._step
            self._stop_pending()
            raise_for_step(self._network, failed, error)

    def _queue(
        self, queueing: QueueUse, call: Callable[[], object], cancellation: Cancellation | None
    ) -> None:
        """Execute a step, or let its device begin to."""
        step = self._step
        if queueing.waits:
            self._wait(cancellation)
            self._step = step
        answer = call()
        if queueing.enqueues:
            backend_id = self._network.backend_ids[self._network.graph.layers[step].id]
            completion = as_completion(backend_id, answer)
            if completion is not None:
                self._pending.append((step, backend_id, completion))

    def _wait(self, cancellation: Cancellation | None) -> None:
        """Wait for all that is under way; what goes wrong is the fault of that step."""
        while self._pending:
            # In the order of the queue, so that of several faults the first one is raised.
            self._step, backend_id, completion = self._pending.pop(0)
            wait_for(backend_id, completion, cancellation)

    def _stop_pending(self) -> None:
        """Stop all that is under way and wait for it, as its memory will be used again."""
        while self._pending:
            _, backend_id, completion = self._pending.pop(0)
            try:
                stop(backend_id, completion)
            except ArmpyError as error:  # the execution raises its first error
                _log.info("%s", error, exc_info=wants_traceback(_log))
