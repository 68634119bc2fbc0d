"""Steps that are watched: executions that can be stopped, and devices that have queues."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from armpy.backend import Cancellation, ICompletion
from armpy.compiler import OptimizedNetwork
from armpy.core.vlog import wants_traceback
from armpy.errors import ArmpyError
from armpy.execution.scheduling.completions import as_completion, stop, wait_for
from armpy.execution.steps.step import Step, raise_for_step
from armpy.ops.backend_internal import MemCopy
from armpy.types import BackendId

_log = logging.getLogger("armpy.execution")


@dataclass(frozen=True, slots=True)
class QueueUse:
    """Use of queues by one step: what it waits for, and if it may go on behind its call.

    Parameters
    ----------
    waits : bool
        Whether all that was enqueued before has to have ended.
    enqueues : bool
        Whether it may go on behind its call.
    """

    waits: bool
    enqueues: bool


def queueing_of(network: OptimizedNetwork, steps: Sequence[Step]) -> tuple[QueueUse, ...] | None:
    """What each step has to do with queues; None if no backend has any.

    Notes
    -----
    A backend's queue keeps its own order. Whoever else is next may read what is under way, or
    write to memory that it reads.
    """
    if not any(step.enqueues for step in steps):
        return None
    found = []
    busy: BackendId | None = None
    for layer, step in zip(network.graph.layers, steps, strict=True):
        backend_id = network.backend_ids[layer.id]
        enqueues = step.enqueues and not isinstance(layer.operation, MemCopy)
        waits = busy is not None and not (enqueues and busy == backend_id)
        found.append(QueueUse(waits, enqueues))
        busy = backend_id if enqueues else None
    return tuple(found)


class WatchedSteps:
    """The steps of one working memory, each a call, that can be stopped and waited for.

    Parameters
    ----------
    network : OptimizedNetwork
    calls : sequence of callable
        One per step, and perhaps one behind them that the core does itself.
    queueing : sequence of QueueUse, optional
        None if no backend has a queue.
    """

    __slots__ = ("_calls", "_network", "_pending", "_queueing", "_step")

    def __init__(
        self,
        network: OptimizedNetwork,
        calls: Sequence[Callable[[], object]],
        queueing: Sequence[QueueUse] | None,
    ) -> None:
        self._network = network
        self._calls = calls
        self._queueing = None
        if queueing is not None:
            # What the core does behind the steps reads what they have written.
            behind = [QueueUse(waits=True, enqueues=False)] * (len(calls) - len(queueing))
            self._queueing = [*queueing, *behind]
        self._pending: list[tuple[int, BackendId, ICompletion]] = []
        self._step = 0

    def run(self, cancellation: Cancellation | None) -> None:
        """Execute once.

        Raises
        ------
        ExecutionCancelledError, ExecutionTimeoutError
            If it was stopped.
        BackendError
            If a backend fails; its own ArmpyErrors are raised as they are.
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
            # In the order of the queue, so that of several faults the first one is told.
            self._step, backend_id, completion = self._pending.pop(0)
            wait_for(backend_id, completion, cancellation)

    def _stop_pending(self) -> None:
        """Stop all that is under way and wait for it: its memory will be somebody else's."""
        while self._pending:
            _, backend_id, completion = self._pending.pop(0)
            try:
                stop(backend_id, completion)
            except ArmpyError as error:  # the first error of the execution is the one that is told
                _log.info("%s", error, exc_info=wants_traceback(_log))
