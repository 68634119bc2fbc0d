"""Executions: runs of a compiled model."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING

import numpy as np

from armpy.backend import ExecutionTiming, timed_by
from armpy.errors import ArmpyError, ExecutionTimeoutError, NnapiError, ResultCode
from armpy.nnapi.codes import DurationCode
from armpy.nnapi.compilation import Compilation
from armpy.nnapi.execution_setup import ExecutionSetup, State, check_duration
from armpy.nnapi.operand_type import OperandType
from armpy.nnapi.results import (
    as_nnapi_error,
    bad_data,
    bad_state,
    check_kind,
    require_data,
    unexpected_null,
)
from armpy.ops.operation import Array
from armpy.runtime.limits import UNSET, Unset, loop_timeout

# What few executions need is imported by those.
# ruff: noqa: PLC0415

if TYPE_CHECKING:
    from armpy.nnapi.events import Event
    from armpy.runtime.execution import Execution as BoundExecution
    from armpy.runtime.jobs import ExecutionFuture

DURATION_UNAVAILABLE = 2**64 - 1
"""Stands for a duration that was not measured."""

_COMPUTE = "Execution.compute"


class Execution(ExecutionSetup):
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
        self._result: ResultCode | None = None
        self._durations_ns = _NO_DURATIONS
        # Whoever takes it out runs: to take from a list is one step, and the quickest lock.
        self._turn: list[None] = [None]
        self._bound: BoundExecution | None = None
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
            bound = self._bound
            if bound is None:
                self._compute()
            else:
                self._is_idle = False
                bound()
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
            arrays.append(self._input_array(slot, value, given, f"{where}: input {index}"))
        self._take_turn(where)
        try:
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

        self._begin("Execution.start_compute")
        event = Event()
        self._start(event, self._timeout_s(), time.perf_counter_ns())
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
            How long it may take from when the last fence has been signalled; 0 for no limit.

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
        from armpy.nnapi.events import Event, when_all_are_done

        where = "Execution.start_compute_with_dependencies"
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
        self._begin(where)
        event = Event(has_fence=True)
        launched_ns = time.perf_counter_ns()

        def begin(failed: BaseException | None) -> None:
            if failed is None:
                timeout_s = duration_ns / 1e9 if duration_ns else self._timeout_s()
                self._start(event, timeout_s, launched_ns)
                return
            error = NnapiError(
                f"a dependency has failed: {failed}", code=ResultCode.OP_FAILED, where=where
            )
            error.__cause__ = failed
            self._end(error.code)
            event.settle(error)

        when_all_are_done(dependencies, begin)
        return event

    def get_output_operand_rank(self, index: int) -> int:
        """Rank of an output after the execution.

        Raises
        ------
        NnapiError
            BAD_STATE unless it ended well or with OUTPUT_INSUFFICIENT_SIZE; BAD_DATA if there is
            no such output; OUTPUT_INSUFFICIENT_SIZE if the output did not fit its buffer, the
            rank being the error's `value`.
        """
        where = f"Execution.get_output_operand_rank({index})"
        self._check_has_shapes(where)
        return self._shapes.rank(index, where)

    def get_output_operand_dimensions(self, index: int) -> tuple[int, ...]:
        """Dimensions of an output after the execution.

        Raises
        ------
        NnapiError
            As for `get_output_operand_rank`; BAD_DATA for a scalar.
        """
        where = f"Execution.get_output_operand_dimensions({index})"
        self._check_has_shapes(where)
        return self._shapes.dimensions(index, where)

    def get_duration(self, duration_code: int = DurationCode.IN_DRIVER) -> int:
        """How long the execution took, in nanoseconds.

        Parameters
        ----------
        duration_code : DurationCode
            IN_DRIVER counts from the start, with the time that it waited; FENCED_IN_DRIVER from
            when its dependencies had been signalled. ON_HARDWARE is what the backends have told
            (`armpy.backend.ExecutionTiming`), and so is FENCED_ON_HARDWARE.

        Returns
        -------
        int
            `DURATION_UNAVAILABLE` for the time on hardware where no backend tells it.

        Raises
        ------
        NnapiError
            BAD_DATA if there is no such code; BAD_STATE if the execution has not ended well or
            was not measured. The error's `value` is `DURATION_UNAVAILABLE`.
        """
        where = "Execution.get_duration"
        error: NnapiError | None = None
        if duration_code not in tuple(DurationCode):
            error = bad_data("there is no such duration", where=where, actual=str(duration_code))
        elif self._state is not State.FINISHED or self._result is not ResultCode.NO_ERROR:
            error = bad_state("the execution has not ended well", where=where)
        elif not self._is_timed:
            error = bad_state(
                "the execution was not measured", where=where, fix="Call set_measure_timing before"
            )
        if error is not None:
            error.value = DURATION_UNAVAILABLE  # NNAPI sets *duration also when it fails
            raise error
        return self._durations_ns[duration_code]

    def close(self) -> None:
        """Give back what a reusable execution has prepared; BAD_STATE while it is under way."""
        self._check_free("Execution.close")
        self._turn, self._is_closed = [], True
        self.release()

    def release_if_idle(self) -> bool:
        """Give back what it has prepared unless it was used since the last call of this.

        Returns
        -------
        bool
            Whether it still has something. The next computation prepares it again.
        """
        if self._bound is None:
            return False
        try:
            self._turn.pop()
        except IndexError:
            return True
        if self._is_idle:
            self.release()
        self._is_idle = True
        self._turn.append(None)
        return self._bound is not None

    def release(self) -> None:
        """Give back what it has prepared; the next computation prepares it again."""
        bound, self._bound = self._bound, None
        if bound is not None:
            bound.close()

    def _begin(self, where: str) -> None:
        """Start, unless something is missing: it can be set still, and computed then."""
        if self._state is State.BUILDING:
            self._inputs.check_complete(where)
            self._outputs.check_complete(where)
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
        self._state = State.FINISHED
        if self._is_reusable:
            self._turn.append(None)

    def _raise_failed(self, error: BaseException, where: str) -> None:
        """Note that it failed, and raise why."""
        explained = self._explained(error, where)
        code = explained.code if isinstance(explained, NnapiError) else ResultCode.OP_FAILED
        if code is not ResultCode.OUTPUT_INSUFFICIENT_SIZE:
            self.release()  # what it was prepared with may have gone
        self._end(code)
        if explained is error:
            raise error
        raise explained from error

    def _explained(self, error: BaseException, where: str) -> BaseException:
        """The result code of what it failed with."""
        if isinstance(error, ExecutionTimeoutError) and error.fix:  # it is of control flow
            error.fix = "Call set_loop_timeout before if the loop needs longer; at most 15 s"
        if isinstance(error, (ArmpyError, MemoryError)):
            return as_nnapi_error(error, where)
        return error

    def _compute(self) -> None:
        """Run with the arrays that were set, and write the outputs."""
        inputs, outputs = self._inputs, self._outputs
        network = self._compilation.whole
        if network is None or self._is_timed or self._timeout_ns or not self._is_in_place():
            self._check_left_out()
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
        bound()
        self._bound = bound
        self._is_idle = False
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

    def _results(self, arrays: Sequence[Array | None]) -> list[Array]:
        """Run the network that is for these inputs."""
        # An operation without an optional operand is another layer, so there is a network for
        # each set of inputs that are left out; the others move up.
        omitted = [position for position, array in enumerate(arrays) if array is None]
        network = self._compilation.network(omitted)
        given = [array for array in arrays if array is not None]
        timing = ExecutionTiming()
        started_ns = time.perf_counter_ns()
        with timed_by(timing) if self._is_timed else nullcontext():
            results = network.run(
                given, loop_timeout_s=self._loop_timeout_s(), deadline_s=self._timeout_s()
            )
        self._note_durations(timing, started_ns, started_ns)
        return results

    def _start(self, event: Event, timeout_s: float | None, launched_ns: int) -> None:
        """Run on a thread of the runtime's, and tell an event."""
        from armpy.runtime import starting

        where = "Execution.start_compute"
        timing = ExecutionTiming()
        ready_ns = time.perf_counter_ns()

        def finish(future: ExecutionFuture[dict[str, Array]]) -> None:
            failed: BaseException | None = None
            try:
                self._shapes.write(self._outputs.arrays, [*future.result().values()], where)
                self._note_durations(timing, launched_ns, ready_ns)
            except BaseException as error:  # noqa: BLE001 - told to whoever waits
                failed = self._explained(error, where)
                is_late = isinstance(error, ExecutionTimeoutError) and not future.was_begun
                if is_late and isinstance(failed, NnapiError):
                    failed.code = ResultCode.MISSED_DEADLINE_PERSISTENT
            code = ResultCode.NO_ERROR
            if failed is not None:
                code = failed.code if isinstance(failed, NnapiError) else ResultCode.OP_FAILED
            self._end(code)
            event.settle(failed)

        try:
            self._check_left_out()
            arrays = self._inputs.arrays
            omitted = [position for position, array in enumerate(arrays) if array is None]
            network = self._compilation.network(omitted)
            limit_s = self._loop_timeout_s()
            limit = nullcontext() if limit_s is UNSET else loop_timeout(limit_s)
            with limit, timed_by(timing) if self._is_timed else nullcontext():
                future = starting.start(
                    network,
                    [array for array in arrays if array is not None],
                    priority=self._compilation.priority,
                    deadline_s=timeout_s,
                    keep_alive=self._compilation,
                )
        except BaseException as error:  # noqa: BLE001 - told to whoever waits
            failed = self._explained(error, where)
            self._end(failed.code if isinstance(failed, NnapiError) else ResultCode.OP_FAILED)
            event.settle(failed)
            return
        future.add_done_callback(finish)  # type: ignore[arg-type]  # with this one

    def _note_durations(self, timing: ExecutionTiming, launched_ns: int, ready_ns: int) -> None:
        """Note how long it took from its launch, and from when nothing held it up any more."""
        if not self._is_timed:
            return
        now_ns = time.perf_counter_ns()
        on_device = timing.on_device_ns
        on_hardware = DURATION_UNAVAILABLE if on_device is None else on_device
        self._durations_ns = {
            DurationCode.ON_HARDWARE: on_hardware,
            DurationCode.IN_DRIVER: now_ns - launched_ns,
            DurationCode.FENCED_ON_HARDWARE: on_hardware,
            DurationCode.FENCED_IN_DRIVER: now_ns - ready_ns,
        }

    def _loop_timeout_s(self) -> float | Unset:
        """How long a loop may take; what the runtime's options say, unless it was set."""
        return UNSET if self._loop_timeout_ns is None else self._loop_timeout_ns / 1e9

    def _timeout_s(self) -> float | None:
        """How long all of it may take."""
        return self._timeout_ns / 1e9 if self._timeout_ns else None

    def _check_has_shapes(self, where: str) -> None:
        """Check that the execution got so far that the outputs' dimensions are known."""
        # NNAPI tells dimensions after OUTPUT_INSUFFICIENT_SIZE, too: for a second execution with
        # buffers that are large enough.
        known = (ResultCode.NO_ERROR, ResultCode.OUTPUT_INSUFFICIENT_SIZE)
        if self._state is not State.FINISHED or self._result not in known:
            raise bad_state("the execution has not ended well", where=where)


_NO_DURATIONS: dict[int, int] = dict.fromkeys(DurationCode, DURATION_UNAVAILABLE)
"""Of an execution that has not been measured."""
