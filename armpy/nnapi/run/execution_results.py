"""Results of executions: dimensions of outputs, and times."""

from __future__ import annotations

import time

from armpy.backend import ExecutionTiming
from armpy.errors import NnapiError, ResultCode
from armpy.nnapi.codes import DurationCode
from armpy.nnapi.compile.compilation import Compilation
from armpy.nnapi.results import bad_data, bad_state
from armpy.nnapi.run.execution_setup import ExecutionSetup, ExecutionState

DURATION_UNAVAILABLE = 2**64 - 1
"""Stands for a duration that was not measured."""


class ExecutionResults(ExecutionSetup):
    """Results of an execution after its end; parameters as for `Execution`."""

    def __init__(self, compilation: Compilation) -> None:
        super().__init__(compilation)
        self._result: ResultCode | None = None
        self._measure: tuple[ExecutionTiming, int, int, int] | None = None

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
        elif self._state is not ExecutionState.FINISHED or self._result is not ResultCode.NO_ERROR:
            error = bad_state("the execution has not ended well", where=where)
        elif not self._is_timed:
            error = bad_state(
                "the execution was not measured", where=where, fix="Call set_measure_timing before"
            )
        if error is not None:
            error.value = DURATION_UNAVAILABLE  # NNAPI sets *duration also when it fails
            raise error
        return self._duration_ns(duration_code)

    def _note_durations(self, timing: ExecutionTiming, launched_ns: int, ready_ns: int) -> None:
        """Note how long it took from its launch, and from when nothing held it up any more."""
        if self._is_timed:  # what it means is worked out for whoever asks
            self._measure = timing, launched_ns, ready_ns, time.perf_counter_ns()

    def _duration_ns(self, code: int) -> int:
        """One of the durations."""
        if self._measure is None:
            return DURATION_UNAVAILABLE
        timing, launched_ns, ready_ns, ended_ns = self._measure
        on_device = timing.on_device_ns
        if code in (DurationCode.ON_HARDWARE, DurationCode.FENCED_ON_HARDWARE):
            return DURATION_UNAVAILABLE if on_device is None else on_device
        begun_ns = launched_ns if code == DurationCode.IN_DRIVER else ready_ns
        # The time in the driver includes that on the device, whose clock may be another.
        return max(ended_ns - begun_ns, on_device or 0)

    def _check_has_shapes(self, where: str) -> None:
        """Check that the execution got so far that the outputs' dimensions are known."""
        # NNAPI tells dimensions after OUTPUT_INSUFFICIENT_SIZE, too: for a second execution with
        # buffers that are large enough.
        known = (ResultCode.NO_ERROR, ResultCode.OUTPUT_INSUFFICIENT_SIZE)
        if self._state is not ExecutionState.FINISHED or self._result not in known:
            raise bad_state("the execution has not ended well", where=where)
