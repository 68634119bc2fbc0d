"""Executions: one run of a compiled model each."""

from __future__ import annotations

import enum
import logging
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from numbers import Real

import numpy as np

from armpy.errors import ExecutionTimeoutError, NnapiError, ResultCode
from armpy.nnapi.buffers import readable_bytes, writable_bytes
from armpy.nnapi.codes import DurationCode
from armpy.nnapi.compilation import Compilation
from armpy.nnapi.memory import Memory
from armpy.nnapi.operand_type import OperandType
from armpy.nnapi.optional import check_left_out
from armpy.nnapi.outputs import OutputShapes
from armpy.nnapi.request import (
    Request,
    RequestArgument,
    RequestArguments,
    check_dimensions,
    validate_request,
)
from armpy.nnapi.results import (
    bad_data,
    bad_state,
    check_kind,
    require_data,
    result_codes,
    unexpected_null,
)
from armpy.ops.operation import Array

_log = logging.getLogger("armpy.nnapi")

DEFAULT_LOOP_TIMEOUT_NS = 2_000_000_000
"""How long a WHILE may take if nobody says otherwise."""

MAXIMUM_LOOP_TIMEOUT_NS = 15_000_000_000
"""The longest time that a WHILE may be given."""

DURATION_UNAVAILABLE = 2**64 - 1
"""Stands for a duration that was not measured."""


class _State(enum.Enum):
    """How far an execution has come."""

    BUILDING = "building"
    STARTED = "started"
    FINISHED = "finished"


