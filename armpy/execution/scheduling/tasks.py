"""Tasks: executions that callers wait for, and that can be stopped."""

from __future__ import annotations

import enum
import logging
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import Context, copy_context
from typing import Generic, TypeVar

from armpy.backend import cancellable
from armpy.backend.cancellation import enter_priority, leave_priority
from armpy.errors import (
    ArmpyError,
    ExecutionCancelledError,
    ExecutionTimeoutError,
    InvalidArgumentError,
    is_without_memory,
    without_memory,
)
from armpy.execution.scheduling.deadlines import Watch, deadlines
from armpy.execution.scheduling.stop_signal import CancellationToken
from armpy.profiling import note_queue
from armpy.types import Priority

_log = logging.getLogger("armpy.execution")

T = TypeVar("T")


class _TaskState(enum.Enum):
    """State of a task."""

    WAITING = enum.auto()
    RUNNING = enum.auto()
    IN_PLACE = enum.auto()
    OVER = enum.auto()


def check_priority(given: object) -> Priority:
    """A priority, which may be said by its number.

    Raises InvalidArgumentError if there is no such priority.
    """
    try:
        return Priority(given)  # type: ignore[arg-type]  # the call checks it
    except ValueError as error:
        raise InvalidArgumentError(
            "there is no such priority",
            where="priority",
            expected=", ".join(f"Priority.{priority.name}" for priority in Priority),
            actual=repr(given),
        ) from error


