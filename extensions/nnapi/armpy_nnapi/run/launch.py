"""Launch of an execution: on a thread of the runtime's, at once or when others have ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from contextvars import copy_context
from typing import TYPE_CHECKING

from armpy.backend import ExecutionTiming, timed_by
from armpy.errors import ExecutionTimeoutError
from armpy.execution import deadline_in
from armpy.execution.calls import async_execution
from armpy.execution.calls.invocation import Invocation
from armpy.execution.scheduling.deadlines import Watch, deadlines
from armpy.ops.operation import Array
from armpy_nnapi.compile.compilation import Compilation
from armpy_nnapi.errors import NnapiError, ResultCode
from armpy_nnapi.results import as_event_error, check_kind, unexpected_null
from armpy_nnapi.run.arguments import ExecutionArguments
from armpy_nnapi.run.events import Event, when_all_are_done
from armpy_nnapi.run.execution_results import ExecutionResults
from armpy_nnapi.run.limits import TimeLimits, left_s, too_late
from armpy_nnapi.run.turn import Turn

if TYPE_CHECKING:
    from armpy.execution.scheduling.tasks import ExecutionFuture
    from armpy_nnapi.memory_domains.memory_uses import Given


class Launch:
    """One start of an execution on a thread of the runtime's.

    Parameters
    ----------
    results : ExecutionResults
        Is given the dimensions and times that come out.
    end : callable
        Receives the result code, once, before the event is settled.
    where : str
        The caller, for messages.
    has_fence : bool
        Whether others can wait for the end with a descriptor.

    Attributes
    ----------
    event : Event
        Signals the end.
    """

    def __init__(
        self,
        compilation: Compilation,
        arguments: ExecutionArguments,
        results: ExecutionResults,
        limits: TimeLimits,
        end: Callable[[ResultCode], None],
        where: str,
        *,
        has_fence: bool = False,
    ) -> None:
        self._compilation = compilation
        self._arguments = arguments
        self._results = results
        self._loop_timeout_s = limits.loop_timeout_s
        self._end = end
        self._where = where
        self.event = Event(has_fence=has_fence)
        self._launched_ns = time.perf_counter_ns()
        # From the call on, also if it waits for others: NNAPI's time-out includes that.
        self._deadline_s = limits.deadline_s()

    def check_dependencies(self, dependencies: Sequence[Event]) -> None:
        """Check a list of events to wait for.

        Raises
        ------
        NnapiError
            UNEXPECTED_NULL without a list, or if an event is None; BAD_DATA if one is none.
        """
        if dependencies is None:
            raise unexpected_null("the list of dependencies", where=self._where)
        for position, dependency in enumerate(dependencies):
            if dependency is None:
                raise unexpected_null(f"dependency {position}", where=self._where)
            check_kind(dependency, Event, self._where)

    def begin(self) -> None:
        """Run at once."""
        self._begin(self._deadline_s)

    def begin_after(self, dependencies: Sequence[Event], duration_ns: int) -> None:
        """Run when all dependencies have ended well; fail if one fails, or time is up before.

        Parameters
        ----------
        duration_ns : int
            Time limit from then on; 0 for no limit.
        """
        # The deadline and the last dependency come on two threads, perhaps at the same moment:
        # the one that gets the turn decides the outcome of the launch.
        turn = Turn()

        def stop_late() -> None:
            if turn.take():
                self._settle(too_late(self._where))

        def begin(failed: BaseException | None) -> None:
            if not turn.take():
                return
            if watch is not None:
                deadlines.end(watch)
            if failed is None:
                after_fence_s = deadline_in(duration_ns / 1e9) if duration_ns else None
                times = [
                    time_s for time_s in (self._deadline_s, after_fence_s) if time_s is not None
                ]
                # In the context of the launch, not of the events that it has waited for.
                context.run(self._begin, min(times, default=None))
                return
            text = f"a dependency has failed: {failed}"
            error = NnapiError(text, code=ResultCode.OP_FAILED, where=self._where)
            error.__cause__ = failed
            self._settle(error)

        # Context variables, as of tracing or profiling, belong to the thread that starts it.
        context = copy_context()
        watch = None
        if self._deadline_s is not None:
            watch = Watch(self._deadline_s, stop_late)
            # Before the dependencies are waited for: one of them may never come.
            deadlines.begin(watch)
        when_all_are_done(dependencies, begin)

    def _begin(self, deadline_s: float | None, *, copies: bool = False) -> None:
        """Submit the run to the runtime's threads, with devices' memory copied if asked."""
        timing = ExecutionTiming()
        ready_ns = time.perf_counter_ns()

        def finish(future: ExecutionFuture[dict[str, Array]]) -> None:
            try:
                results = [*future.result().values()]
                self._arguments.write(results, self._results.shapes, self._where)
                if self._results.is_timed:
                    self._results.note_durations(timing, self._launched_ns, ready_ns)
            except BaseException as error:  # noqa: BLE001 - raised in the waiting thread
                self._fail(error, deadline_s, was_begun=future.was_begun, copies=copies)
            else:
                self._settle(None)

        try:
            self._arguments.check_left_out(self._where)
            self._arguments.inputs.renew()
            self._results.shapes.begin()
            with timed_by(timing) if self._results.is_timed else nullcontext():
                future = self._submitted(left_s(deadline_s, self._where), copies=copies)
        except BaseException as error:  # noqa: BLE001 - raised in the waiting thread
            self._fail(error, deadline_s, copies=copies)
            return
        future.add_done_callback(finish)  # type: ignore[arg-type]  # with this one

    def _submitted(
        self, limit_s: float | None, *, copies: bool
    ) -> ExecutionFuture[dict[str, Array]]:
        """The future of the run, which a thread of the runtime's takes up."""
        arguments = self._arguments
        network = self._compilation.network_for(arguments.inputs.arrays)
        operands: Given = [array for array in arguments.inputs.arrays if array is not None]
        outputs: dict[str, object] = {}
        if arguments.memories is not None:
            # Only now, as an execution that this one has waited for may have written the memory.
            arguments.memories.check(self._where)
            operands, outputs = arguments.memories.by_name(
                network, arguments.inputs.arrays, self._where, copies=copies
            )
        asked = Invocation(
            {
                value.name: array
                for value, array in zip(network.graph.inputs, operands, strict=True)
            },
            outputs,
            priority=self._compilation.priority,
            deadline_s=limit_s,
            loop_timeout_s=self._loop_timeout_s,
            keep_alive=self._compilation,
        )
        return async_execution.start(network, asked)

    def _fail(
        self,
        error: BaseException,
        deadline_s: float | None,
        *,
        was_begun: bool = True,
        copies: bool,
    ) -> None:
        """Begin again with copies if devices' memory was the obstacle; else settle."""
        memories = self._arguments.memories
        # Once: what fails with copies does not fail because of the memory.
        if memories is not None and not copies:
            try:
                if memories.may_copy(error, self._where):
                    self._begin(deadline_s, copies=True)
                    return
            except NnapiError as other:
                error = other
        explained = self._compilation.explained(error, self._where)
        if isinstance(explained, NnapiError):
            # Time that went by in the queue would go by there again, so it is not a transient miss.
            if isinstance(error, ExecutionTimeoutError) and not was_begun:
                explained.code = ResultCode.MISSED_DEADLINE_PERSISTENT
            explained = as_event_error(explained)
        self._settle(explained)

    def _settle(self, failed: BaseException | None) -> None:
        """End the execution, and then the event."""
        # In this order: a waiter for the event may ask the execution, or start it again.
        code = ResultCode.NO_ERROR
        if failed is not None:
            code = failed.code if isinstance(failed, NnapiError) else ResultCode.OP_FAILED
        self._end(code)
        self.event.settle(failed)