class Execution:
    """One run of a compiled model.

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
        if compilation is None:
            raise unexpected_null("the compilation", where="Execution")
        check_kind(compilation, Compilation, "Execution")
        compilation.check_ready("Execution")
        self._compilation = compilation
        main = compilation.description.main
        self._inputs = RequestArguments("input", [main.operands[i] for i in main.inputs])
        self._outputs = RequestArguments("output", [main.operands[i] for i in main.outputs])
        self._shapes = OutputShapes(self._outputs.operands)
        self._loop_timeout_ns = DEFAULT_LOOP_TIMEOUT_NS
        self._is_timed = False
        self._duration_ns = DURATION_UNAVAILABLE
        self._state = _State.BUILDING
        self._result: ResultCode | None = None
        self._lock = threading.Lock()

    def set_input(self, index: int, value: object, operand_type: OperandType | None = None) -> None:
        """Give an input its elements.

        Parameters
        ----------
        index : int
            Position among the model's inputs.
        value : ndarray, bytes-like, number or None
            Used in place, so it must not change until the execution is over; None for an
            optional input that is left out.
        operand_type : OperandType, optional
            Needed where the model does not say all dimensions.

        Raises
        ------
        NnapiError
            BAD_STATE after the start, or if the input is set already; BAD_DATA if there is no such
            input, or type or length do not fit.
        """
        where = f"Execution.set_input({index})"
        self._check_building(where)
        operand = self._inputs.operand(index, where)
        dimensions = check_dimensions(operand, operand_type, where, allow_unspecified=value is None)
        data = None if value is None else readable_bytes(value, operand, where)
        self._inputs.set(index, data, dimensions, where)

    def set_output(
        self, index: int, buffer: object, operand_type: OperandType | None = None
    ) -> None:
        """Say where an output is to be written.

        Parameters
        ----------
        index : int
            Position among the model's outputs.
        buffer : ndarray, writable bytes-like or None
            At least as large as the output; None for an optional one that is not wanted.
        operand_type : OperandType, optional
            What is known of the dimensions beyond what the model says.

        Raises
        ------
        NnapiError
            As for `set_input`.
        """
        where = f"Execution.set_output({index})"
        self._check_building(where)
        operand = self._outputs.operand(index, where)
        dimensions = check_dimensions(operand, operand_type, where, allow_unspecified=True)
        data = None if buffer is None else writable_bytes(buffer, operand, where)
        # Only an output that could be set may change what is expected of the result.
        self._outputs.set(index, data, dimensions, where)
        self._shapes.expect(index, dimensions)

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
            UNEXPECTED_NULL without memory; BAD_DATA if the region is not in it.
        """
        where = f"Execution.set_input_from_memory({index})"
        self._check_memory(memory, where)
        operand = self._inputs.operand(index, where)
        dimensions = check_dimensions(operand, operand_type, where, allow_unspecified=False)
        data = memory.region(offset, length, where)
        self._inputs.set(index, data, dimensions, where)

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
        operand = self._outputs.operand(index, where)
        dimensions = check_dimensions(operand, operand_type, where, allow_unspecified=True)
        data = memory.region(offset, length, where)
        require_data(memory.is_writable, "the memory is read-only", where=where)
        self._outputs.set(index, data, dimensions, where)
        self._shapes.expect(index, dimensions)

    def set_measure_timing(self, measure: bool) -> None:
        """Say whether to measure how long it takes.

        Raises
        ------
        NnapiError
            BAD_DATA unless the compilation is for one device that was chosen; BAD_STATE after the
            start.
        """
        where = "Execution.set_measure_timing"
        devices = self._compilation.devices
        require_data(
            devices is not None and len(devices) == 1,
            "only executions on one chosen device are measured",
            where=where,
            expected="a compilation for one device",
            actual="none was chosen" if devices is None else f"{len(devices)} devices",
            fix="Make it with Compilation.create_for_devices",
        )
        self._check_building(where)
        self._is_timed = bool(measure)

    def set_loop_timeout(self, duration_ns: int) -> None:
        """Say how long each WHILE may take, and each IF.

        Parameters
        ----------
        duration_ns : int
            Of an outermost one, with all that it runs. 0 stops after the first true condition; at
            most `MAXIMUM_LOOP_TIMEOUT_NS`, which also stands for all longer ones.

        Raises
        ------
        NnapiError
            BAD_STATE after the start; BAD_DATA if it is below 0.
        """
        where = "Execution.set_loop_timeout"
        self._check_building(where)
        require_data(
            isinstance(duration_ns, Real) and duration_ns >= 0,
            "the time is below 0, or no number",
            where=where,
            expected="nanoseconds, 0 or more",
            actual=repr(duration_ns),
        )
        # NNAPI clamps what is too long, and does not refuse it.
        if duration_ns > MAXIMUM_LOOP_TIMEOUT_NS:
            _log.warning("%s: %d ns is more than the maximum, which is used", where, duration_ns)
        self._loop_timeout_ns = min(duration_ns, MAXIMUM_LOOP_TIMEOUT_NS)

    def compute(self) -> None:
        """Run the model and write the outputs.

        Raises
        ------
        NnapiError
            BAD_STATE if it was started before; BAD_DATA if an input or output is not set;
            OP_FAILED if an operation cannot run with these inputs; OUTPUT_INSUFFICIENT_SIZE if
            an output does not fit its buffer, nothing being written then (see
            `get_output_operand_dimensions`); MISSED_DEADLINE_TRANSIENT if a loop took too long;
            OUT_OF_MEMORY.
        """
        where = "Execution.compute"
        self._check_building(where)
        # Before the start: what is not set yet can be set still, and computed then.
        request = Request(self._inputs.complete(where), self._outputs.complete(where))
        with self._running(where):
            main = self._compilation.description.main
            check_left_out(main, request.outputs, where)
            validate_request(main, request)
            results = self._execute(request.inputs)
            self._shapes.write(request.outputs, results, where)

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
            As for `set_input` and `compute`.
        """
        where = "Execution.run"
        operands = self._inputs.operands
        require_data(
            len(inputs) == len(operands),
            "the number of inputs is not the model's",
            where=where,
            expected=str(len(operands)),
            actual=str(len(inputs)),
        )
        for index, (operand, value) in enumerate(zip(operands, inputs, strict=True)):
            given = None
            if isinstance(value, np.ndarray) and operand.is_tensor:
                shape = value.shape[: value.ndim - len(operand.element_shape)]
                given = OperandType(operand.type, shape, operand.scale, operand.zero_point)
            self.set_input(index, value, given)
        given_inputs = self._inputs.complete(where)
        with self._running(where):
            results = self._execute(given_inputs)
            for index, result in enumerate(results):
                self._shapes.note(index, result, where)
        return results

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

        Returns
        -------
        int
            `DURATION_UNAVAILABLE` for the time on hardware, which backends do not tell.

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
        elif self._state is not _State.FINISHED or self._result is not ResultCode.NO_ERROR:
            error = bad_state("the execution has not ended well", where=where)
        elif not self._is_timed:
            error = bad_state(
                "the execution was not measured", where=where, fix="Call set_measure_timing before"
            )
        if error is not None:
            error.value = DURATION_UNAVAILABLE  # NNAPI sets *duration also when it fails
            raise error
        is_on_hardware = duration_code in (
            DurationCode.ON_HARDWARE,
            DurationCode.FENCED_ON_HARDWARE,
        )
        return DURATION_UNAVAILABLE if is_on_hardware else self._duration_ns

    @property
    def compilation(self) -> Compilation:
        """What is run."""
        return self._compilation

    def _check_memory(self, memory: Memory, where: str) -> None:
        """An argument in memory needs memory, and an execution that has not started."""
        if memory is None:
            raise unexpected_null("the memory", where=where, expected="a Memory")
        check_kind(memory, Memory, where)
        self._check_building(where)

    def _check_building(self, where: str) -> None:
        """Check that the execution has not been started."""
        if self._state is not _State.BUILDING:
            raise bad_state(
                "the execution has been started", where=where, fix="Make another one for each run"
            )

    @contextmanager
    def _running(self, where: str) -> Iterator[None]:
        """Start, and note what it came to."""
        with self._lock:  # of two threads that start it, one gets BAD_STATE
            self._check_building(where)
            # Not to be taken back, even if it fails: NNAPI has one run per execution.
            self._state = _State.STARTED
        try:
            with result_codes(where):
                yield
            self._result = ResultCode.NO_ERROR
        except NnapiError as error:
            self._result = error.code
            raise
        finally:
            self._state = _State.FINISHED

    def _execute(self, inputs: Sequence[RequestArgument]) -> list[Array]:
        """Run the network that is for these inputs."""
        # An operation without an optional operand is another layer, so there is a network for
        # each set of inputs that are left out; the others move up.
        omitted = [position for position, argument in enumerate(inputs) if argument.has_no_value]
        network = self._compilation.network(omitted)
        arrays = [
            argument.elements(operand)
            for operand, argument in zip(self._inputs.operands, inputs, strict=True)
            if not argument.has_no_value
        ]
        started = time.perf_counter_ns()
        try:
            results = network.run(arrays, loop_timeout_s=self._loop_timeout_ns / 1e9)
        except ExecutionTimeoutError as error:
            error.fix = "Call set_loop_timeout before if the loop needs longer; at most 15 s"
            raise
        self._duration_ns = time.perf_counter_ns() - started
        return results

    def _check_has_shapes(self, where: str) -> None:
        """Check that the execution got so far that the outputs' dimensions are known."""
        # NNAPI tells dimensions after OUTPUT_INSUFFICIENT_SIZE, too: for a second execution with
        # buffers that are large enough.
        known = (ResultCode.NO_ERROR, ResultCode.OUTPUT_INSUFFICIENT_SIZE)
        if self._state is not _State.FINISHED or self._result not in known:
            raise bad_state("the execution has not ended well", where=where)