class ExecutionTask(Generic[T]):
    """One execution, run by whichever thread, that its caller or its deadline can stop.

    Until `enter_place` or `CancellationToken.commit` are called, the work writes to nothing that
    the caller has. A task that is stopped before is over at once for the caller, and its work is
    abandoned: it goes on until it looks or ends.
    """

    __slots__ = (
        "_context",
        "_future",
        "_state",
        "_submitted_s",
        "_watch",
        "_when_over",
        "_work",
        "keep_alive",
        "owner",
        "priority",
        "signal",
        "was_begun",
        "when_abandoned",
    )

    def __init__(
        self,
        work: Callable[[ExecutionTask[T]], T],  # does it; is given this
        signal: CancellationToken,  # reset, with the deadline
        priority: Priority = Priority.MEDIUM,
        owner: object = None,  # whose share of the threads it takes
        # Called once, when the outcome is known to the caller, with whether the work still goes on
        # unheard.
        when_over: Callable[[bool], None] | None = None,
    ) -> None:
        self._work: Callable[[ExecutionTask[T]], T] | None = work
        self._when_over = when_over
        self._state = _TaskState.WAITING
        self._context: Context | None = None
        self._submitted_s = 0.0
        self._future: ExecutionFuture[T] | None = None
        self._watch: Watch | None = None
        self.was_begun = False
        self.signal = signal
        self.priority = check_priority(priority)
        self.owner = owner
        self.when_abandoned: Callable[[], None] | None = None
        self.keep_alive: object = None

    def submitted(self) -> ExecutionFuture[T]:
        """Return a future; the task runs on another thread in this thread's context."""
        # Time-outs of loops and the profiler are context variables of the caller's.
        self._context = copy_context()
        if self.priority is not Priority.MEDIUM:
            self._context.run(enter_priority, self.priority)
        self._submitted_s = time.perf_counter()
        self._future = ExecutionFuture(self)
        return self._future

    def watch(self) -> None:
        """Let the deadline stop it, unless the waiting caller does."""
        if self.signal.deadline_s is not None:
            self._watch = Watch(self.signal.deadline_s, self._stop_late)
            deadlines.begin(self._watch)

    def _stop_late(self) -> None:
        """Stop it at its deadline."""
        self.stop(is_late=True)

    @property
    def is_waiting(self) -> bool:
        """Return whether it has not begun, and is still wanted."""
        return self._state is _TaskState.WAITING

    @property
    def is_over(self) -> bool:
        """Return whether its caller has the outcome."""
        return self._state is _TaskState.OVER

    def run(self) -> None:
        """Do the work on this thread for the owner of the future, unless it was stopped before."""
        if self._context is not None:
            self._context.run(self._run)

    def call(self) -> T:
        """Do the work on the caller's own thread, in place.

        Raises ExecutionCancelledError or ExecutionTimeoutError if it was stopped; else what the
        work raises.
        """
        work = self._work
        if work is None:
            raise InvalidArgumentError("the job has been done")
        self._state = _TaskState.IN_PLACE
        self.watch()
        token = None if self.priority is Priority.MEDIUM else enter_priority(self.priority)
        try:
            with cancellable(self.signal):
                return work(self)
        except BaseException as error:
            explained = self._explained(error)
            if explained is error:
                raise
            raise explained from error
        finally:
            if token is not None:
                leave_priority(token)
            # A stop that comes later finds it over: an execution's next task has the same signal.
            with self.signal.lock:
                self._state = _TaskState.OVER
            self._clear(is_abandoned=False)

    def _run(self) -> None:
        """Do the work in the caller's context."""
        with self.signal.lock:
            work = self._work
            # It was stopped while it waited, and its caller has the outcome.
            if self._state is not _TaskState.WAITING or work is None:
                return
            self._state = _TaskState.RUNNING
            self.was_begun = True
        note_queue(self._submitted_s)  # in a context of its own
        try:
            with cancellable(self.signal):
                result = work(self)
        except BaseException as error:  # noqa: BLE001 - given to the waiting caller
            self._end(None, self._explained(error))
        else:
            self._end(result, None)

    def enter_place(self) -> None:
        """Begin to write the caller's arrays; stopping must stop the work from here on.

        Raises ExecutionCancelledError or ExecutionTimeoutError if it has been stopped.
        """
        with self.signal.lock:
            self.signal.check()
            self._state = _TaskState.IN_PLACE

    def stop(self, *, is_late: bool = False, reason: ArmpyError | None = None) -> bool:
        """Stop it, with an error of its own or the usual ones; whether it could be stopped."""
        with self.signal.lock:
            state = self._state
            if state is _TaskState.OVER or not self.signal.set(is_late=is_late, reason=reason):
                return False
            if state is _TaskState.IN_PLACE:
                return True  # it ends by itself as soon as it looks
            self._state = _TaskState.OVER
            error = self.signal.error
        # Read once, as the pool's thread takes it away when the task ends. All this is done without
        # the lock: callbacks of the future may do anything, such as stop it once more.
        when_abandoned = self.when_abandoned
        try:
            if state is _TaskState.RUNNING and when_abandoned is not None:
                when_abandoned()
        finally:  # the waiting caller is woken, whatever a signal handler raises
            self._finish(None, error, is_abandoned=state is _TaskState.RUNNING)
        return True

    def _explained(self, error: BaseException) -> BaseException:
        """Return the cause of a stop, if it was stopped: backends may raise any error then."""
        if not self.signal.is_cancelled:
            return without_memory(error) if is_without_memory(error) else error
        if isinstance(error, (ExecutionCancelledError, ExecutionTimeoutError)):
            return error
        reason = self.signal.error
        reason.__cause__ = error
        return reason

    def _end(self, result: T | None, error: BaseException | None) -> None:
        with self.signal.lock:
            if self._state is _TaskState.OVER:
                _log.debug("an execution that was abandoned has come to its end: %s", error)
                return
            self._state = _TaskState.OVER
        self._finish(result, error, is_abandoned=False)

    def _finish(self, result: T | None, error: BaseException | None, *, is_abandoned: bool) -> None:
        """Wake the waiting callers; only one thread comes here."""
        # An error keeps the frames that it came by, and these the task: it is not to keep the
        # error.
        future, self._future = self._future, None
        self._clear(is_abandoned=is_abandoned)
        if future is None:
            return
        if error is None:
            future.set_result(result)  # type: ignore[arg-type]  # there is one without an error
        else:
            future.set_exception(error)

    def _clear(self, *, is_abandoned: bool) -> None:
        """Let go of everything."""
        if self._watch is not None:
            deadlines.end(self._watch)
        if self._when_over is not None:
            self._when_over(is_abandoned)
        # A future that is kept has the task, which is not to keep network and arrays.
        self._work = self._when_over = self.when_abandoned = None

    def wait(self, future: ExecutionFuture[T]) -> T:
        """Wait for its end until its deadline; stop it if that comes, or the user interrupts.

        Raises ExecutionCancelledError or ExecutionTimeoutError if it was stopped; else what the
        work raises.
        """
        deadline_s = self.signal.deadline_s
        left_s = None if deadline_s is None else max(deadline_s - time.perf_counter(), 0.0)
        try:
            # Not `result`, whose TimeoutError could be one that the work has raised.
            future.exception(left_s)
        except TimeoutError:
            # If it cannot be stopped any more, `result` below waits for the rest of it.
            self.stop(is_late=True)
        except BaseException:  # the waiting caller was interrupted, and no other one has the task
            self.stop()
            raise
        return future.result()


class ExecutionFuture(Future[T]):
    """Future of an execution.

    As a `concurrent.futures.Future`, except that one that is under way can be cancelled, too:
    `result` raises `armpy.errors.ExecutionCancelledError` then.
    """

    def __init__(self, task: ExecutionTask[T]) -> None:
        super().__init__()
        self._task = task

    def cancel(self) -> bool:
        """Stop the execution; whether it could still be stopped."""
        return self._task.stop()

    def cancelled(self) -> bool:
        """Return whether it was stopped by `cancel`."""
        return self.done() and isinstance(self.exception(), ExecutionCancelledError)

    @property
    def was_begun(self) -> bool:
        """Return whether it has begun, even if it was stopped later."""
        return self._task.was_begun

    def running(self) -> bool:
        """Return whether it has begun."""
        return not self.done() and not self._task.is_waiting
