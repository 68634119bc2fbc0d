"""Executions that are started: on threads of the runtime's, at once or behind fences."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import nullcontext
from contextvars import copy_context
from typing import TYPE_CHECKING

from armpy.backend import ExecutionTiming, timed_by
from armpy.errors import ExecutionTimeoutError, NnapiError, ResultCode
from armpy.execution.programs.loop_timeout import UNSET, loop_timeout
from armpy.execution.scheduling.stop_signal import deadline_in
from armpy.nnapi.results import as_event_error, check_kind, require_data, unexpected_null
from armpy.nnapi.run.execution_setup import check_duration
from armpy.nnapi.run.execution_turns import ExecutionTurns, left_s, too_late
from armpy.ops.operation import Array

# What few executions need is imported by those.
# ruff: noqa: PLC0415

if TYPE_CHECKING:
    from armpy.execution.scheduling.tasks import ExecutionFuture
    from armpy.nnapi.memory.memory_uses import Given
    from armpy.nnapi.run.events import Event


class ExecutionStarts(ExecutionTurns):
    """An execution that can be started; parameters as for `Execution`."""

    def start_compute(self) -> Event:
        """Run the model on another thread.

        Returns
        -------
        Event
            Tells when it has come to its end, and with which error.

        Raises
        ------
        NnapiError
            BAD_STATE and BAD_DATA as for `compute`; everything else is raised by `Event.wait`.

        Notes
        -----
        Among those that wait, the compilation's priority says who comes first.

        References
        ----------
        NNAPI ``ANeuralNetworksExecution_startCompute``.
        """
        from armpy.nnapi.run.events import Event

        where = "Execution.start_compute"
        self._compilation.check_ready(where)
        self._begin(where)
        event = Event()
        self._start(event, self._deadline_s(), time.perf_counter_ns())
        return event

    def start_compute_with_dependencies(
        self, dependencies: Sequence[Event], duration_ns: int = 0
    ) -> Event:
        """Run the model on another thread as soon as some fences have been signalled.

        Parameters
        ----------
        dependencies : sequence of Event
            What other executions of this kind, or `Event.create_from_sync_fence_fd`, have given.
            Events without a fence, which `start_compute` gives, are waited for before this returns.
        duration_ns : int
            How long it may take from when the last fence has been signalled, besides what
            `set_timeout` says from the call on; 0 for no limit.

        Returns
        -------
        Event
            With a fence.

        Raises
        ------
        NnapiError
            UNEXPECTED_NULL without a list, or if an event is None; BAD_STATE if it was started
            before; BAD_DATA if something is not set, an output's dimensions are not all known,
            or there is a time and not one chosen device. `Event.wait` raises everything else, and
            OP_FAILED if a dependency failed.

        References
        ----------
        NNAPI ``ANeuralNetworksExecution_startComputeWithDependencies``.
        """
        from armpy.nnapi.run.events import Event

        where = "Execution.start_compute_with_dependencies"
        self._compilation.check_ready(where)
        if dependencies is None:
            raise unexpected_null("the list of dependencies", where=where)
        for position, dependency in enumerate(dependencies):
            if dependency is None:
                raise unexpected_null(f"dependency {position}", where=where)
            check_kind(dependency, Event, where)
        self._check_free(where)
        duration_ns = check_duration(duration_ns, where)
        if duration_ns:
            self._check_one_device("only executions on one chosen device have time-outs", where)
        self._outputs.check_complete(where)
        require_data(
            self._shapes.are_known,
            "an output's dimensions are not all known",
            where=where,
            fix="Give its type with set_output",
        )
        self._begin(where, is_fenced=True)
        event = Event(has_fence=True)
        self._start_after(dependencies, event, duration_ns)
        return event

    def _start_after(self, dependencies: Sequence[Event], event: Event, duration_ns: int) -> None:
        """Start when all dependencies have ended well; fail if one fails, or time is up before."""
        from armpy.execution.scheduling.deadlines import Watch, deadlines
        from armpy.nnapi.run.events import when_all_are_done

        where = "Execution.start_compute_with_dependencies"
        launched_ns = time.perf_counter_ns()
        deadline_s = self._deadline_s()
        # Whoever takes it out says what becomes of it: dependencies, or the deadline.
        turn: list[None] = [None]

        def fail(error: NnapiError) -> None:
            self._end(error.code)
            event.settle(error)

        def stop_late() -> None:
            try:
                turn.pop()
            except IndexError:
                return
            fail(too_late(where))

        def begin(failed: BaseException | None) -> None:
            try:
                turn.pop()
            except IndexError:
                return
            if watch is not None:
                deadlines.end(watch)
            if failed is None:
                after_fence_s = deadline_in(duration_ns / 1e9) if duration_ns else None
                times = [one for one in (deadline_s, after_fence_s) if one is not None]
                # In the context of who has launched it, not of what it has waited for.
                context.run(self._start, event, min(times, default=None), launched_ns)
                return
            text = f"a dependency has failed: {failed}"
            error = NnapiError(text, code=ResultCode.OP_FAILED, where=where)
            error.__cause__ = failed
            fail(error)

        context = copy_context()
        watch = None
        if deadline_s is not None:
            watch = Watch(deadline_s, stop_late)
            deadlines.begin(watch)
        when_all_are_done(dependencies, begin)

    def _start(
        self,
        event: Event,
        deadline_s: float | None,
        launched_ns: int,
        *,
        copies: bool = False,
    ) -> None:
        """Run on a thread of the runtime's, and tell an event."""
        where = "Execution.start_compute"
        timing = ExecutionTiming()
        ready_ns = time.perf_counter_ns()

        def end(error: BaseException | None, *, was_begun: bool = True) -> None:
            if error is not None and self._memories is not None and not copies:
                try:
                    if self._memories.may_copy(error, where):
                        self._start(event, deadline_s, launched_ns, copies=True)
                        return
                except NnapiError as other:
                    error = other
            failed = None if error is None else self._explained(error, where)
            code = ResultCode.NO_ERROR if failed is None else ResultCode.OP_FAILED
            if isinstance(failed, NnapiError):
                if isinstance(error, ExecutionTimeoutError) and not was_begun:
                    failed.code = ResultCode.MISSED_DEADLINE_PERSISTENT
                failed = as_event_error(failed)
                code = failed.code
            self._end(code)
            event.settle(failed)

        def finish(future: ExecutionFuture[dict[str, Array]]) -> None:
            try:
                self._write([*future.result().values()], where)
                self._note_durations(timing, launched_ns, ready_ns)
            except BaseException as error:  # noqa: BLE001 - told to whoever waits
                end(error, was_begun=future.was_begun)
            else:
                end(None)

        try:
            self._check_left_out(where)
            self._inputs.renew()
            self._shapes.begin()
            with timed_by(timing) if self._is_timed else nullcontext():
                future = self._submitted(left_s(deadline_s, where), where, copies=copies)
        except BaseException as error:  # noqa: BLE001 - told to whoever waits
            end(error)
            return
        future.add_done_callback(finish)  # type: ignore[arg-type]  # with this one

    def _submitted(
        self, limit_s: float | None, where: str, *, copies: bool
    ) -> ExecutionFuture[dict[str, Array]]:
        """Let a thread of the runtime's run it."""
        from armpy.execution.calls import async_execution as starting

        arrays = self._inputs.arrays
        network = self._network(arrays)
        given: Given = [array for array in arrays if array is not None]
        outputs: dict[str, object] = {}
        if self._memories is not None:
            self._memories.check(where)  # which an execution that this one waited for has written
            given, outputs = self._memories.by_name(network, arrays, where, copies=copies)
        loop_s = self._loop_timeout_s()
        with nullcontext() if loop_s is UNSET else loop_timeout(loop_s):
            return starting.start(
                network,
                given,  # type: ignore[arg-type]  # memory is imported in its place
                outputs,
                priority=self._compilation.priority,
                deadline_s=limit_s,
                keep_alive=self._compilation,
            )
