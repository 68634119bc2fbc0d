"""Execution: a network bound to arrays, checked once and executed any number of times."""

from __future__ import annotations

from typing import TYPE_CHECKING

from armpy.errors import InvalidArgumentError, without_memory
from armpy.execution import scheduling
from armpy.execution.scheduling.loop_timeout import UNSET, Unset
from armpy.execution.scheduling.stop_signal import CancellationToken, deadline_in
from armpy.ops.operation import Array
from armpy.types import Priority

if TYPE_CHECKING:  # futures are slow to import, and most programs call
    from collections.abc import Callable

    from armpy.execution.calls.binding import Binding, PrivateCall
    from armpy.execution.calls.invocation import Invocation
    from armpy.execution.scheduling.executors import Executors
    from armpy.execution.scheduling.tasks import ExecutionFuture, ExecutionTask


class Execution:
    """A loaded network bound to arrays; made by `armpy.Model.bind`.

    Parameters
    ----------
    binding : Binding
        The arrays.
    executors : Executors
        Run started executions, and abandon those that cannot be stopped.
    owner : object
        The network or handle whose share of the executors it takes.
    asked : Invocation
        Its deadline is each execution's.

    Attributes
    ----------
    outputs : dict of str to ndarray
        The outputs by name. The arrays stay the same, except those of outputs whose shapes depend
        on values, of which each execution makes new ones.

    Notes
    -----
    It has working memory of its own. One thread at a time can call it; any number of executions
    of one network can run at the same time. Where backends do not stop themselves, the work to be
    stopped at any time (started, or with a deadline) is run by another thread in memory of its own.
    """

    __slots__ = (
        "__weakref__",
        "_apart",
        "_binding",
        "_deadline_s",
        "_executors",
        "_is_apart",
        "_is_closed",
        "_is_watched",
        "_keep_alive",
        "_owner",
        "_priority",
        "_signal",
        "_task",
        "_turn",
        "_wants_stop",
        "outputs",
    )

    def __init__(
        self, binding: Binding, executors: Executors, owner: object, asked: Invocation
    ) -> None:
        deadline_s = asked.deadline_s
        deadline_in(deadline_s)  # raises for other objects than a time
        self.outputs: dict[str, Array] = binding.shown
        self._binding = binding
        self._executors = executors
        self._owner = owner
        self._priority = asked.priority
        self._deadline_s = deadline_s
        # Whether calls, too, are run where they can be left alone.
        # To hand one over takes longer than a small network, so others are not.
        may_stop = asked.cancellable or deadline_s is not None
        self._is_apart = may_stop and not binding.stops_in_place
        self._is_watched = self._is_apart or deadline_s is not None
        self._keep_alive = asked.keep_alive
        self._is_closed = False
        self._task: ExecutionTask[dict[str, Array]] | None = None
        self._wants_stop = False
        self._signal = CancellationToken()
        bound: Callable[[], object]
        # Work on another thread and its cancellation, for the turn's owner; None until made anew.
        self._apart: tuple[CancellationToken, PrivateCall | None] | None = None
        if self._is_apart:
            bound = private = binding.bound_apart(self._signal)
            self._apart = self._signal, private
        else:
            bound = binding.bound(self._signal)
        # The caller that takes it out executes: deleting from a list is one step, a quick lock.
        # It is a statement and no call of `pop`, after which a signal handler could raise: the
        # turn would have been taken, and lost. Nor is there a call before the `try`.
        self._turn: list[Callable[[], object]] = [bound]

    def __call__(self) -> dict[str, Array]:
        """Execute once.

        Raises InvalidArgumentError if the network has been unloaded, or the execution is under way
        already; ExecutionTimeoutError if the deadline has come; ExecutionCancelledError if it was
        stopped by `cancel`.

        Returns
        -------
        dict of str to ndarray
            `outputs`.
        """
        if self._is_watched:
            return self._call_watched()
        # Kept here, as `close` puts another list in its place.
        turn = self._turn
        try:
            execute = turn[0]
            del turn[0]
        except IndexError:
            raise self._not_free() from None
        try:
            execute()
        except MemoryError as error:
            raise without_memory(error)  # noqa: B904 - it has the cause
        finally:
            turn.append(execute)
            if self._wants_stop:
                self._forget_stop()
        return self.outputs

    def start(
        self, *, priority: Priority | None = None, deadline_s: float | Unset | None = UNSET
    ) -> ExecutionFuture[dict[str, Array]]:
        """Execute once on a thread of the runtime's.

        Parameters
        ----------
        priority : Priority, optional
            By default the setting of `bind`.
        deadline_s : float, optional
            How long it may take from now on, with the time that it waits; as for `priority`.

        Returns
        -------
        concurrent.futures.Future
            Of `outputs`. It can be cancelled also when it is under way.

        Raises
        ------
        InvalidArgumentError
            As a call; if the runtime is closed.
        """
        limit_s = self._deadline_s if deadline_s is UNSET else deadline_s
        turn, task = self._turn, None
        try:
            execute = turn[0]
            del turn[0]
        except IndexError:
            raise self._not_free() from None
        try:
            # Also without a deadline: a future can be cancelled at any time.
            is_apart = not self._binding.stops_in_place
            task = self._new_task(turn, execute, limit_s, priority or self._priority, is_apart)
            future = task.submitted()
            self._executors.submit(task)
            task.watch()
        except BaseException:
            self._take_back(task, turn, execute)
            raise
        return future

    def cancel(self) -> bool:
        """Stop the running work, from any thread; return whether there was any.

        It is effective within 10 ms, also inside long layers, where backends have the capability
        ``CancellableExecution``; the arrays of outputs are undefined then. The work
        of others is abandoned, and writes to none of the caller's arrays, if it was started, has a
        deadline, or was bound with `cancellable`; otherwise it ends after the layer that it is in.
        """
        task = self._task
        if task is not None:
            return task.stop()
        if self._turn or self._is_closed:
            return False
        self._wants_stop = True
        # In this order: a call that ends in between sees the wish, and resets the signal.
        self._signal.cancel()
        if self._turn:  # it has come to its end in between, and may not have seen it
            self._forget_stop()
        return True

    @property
    def is_closed(self) -> bool:
        """Return whether it was closed, or its network unloaded."""
        return self._is_closed

    def close(self) -> None:
        """Free its memory, after a run that is under way."""
        self._is_closed = True
        # A new list: running work gives its turn back to the old one, which is not used again.
        self._turn, self._apart = [], None

    def _not_free(self) -> InvalidArgumentError:
        """Why it cannot be executed now."""
        if self._is_closed:
            return InvalidArgumentError("the network has been unloaded", fix="Load it again")
        return InvalidArgumentError(
            "the execution is under way already", fix="Wait for it, or bind one for each thread"
        )

    def _forget_stop(self) -> None:
        """Do not let the next call be stopped by a request meant for the last one."""
        self._wants_stop = False
        self._signal.reset()

    def _call_watched(self) -> dict[str, Array]:
        """Execute once with a deadline, or work that cannot be stopped itself."""
        turn, task = self._turn, None
        try:
            execute = turn[0]
            del turn[0]
        except IndexError:
            raise self._not_free() from None
        try:
            limit_s, priority = self._deadline_s, self._priority
            task = self._new_task(turn, execute, limit_s, priority, self._is_apart)
            if not self._is_apart:
                return task.call()
            future = task.submitted()
            self._executors.run_apart(task)
        except BaseException:
            self._take_back(task, turn, execute)
            raise
        return task.wait(future)

    def _take_back(
        self,
        task: ExecutionTask[dict[str, Array]] | None,
        turn: list[Callable[[], object]],
        execute: Callable[[], object],
    ) -> None:
        """Give the turn of work back that was not started, as where a signal handler has raised."""
        if task is None:
            turn.append(execute)
        elif not task.is_over:
            task.stop()

    def _new_task(
        self,
        turn: list[Callable[[], object]],
        execute: Callable[[], object],
        limit_s: float | None,
        priority: Priority,
        is_apart: bool,
    ) -> ExecutionTask[dict[str, Array]]:
        """Make the task that executes once, and then gives the turn back to its caller."""
        binding, outputs = self._binding, self.outputs
        signal = self._signal
        private_call: PrivateCall | None = None
        if is_apart:  # the last one may have been left alone, with all that it has
            # No lock: only the thread that has the turn comes here.
            signal, private_call = self._apart or (CancellationToken(), None)
            self._apart = None
        # A cancel that was meant for the execution before must not stop this one.
        signal.reset(limit_s)

        def work(task: ExecutionTask[dict[str, Array]]) -> dict[str, Array]:
            nonlocal private_call
            if not is_apart:
                task.enter_place()
                execute()
                return outputs
            if private_call is None:
                private_call = binding.bound_apart(signal)
            private_call()
            # Only after this are the caller's arrays written to.
            signal.commit()
            private_call.write()
            return outputs

        def when_over(is_abandoned: bool) -> None:
            self._task = None
            if not is_abandoned:
                signal.reset()
            if is_apart:
                # The thread that was left alone goes on with this signal and these arrays.
                is_kept = not (is_abandoned or self._is_closed or private_call is None)
                self._apart = (signal, private_call) if is_kept else None
            turn.append(execute)

        self._task = task = scheduling.ExecutionTask(work, signal, priority, self._owner, when_over)
        return task
