"""Results of one execution: its result code, dimensions of outputs, and times."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from armpy.backend import ExecutionTiming
from armpy.backend.timing import enter_timing, leave_timing
from armpy_nnapi.codes import DurationCode
from armpy_nnapi.compile.outputs import OutputShapes
from armpy_nnapi.compile.signature import ArgumentSlot
from armpy_nnapi.errors import NnapiError, ResultCode
from armpy_nnapi.results import bad_data, bad_state

DURATION_UNAVAILABLE = 2**64 - 1
"""Stands for a duration that was not measured."""

_Made = TypeVar("_Made")

_FIRST = "Call compute, or wait for the event, first"


class ExecutionResults:
    """Result code, output shapes and times of an execution, known after its end.

    Parameters
    ----------
    slots : sequence of ArgumentSlot
        The model's outputs.

    Attributes
    ----------
    is_timed : bool
        Whether it is measured how long executions take.
    code : ResultCode, optional
        The result of the latest one; None before its end.
    """

    __slots__ = ("_measure", "code", "is_timed", "shapes")

    def __init__(self, slots: Sequence[ArgumentSlot]) -> None:
        self.shapes = OutputShapes(slots)
        self.is_timed = False
        self.code: ResultCode | None = None
        self._measure: tuple[ExecutionTiming, int, int, int] | None = None

    def measure(self, call: Callable[[], _Made]) -> _Made:
        """Call something on this thread and note how long it takes."""
        timing = ExecutionTiming()
        started_ns = time.perf_counter_ns()
        token = enter_timing(timing)
        try:
            result = call()
        finally:
            leave_timing(token)
        self.note_durations(timing, started_ns, started_ns)
        return result

    def note_durations(self, timing: ExecutionTiming, launched_ns: int, ready_ns: int) -> None:
        """Note the times of launch, of the last dependency's end, and of the end, which is now."""
        # Only noted: durations are computed on request, which is rare.
        self._measure = timing, launched_ns, ready_ns, time.perf_counter_ns()

    def check_shapes_known(self, where: str) -> None:
        """Check that the execution got so far that the outputs' dimensions are known.

        Raises
        ------
        NnapiError
            BAD_STATE if not.
        """
        # NNAPI reports dimensions after OUTPUT_INSUFFICIENT_SIZE, too: for a second execution with
        # buffers that are large enough.
        if self.code not in (ResultCode.NO_ERROR, ResultCode.OUTPUT_INSUFFICIENT_SIZE):
            raise bad_state("the execution has not ended well", where=where, fix=_FIRST)

    def duration_ns(self, duration_code: int, where: str) -> int:
        """One of the durations; see `Execution.get_duration`."""
        error: NnapiError | None = None
        if duration_code not in tuple(DurationCode):
            error = bad_data(
                "unknown duration",
                where=where,
                expected=", ".join(f"{code.name} ({code})" for code in DurationCode),
                actual=str(duration_code),
            )
        elif self.code is not ResultCode.NO_ERROR:
            error = bad_state("the execution has not ended well", where=where, fix=_FIRST)
        elif not self.is_timed:
            error = bad_state(
                "the execution was not measured", where=where, fix="Call set_measure_timing before"
            )
        if error is not None:
            error.value = DURATION_UNAVAILABLE  # NNAPI sets *duration also when it fails
            raise error
        if self._measure is None:
            return DURATION_UNAVAILABLE
        timing, launched_ns, ready_ns, ended_ns = self._measure
        on_device = timing.on_device_ns
        if duration_code in (DurationCode.ON_HARDWARE, DurationCode.FENCED_ON_HARDWARE):
            return DURATION_UNAVAILABLE if on_device is None else on_device
        begun_ns = launched_ns if duration_code == DurationCode.IN_DRIVER else ready_ns
        # The time in the driver includes that on the device, whose clock may be another.
        return max(ended_ns - begun_ns, on_device or 0)
