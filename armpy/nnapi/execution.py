"""Executions: runs of a compiled model."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import nullcontext
from contextvars import copy_context
from typing import TYPE_CHECKING

import numpy as np

from armpy.backend import ExecutionTiming, timed_by
from armpy.errors import (
    ArmpyError,
    ExecutionTimeoutError,
    InvalidArgumentError,
    NnapiError,
    ResultCode,
)
from armpy.nnapi.compilation import Compilation
from armpy.nnapi.execution_results import ExecutionResults
from armpy.nnapi.execution_setup import State, check_duration
from armpy.nnapi.operand_type import OperandType
from armpy.nnapi.results import (
    as_event_error,
    as_nnapi_error,
    bad_state,
    check_kind,
    require_data,
    unexpected_null,
)
from armpy.ops.operation import Array
from armpy.runtime.limits import UNSET, Unset, loop_timeout
from armpy.runtime.stopping import deadline_in

# What few executions need is imported by those.
# ruff: noqa: PLC0415

if TYPE_CHECKING:
    from armpy.nnapi.events import Event
    from armpy.nnapi.memory_uses import Given, Targets
    from armpy.runtime import LoadedNetwork
    from armpy.runtime.execution import Execution as BoundExecution
    from armpy.runtime.jobs import ExecutionFuture

_COMPUTE = "Execution.compute"


class Execution(ExecutionResults):
    """One run of a compiled model; any number of them if it is reusable.

    Parameters
    ----------
    compilation : Compilation
        Finished.

    Raises
    ------
    NnapiError
        UNEXPECTED_NULL without a compilation; BAD_STATE if it is not finished or failed.

    References
    ----------
    NNAPI ``ANeuralNetworksExecution``.
    """

    def __init__(self, compilation: Compilation) -> None:
        super().__init__(compilation)
        # Whoever takes it out runs: to take from a list is one step, and the quickest lock.
        self._turn: list[None] = [None]
        # Of whoever takes it out, also when it has idled: nobody else can use or release it.
        self._prepared: list[BoundExecution] = []
        self._is_idle = False
        self._is_closed = False

    def compute(self) -> None:
        """Run the model and write the outputs.

        Raises
        ------
        NnapiError
            BAD_STATE if it was started before, and is not reusable, or is under way; BAD_DATA if
            an input or output is not set; OP_FAILED if an operation cannot run with these inputs;
            OUTPUT_INSUFFICIENT_SIZE if an output does not fit its buffer, nothing being written
            then (see `get_output_operand_dimensions`); MISSED_DEADLINE_TRANSIENT if a loop or all
            of it took too long; DEAD_OBJECT if a device is gone; OUT_OF_MEMORY.
        """
        self._begin(_COMPUTE)
        try:
            bound = self._take_prepared() if self._prepared else None
            if bound is None:
                self._compute()
            else:
                self._is_idle = False
                self._run_bound(bound)
        except BaseException as error:  # noqa: BLE001 - raised again
            self._raise_failed(error, _COMPUTE)
        self._end(ResultCode.NO_ERROR)

    def run(self, inputs: Sequence[Array | None]) -> list[Array]:
        """Run the model with arrays, whose shapes say what dimensions the model leaves open.

        Parameters
        ----------
        inputs : sequence of (ndarray or None)
            One per input, of the operands' dtypes; None for an optional one that is left out.

        Returns
        -------
        list of ndarray
            One per output, of the shapes that came out.

        Raises
        ------
        NnapiError
            As for `set_input` and `compute`; BAD_STATE also if arguments were set before.
        """
        where = "Execution.run"
        self._check_building(where)
        slots = self._compilation.signature.inputs
        require_data(
            len(inputs) == len(slots),
            "the number of inputs is not the model's",
            where=where,
            expected=str(len(slots)),
            actual=str(len(inputs)),
        )
        arrays: list[Array | None] = []
        for index, (slot, value) in enumerate(zip(slots, inputs, strict=True)):
            self._inputs.check_unset(index, where)
            if slot.fits(value):
                arrays.append(value)
                continue
            given, operand = None, slot.operand
            if isinstance(value, np.ndarray) and operand.is_tensor:
                shape = value.shape[: value.ndim - len(operand.element_shape)]
                given = OperandType(operand.type, shape, operand.scale, operand.zero_point)
            arrays.append(self._input_read(slot, value, given, f"{where}: input {index}")[0])
        self._take_turn(where)
        try:
            self._shapes.begin()
            results = self._results(arrays)
            for index, result in enumerate(results):
                self._shapes.note(index, result, where)
        except BaseException as error:  # noqa: BLE001 - raised again
            self._raise_failed(error, where)
        self._end(ResultCode.NO_ERROR)
        return results

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
        from armpy.nnapi.events import Event

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
        from armpy.nnapi.events import Event

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

    def close(self) -> None:
        """Compute no more, and give back what is prepared; BAD_STATE while it is under way."""
        try:
            self._turn.pop()
        except IndexError:
            if self._state is State.STARTED:
                raise self._not_free("Execution.close") from None
        self._is_closed = True
        self.release()

    @property
    def is_prepared(self) -> bool:
        """Whether a reusable execution has something that is prepared, and nobody uses it."""
        return bool(self._prepared)

    def release_if_idle(self) -> bool:
        """Give back what it has prepared unless it was used since the last call of this.

        Returns
        -------
        bool
            Whether it may still have something. The next computation prepares it again.
        """
        if not self._is_idle:
            self._is_idle = True
            return True
        bound = self._take_prepared()
        if bound is not None:
            bound.close()
            return False
        return not self._is_closed  # it is under way, or will be prepared again

    def release(self) -> None:
        """Give back what it has prepared, unless it is under way; it is prepared again then."""
        bound = self._take_prepared()
        if bound is not None:
            bound.close()

    def _take_prepared(self) -> BoundExecution | None:
        """Take out what is prepared: nobody else can use or release it."""
        try:
            return self._prepared.pop()
        except IndexError:
            return None

    def _run_bound(self, bound: BoundExecution) -> None:
        """Run what is prepared, and keep it if it went well: else what it has may have gone."""
        try:
            bound()
        except BaseException:
            bound.close()
            raise
        self._prepared.append(bound)

    def _begin(self, where: str, *, is_fenced: bool = False) -> None:
        """Start, unless something is missing: it can be set still, and computed then."""
        if self._state is State.BUILDING:
            self._inputs.check_complete(where)
            self._outputs.check_complete(where)
        if self._memories is not None and not is_fenced:
            self._memories.check(where)
        self._take_turn(where)

    def _take_turn(self, where: str) -> None:
        """Start; not to be taken back, even if it fails: NNAPI has one run per execution."""
        try:
            self._turn.pop()
        except IndexError:
            raise self._not_free(where) from None
        self._state = State.STARTED

    def _check_free(self, where: str) -> None:
        """Check that it could start."""
        if not self._turn:
            raise self._not_free(where)

    def _not_free(self, where: str) -> NnapiError:
        """Why it cannot start."""
        if self._is_closed:
            return bad_state("the execution is closed", where=where)
        if self._is_reusable and self._state is State.STARTED:
            return bad_state("the execution is under way", where=where, fix="Wait for its end")
        return bad_state(
            "the execution has been started",
            where=where,
            fix="Make another one for each run, or one that is reusable (set_reusable)",
        )

    def _end(self, result: ResultCode) -> None:
        """Note what it came to."""
        self._result = result
        if self._memories is not None:
            is_right = result is ResultCode.NO_ERROR
            self._memories.end(self._shapes.noted if is_right else None)
        self._state = State.FINISHED
        if self._is_reusable:
            self._turn.append(None)

    def _raise_failed(self, error: BaseException, where: str) -> None:
        """Note that it failed, and raise why."""
        explained = self._explained(error, where)
        code = explained.code if isinstance(explained, NnapiError) else ResultCode.OP_FAILED
        self._end(code)
        if explained is error:
            raise error
        raise explained from error

    def _explained(self, error: BaseException, where: str) -> BaseException:
        """The result code of what it failed with."""
        if isinstance(error, ExecutionTimeoutError) and error.fix:  # it is of control flow
            error.fix = "Call set_loop_timeout before if the loop needs longer; at most 15 s"
        if isinstance(error, InvalidArgumentError) and not self._compilation.is_finished:
            return bad_state("the compilation is closed", where=where)
        if isinstance(error, (ArmpyError, MemoryError)):
            return as_nnapi_error(error, where)
        return error

    def _compute(self) -> None:
        """Run with the arrays that were set, and write the outputs."""
        inputs, outputs = self._inputs, self._outputs
        if self._memories is not None:
            self._check_left_out()
            inputs.renew()
            self._shapes.begin()
            part = self._network(inputs.arrays)
            self._write(self._memories.run(part, inputs.arrays, self._run, _COMPUTE), _COMPUTE)
            return
        network = self._compilation.whole
        if network is None or self._is_timed or self._timeout_ns or not self._is_in_place():
            self._check_left_out()
            inputs.renew()
            self._shapes.begin()
            self._shapes.write(outputs.arrays, self._results(inputs.arrays), _COMPUTE)
            return
        if self._is_reusable and not self._compilation.signature.has_control_flow:
            self._bind()
        else:
            # As every input and output has the shape that the network is prepared for.
            arrays: list[Array] = inputs.arrays  # type: ignore[assignment]  # all are set
            network.run(arrays, outputs.arrays, loop_timeout_s=self._loop_timeout_s())
        self._shapes.note_expected()

    def _is_in_place(self) -> bool:
        """Whether results can be written where they belong, which no other argument overlaps."""
        inputs, outputs = self._inputs, self._outputs
        if not (inputs.are_in_place and outputs.are_in_place):
            return False
        others = [*inputs.arrays]
        for array in outputs.arrays:
            for other in others:
                if np.may_share_memory(array, other):
                    return False
            others.append(array)
        return True

    def _bind(self) -> None:
        """Prepare for these arrays, and run the first time."""
        from armpy.nnapi.idling import watch_idling

        network = self._compilation.whole
        if network is None:
            raise bad_state("the compilation is closed", where=_COMPUTE)
        inputs = [value.name for value in network.graph.inputs]
        bound = network.bind(
            dict(zip(inputs, self._inputs.arrays, strict=True)),
            dict(zip(network.graph.output_names, self._outputs.arrays, strict=True)),
            cancellable=False,
        )
        self._is_idle = False
        self._run_bound(bound)
        watch_idling(self)

    def _check_left_out(self) -> None:
        """Check that only optional outputs are left out."""
        for position, array in enumerate(self._outputs.arrays):
            if array is None and position in self._compilation.signature.needed_outputs:
                raise NnapiError(
                    f"output {position} has no buffer, and the operation cannot go without it",
                    code=ResultCode.OP_FAILED,
                    where=_COMPUTE,
                )

    def _network(self, arrays: Sequence[Array | None]) -> LoadedNetwork:
        """The network that is for these inputs."""
        # An operation without an optional operand is another layer, so there is a network for
        # each set of inputs that are left out; the others move up.
        return self._compilation.network([i for i, array in enumerate(arrays) if array is None])

    def _results(self, arrays: Sequence[Array | None]) -> list[Array]:
        """Run the network that is for these inputs."""
        return self._run(self._network(arrays), [array for array in arrays if array is not None])

    def _run(
        self, network: LoadedNetwork, given: Given, targets: Targets | None = None
    ) -> list[Array]:
        """Run a network, and measure it."""
        deadline_s = self._deadline_s()
        started_ns = time.perf_counter_ns()
        timing = ExecutionTiming()
        with timed_by(timing) if self._is_timed else nullcontext():
            results = network.run(
                given,  # type: ignore[arg-type]  # memory is imported in its place
                targets,  # type: ignore[arg-type]
                loop_timeout_s=self._loop_timeout_s(),
                deadline_s=_left_s(deadline_s, _COMPUTE),
            )
        self._note_durations(timing, started_ns, started_ns)
        return results

    def _write(self, results: Sequence[Array], where: str) -> None:
        """Write results where they belong."""
        buffers: Sequence[Array | None] = self._outputs.arrays
        if self._memories is not None:
            results, buffers = self._memories.taken(results, buffers, where)
        self._shapes.write(buffers, results, where)

    def _start_after(self, dependencies: Sequence[Event], event: Event, duration_ns: int) -> None:
        """Start when all dependencies have ended well; fail if one fails, or time is up before."""
        from armpy.nnapi.events import when_all_are_done
        from armpy.runtime.deadlines import Watch, deadlines

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
            fail(_too_late(where))

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
            self._check_left_out()
            self._inputs.renew()
            self._shapes.begin()
            with timed_by(timing) if self._is_timed else nullcontext():
                future = self._submitted(_left_s(deadline_s, where), where, copies=copies)
        except BaseException as error:  # noqa: BLE001 - told to whoever waits
            end(error)
            return
        future.add_done_callback(finish)  # type: ignore[arg-type]  # with this one

    def _submitted(
        self, left_s: float | None, where: str, *, copies: bool
    ) -> ExecutionFuture[dict[str, Array]]:
        """Let a thread of the runtime's run it."""
        from armpy.runtime import starting

        arrays = self._inputs.arrays
        network = self._network(arrays)
        given: Given = [array for array in arrays if array is not None]
        outputs: dict[str, object] = {}
        if self._memories is not None:
            self._memories.check(where)  # which an execution that this one waited for has written
            given, outputs = self._memories.by_name(network, arrays, where, copies=copies)
        limit_s = self._loop_timeout_s()
        with nullcontext() if limit_s is UNSET else loop_timeout(limit_s):
            return starting.start(
                network,
                given,  # type: ignore[arg-type]  # memory is imported in its place
                outputs,
                priority=self._compilation.priority,
                deadline_s=left_s,
                keep_alive=self._compilation,
            )

    def _loop_timeout_s(self) -> float | Unset:
        """How long a loop may take; what the runtime's options say, unless it was set."""
        return UNSET if self._loop_timeout_ns is None else self._loop_timeout_ns / 1e9

    def _deadline_s(self) -> float | None:
        """When it has to have come to its end if it starts now, by `time.perf_counter`."""
        return deadline_in(self._timeout_ns / 1e9) if self._timeout_ns else None


def _left_s(deadline_s: float | None, where: str) -> float | None:
    """How long it is to a deadline; None if there is none.

    Raises
    ------
    NnapiError
        MISSED_DEADLINE_PERSISTENT if it has passed.
    """
    if deadline_s is None:
        return None
    left_s = deadline_s - time.perf_counter()
    if left_s <= 0:
        raise _too_late(where)
    return left_s


def _too_late(where: str) -> NnapiError:
    """The error for what could not begin in time."""
    return NnapiError(
        "the deadline passed before the execution could begin",
        code=ResultCode.MISSED_DEADLINE_PERSISTENT,
        where=where,
    )
