"""Executions: runs of a compiled model."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from armpy.core.vlog import is_on
from armpy.ops.operation import Array
from armpy_nnapi.codes import DurationCode
from armpy_nnapi.compile.compilation import Compilation
from armpy_nnapi.description.operand_type import OperandType
from armpy_nnapi.errors import NnapiError, ResultCode
from armpy_nnapi.memory import Memory
from armpy_nnapi.results import bad_state, check_kind, log_end, require_data, unexpected_null
from armpy_nnapi.run.arguments import ExecutionArguments
from armpy_nnapi.run.computing import COMPUTE, compute, run_with
from armpy_nnapi.run.execution_results import ExecutionResults
from armpy_nnapi.run.limits import NO_LIMITS, check_duration, clamped_loop_timeout
from armpy_nnapi.run.preparation import Preparation
from armpy_nnapi.run.turn import Turn

if TYPE_CHECKING:
    from armpy_nnapi.run.events import Event
    from armpy_nnapi.run.launch import Launch

_NO_TIMEOUT = "only executions on one chosen device have time-outs"


class ExecutionState(enum.Enum):
    """State of an execution."""

    BUILDING = "building"
    STARTED = "started"
    FINISHED = "finished"


class Execution:
    """One run of a compiled model; any number of them if it is reusable.

    Parameters
    ----------
    compilation : Compilation
        Finished.

    Raises
    ------
    NnapiError
        UNEXPECTED_NULL without a compilation; BAD_STATE if it is not finished or failed.

    Notes
    -----
    Methods that set something raise NnapiError: BAD_STATE after the start; BAD_DATA if there is no
    such input or output (`index` is its position in the model), or a type, length or number does
    not fit.
    """

    __slots__ = (
        "__weakref__",
        "_arguments",
        "_compilation",
        "_is_closed",
        "_limits",
        "_preparation",
        "_results",
        "_state",
        "_turn",
    )

    def __init__(self, compilation: Compilation) -> None:
        # By exact type first, which is quick; a subclass goes through the check and is taken.
        if type(compilation) is not Compilation:
            if compilation is None:
                raise unexpected_null("the compilation", where="Execution")
            check_kind(compilation, Compilation, "Execution")
        compilation.check_ready("Execution")
        self._compilation = compilation
        signature = compilation.signature
        self._arguments = ExecutionArguments(compilation, signature)
        self._results = ExecutionResults(signature.outputs)
        self._limits = NO_LIMITS
        self._state = ExecutionState.BUILDING
        self._turn = Turn()
        # Only of a reusable one: others run once, and binding costs more than it saves them.
        self._preparation: Preparation | None = None
        self._is_closed = False

    @property
    def compilation(self) -> Compilation:
        """The compiled model."""
        return self._compilation

    @property
    def is_reusable(self) -> bool:
        """Return whether it can be computed again."""
        return self._preparation is not None

    @property
    def is_prepared(self) -> bool:
        """Return whether a reusable execution is prepared and does not run at the moment."""
        return self._preparation is not None and self._preparation.is_there

    def set_input(self, index: int, value: object, operand_type: OperandType | None = None) -> None:
        """Give an input its elements.

        Parameters
        ----------
        value : ndarray, bytes-like, number or None
            Used in place, so it must not change until the execution is over; None for an
            optional input that is left out.
        operand_type : OperandType, optional
            Needed where the model does not say all dimensions.

        Raises
        ------
        NnapiError
            BAD_STATE also if the input is set already.

        Notes
        -----
        The C function ``ANeuralNetworksExecution_setInput`` takes the type before the buffer.
        """
        arguments = self._arguments
        # The usual array is taken at once; only other ones are examined.
        is_plain = operand_type is None and self._state is ExecutionState.BUILDING
        if is_plain and arguments.inputs.take(index, value):
            return
        where = f"Execution.set_input({index})"
        self._check_building(where)
        arguments.set_input(index, value, operand_type, where)

    def set_output(
        self, index: int, buffer: object, operand_type: OperandType | None = None
    ) -> None:
        """Say where an output is to be written.

        Parameters
        ----------
        buffer : ndarray, writable bytes-like or None
            Array or buffer at least as large as the output; None for an optional one that is not
            wanted. What it holds after an execution that failed is not known, except after
            OUTPUT_INSUFFICIENT_SIZE, which writes nothing.
        operand_type : OperandType, optional
            Known dimensions beyond those in the model.
        """
        arguments = self._arguments
        is_plain = operand_type is None and self._state is ExecutionState.BUILDING
        if is_plain and arguments.outputs.take(index, buffer):
            return
        where = f"Execution.set_output({index})"
        self._check_building(where)
        # Only an output that could be set may change the expected result.
        self._results.shapes.expect(index, arguments.set_output(index, buffer, operand_type, where))

    def set_input_from_memory(
        self,
        index: int,
        memory: Memory,
        offset: int,
        length: int,
        operand_type: OperandType | None = None,
    ) -> None:
        """Give an input its elements in shared memory; errors as for `set_input`.

        Raises
        ------
        NnapiError
            UNEXPECTED_NULL without memory; BAD_DATA if the region is not in it. Memory that was
            made from a description is used as a whole (offset and length 0), in its roles: BAD_DATA
            otherwise.
        """
        where = f"Execution.set_input_from_memory({index})"
        self._check_memory(memory, where)
        self._arguments.set_input_from_memory(index, memory, offset, length, operand_type, where)

    def set_output_from_memory(
        self,
        index: int,
        memory: Memory,
        offset: int,
        length: int,
        operand_type: OperandType | None = None,
    ) -> None:
        """Say where in shared memory an output is to be written; errors as for `set_output`.

        Raises
        ------
        NnapiError
            UNEXPECTED_NULL without memory; BAD_DATA if the region is not in it, or it cannot be
            written.
        """
        where = f"Execution.set_output_from_memory({index})"
        self._check_memory(memory, where)
        dimensions = self._arguments.set_output_from_memory(
            index, memory, offset, length, operand_type, where
        )
        self._results.shapes.expect(index, dimensions)

    def set_measure_timing(self, measure: bool) -> None:
        """Say whether to measure how long it takes.

        Raises
        ------
        NnapiError
            BAD_DATA unless the compilation is for one device that was chosen.
        """
        devices = self._compilation.devices
        # Asked here first, so as not to add to the measured time.
        if devices is None or len(devices) != 1 or self._state is not ExecutionState.BUILDING:
            where = "Execution.set_measure_timing"
            self._compilation.check_one_device(
                "only executions on one chosen device are measured", where
            )
            self._check_building(where)
        self._results.is_timed = bool(measure)

    def set_timeout(self, duration_ns: int) -> None:
        """Say how long an execution may take, from its start.

        Parameters
        ----------
        duration_ns : int
            0 for no limit.

        Raises
        ------
        NnapiError
            BAD_DATA unless the compilation is for one device that was chosen.

        Notes
        -----
        An execution that takes longer ends with MISSED_DEADLINE_TRANSIENT; one whose time was up
        before it could begin, with MISSED_DEADLINE_PERSISTENT.
        """
        where = "Execution.set_timeout"
        self._compilation.check_one_device(_NO_TIMEOUT, where)
        self._check_building(where)
        self._limits = replace(self._limits, timeout_ns=check_duration(duration_ns, where))

    def set_loop_timeout(self, duration_ns: int) -> None:
        """Say how long each WHILE may take, and each IF.

        Parameters
        ----------
        duration_ns : int
            Time limit of an outermost loop, with all that it runs. 0 stops after the first true
            condition; at most `MAXIMUM_LOOP_TIMEOUT_NS`, which also stands for all longer ones.
            Left unsaid, it is that of the manager's options, `DEFAULT_LOOP_TIMEOUT_NS` unless they
            differ.
        """
        where = "Execution.set_loop_timeout"
        self._check_building(where)
        limit_ns = clamped_loop_timeout(duration_ns, where)
        self._limits = replace(self._limits, loop_timeout_ns=limit_ns)

    def set_reusable(self, reusable: bool) -> None:
        """Say whether it can be computed again after it has come to its end.

        Parameters
        ----------
        reusable : bool
            Off unless said. A reusable execution is prepared at its first computation and then
            costs a third of a new one; one at a time. It is always for the same arguments, whose
            elements may change in between.
        """
        self._check_building("Execution.set_reusable")
        self._preparation = Preparation() if reusable else None

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
        # A reusable execution has been checked before, but for memory, whose elements change.
        if self._state is ExecutionState.BUILDING or self._arguments.memories is not None:
            self._check_arguments(COMPUTE)
        if not self._turn.take():
            raise self._not_free(COMPUTE)
        self._state = ExecutionState.STARTED
        results, preparation = self._results, self._preparation
        results.code = None
        try:
            if preparation is None or not preparation.run(results):
                compute(self._compilation, self._arguments, results, self._limits, preparation)
        except BaseException as error:  # noqa: BLE001 - raised again
            self._raise_failed(error, COMPUTE)
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
        self._arguments.inputs.check_none_set(where)
        arrays = self._compilation.signature.read(inputs, where)
        self._take_turn(where)
        try:
            shapes = self._results.shapes
            shapes.begin()
            results = run_with(self._compilation, arrays, self._results, self._limits)
            shapes.note_all(results, where)
        except BaseException as error:  # noqa: BLE001 - raised again
            self._raise_failed(error, where)
        self._end(ResultCode.NO_ERROR)
        return results

    def start_compute(self) -> Event:
        """Run the model on another thread.

        Returns
        -------
        Event
            Signals the end, and holds the error if there was one.

        Raises
        ------
        NnapiError
            BAD_STATE and BAD_DATA as for `compute`; everything else is raised by `Event.wait`.

        Notes
        -----
        Among those that wait, the compilation's priority says which comes first.
        """
        where = "Execution.start_compute"
        self._compilation.check_ready(where)
        self._check_arguments(where)
        self._take_turn(where)
        launch = self._launch(where)
        launch.begin()
        return launch.event

    def start_compute_with_dependencies(
        self, dependencies: Sequence[Event], duration_ns: int = 0
    ) -> Event:
        """Run the model on another thread as soon as some fences have been signalled.

        Parameters
        ----------
        dependencies : sequence of Event
            Events that other executions of this kind, or `Event.create_from_sync_fence_fd`, have
            given. Events without a fence, which `start_compute` gives, are waited for before this
            returns.
        duration_ns : int
            Time limit from when the last fence has been signalled, besides what `set_timeout` says
            from the call on; 0 for no limit.

        Returns
        -------
        Event
            Event with a fence.

        Raises
        ------
        NnapiError
            UNEXPECTED_NULL without a list, or if an event is None; BAD_STATE if it was started
            before; BAD_DATA if something is not set, an output's dimensions are not all known,
            or there is a time and not one chosen device. `Event.wait` raises everything else, and
            OP_FAILED if a dependency failed.
        """
        where = "Execution.start_compute_with_dependencies"
        self._compilation.check_ready(where)
        launch = self._launch(where, has_fence=True)
        # The launch counts its time-out from here on, as NNAPI does, also if a check takes long.
        launch.check_dependencies(dependencies)
        # Before the arguments are checked: starting it twice is to be reported as such.
        if not self._turn.is_free:
            raise self._not_free(where)
        duration_ns = check_duration(duration_ns, where)
        if duration_ns:
            self._compilation.check_one_device(_NO_TIMEOUT, where)
        self._arguments.outputs.check_complete(where)
        require_data(
            self._results.shapes.are_known,
            "an output's dimensions are not all known",
            where=where,
            fix="Give its type with set_output",
        )
        # Memory is not looked at yet: others may write it until their fences are signalled.
        self._arguments.inputs.check_complete(where)
        self._take_turn(where)
        launch.begin_after(dependencies, duration_ns)
        return launch.event

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
        self._results.check_shapes_known(where)
        return self._results.shapes.rank(index, where)

    def get_output_operand_dimensions(self, index: int) -> tuple[int, ...]:
        """Dimensions of an output after the execution.

        Raises
        ------
        NnapiError
            As for `get_output_operand_rank`; BAD_DATA for a scalar.
        """
        where = f"Execution.get_output_operand_dimensions({index})"
        self._results.check_shapes_known(where)
        return self._results.shapes.dimensions(index, where)

    def get_duration(self, duration_code: int = DurationCode.IN_DRIVER) -> int:
        """Duration of the execution in nanoseconds.

        Parameters
        ----------
        duration_code : DurationCode IN_DRIVER counts from the start, with the time that it waited;
            FENCED_IN_DRIVER from when its dependencies had been signalled. ON_HARDWARE and
            FENCED_ON_HARDWARE are the backends' figures (`armpy.backend.ExecutionTiming`).

        Returns
        -------
        int
            `DURATION_UNAVAILABLE` for the time on hardware where no backend reports it.

        Raises
        ------
        NnapiError
            BAD_DATA if there is no such code; BAD_STATE if the execution has not ended well or
            was not measured. The error's `value` is `DURATION_UNAVAILABLE`.
        """
        return self._results.duration_ns(duration_code, "Execution.get_duration")

    def release(self) -> None:
        """Release its prepared program, unless it is under way; the next use prepares it again."""
        if self._preparation is not None:
            self._preparation.release()

    def close(self) -> None:
        """Compute no more, and release the prepared program; BAD_STATE while it is under way."""
        # The turn is taken for good, so that it cannot compute after this.
        if not self._turn.take() and self._state is ExecutionState.STARTED:
            raise self._not_free("Execution.close")
        self._is_closed = True
        if self._preparation is not None:
            self._preparation.close()

    def _check_arguments(self, where: str) -> None:
        """Check that everything is set; raised before the start, so that it can still be set."""
        arguments = self._arguments
        arguments.inputs.check_complete(where)
        arguments.outputs.check_complete(where)
        if arguments.memories is not None:
            arguments.memories.check(where)

    def _take_turn(self, where: str) -> None:
        """Start for good, also if it fails then: NNAPI has one run per execution."""
        if not self._turn.take():
            raise self._not_free(where)
        self._state = ExecutionState.STARTED
        self._results.code = None

    def _not_free(self, where: str) -> NnapiError:
        """The error that says why it cannot start."""
        if self._is_closed:
            return bad_state("the execution is closed", where=where)
        if self.is_reusable and self._state is ExecutionState.STARTED:
            return bad_state("the execution is under way", where=where, fix="Wait for its end")
        return bad_state(
            "the execution has been started",
            where=where,
            fix="Make another one for each run, or one that is reusable (set_reusable)",
        )

    def _end(self, code: ResultCode) -> None:
        """Note the end: result code, memory, state; the turn is free again if it is reusable."""
        self._results.code = code
        if is_on.execution:
            log_end(code)
        memories = self._arguments.memories
        if memories is not None:
            is_right = code is ResultCode.NO_ERROR
            memories.end(self._results.shapes.noted if is_right else None)
        self._state = ExecutionState.FINISHED
        # Last: the next run to take the turn finds everything as this one has left it.
        if self._preparation is not None:
            self._turn.give_back()

    def _raise_failed(self, error: BaseException, where: str) -> NoReturn:
        """Note that it failed, and raise why."""
        explained = self._compilation.explained(error, where)
        self._end(explained.code if isinstance(explained, NnapiError) else ResultCode.OP_FAILED)
        if explained is error:
            raise error
        raise explained from error

    def _launch(self, where: str, *, has_fence: bool = False) -> Launch:
        """A start of this execution on another thread."""
        # Threads, events and fences are imported by those that start executions; most compute.
        from armpy_nnapi.run.launch import Launch  # noqa: PLC0415 - as said

        return Launch(
            self._compilation,
            self._arguments,
            self._results,
            self._limits,
            self._end,
            where,
            has_fence=has_fence,
        )

    def _check_building(self, where: str) -> None:
        """Check that the execution has not been started."""
        if self._state is not ExecutionState.BUILDING:
            raise bad_state(
                "the execution has been started", where=where, fix="Make another one for each run"
            )

    def _check_memory(self, memory: Memory, where: str) -> None:
        """Check that an argument in memory has memory, and that it can still be set."""
        if memory is None:
            raise unexpected_null("the memory", where=where, expected="a Memory")
        check_kind(memory, Memory, where)
        self._check_building(where)
