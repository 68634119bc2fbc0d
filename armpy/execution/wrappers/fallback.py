"""Fallback at run time: what a backend fails to execute is executed again on the next ones."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from armpy.backend import Cancellation
from armpy.errors import ArmpyError, MemoryLimitError
from armpy.execution.programs.compiled_program import CompiledProgram
from armpy.execution.programs.program import ProgramKey
from armpy.execution.programs.staged_program import NetworkProgram
from armpy.execution.steps.control_flow import Targets
from armpy.execution.wrappers.runs import Runs
from armpy.ops.operation import Array
from armpy.plugins.proxy.error_attribution import FAILURES, backend_of
from armpy.types import BackendId

_FAILURES = (*FAILURES, MemoryLimitError)
"""What leads to the next backend, where one is to blame."""

_log = logging.getLogger("armpy.execution")

ProgramWithout: TypeAlias = Callable[[BackendId, ArmpyError, ProgramKey], NetworkProgram]
"""Makes another program when a backend has failed; see `LoadedNetwork.program_without`."""

WeakProgramWithout: TypeAlias = Callable[[], ProgramWithout | None]
"""Weak reference to a `ProgramWithout`, as a `weakref.WeakMethod`."""


def falling_back(
    runs: Runs,  # of the program
    # Weak reference to a ProgramWithout; of the network whose program it is.
    program_without: WeakProgramWithout,
    key: ProgramKey,  # what it is prepared for
    program: NetworkProgram,
) -> Runs:
    """Execute a program that is made anew, without the backend, when one fails to execute it.

    A `BackendError` leads to the next backend, and so do a device that is gone, and memory that a
    backend has not got; what a caller has got wrong, cancellations and deadlines do not. Executions
    read their sources only, and write state when they have come to their end, so that each attempt
    begins with the same. A backend that has failed once gets no layer of the network again, if
    others take them all; else its error is the caller's.
    """
    next_programs = _NextPrograms(program_without, key)
    # One tuple, so that another thread never sees the program of one and the function of another.
    current = program, runs.run

    def run(
        sources: Sequence[Array],
        results: Targets | None = None,
        cancellation: Cancellation | None = None,
    ) -> list[Array]:
        nonlocal current
        while True:
            latest, run_latest = current
            try:
                # A copy: an attempt that fails may have put new arrays where there were none.
                targets = None if results is None else [*results]
                return run_latest(sources, targets, cancellation)
            except _FAILURES as error:
                program = next_programs.program(latest, error)
                current = program, program.run

    def bind(sources: Sequence[Array], results: Targets) -> Callable[[], None]:
        latest, call = next_programs.bound(current[0], sources, results)

        def execute() -> None:
            nonlocal latest, call
            while True:
                try:
                    return call()
                except _FAILURES as error:
                    program = next_programs.program(latest, error)
                    latest, call = next_programs.bound(program, sources, results)

        return execute

    return Runs(run, None if runs.bind is None else bind)


class _NextPrograms(NamedTuple):
    """Programs that follow one whose backend has failed."""

    program_without: WeakProgramWithout
    key: ProgramKey

    def bound(
        self, program: NetworkProgram, sources: Sequence[Array], results: Targets
    ) -> tuple[NetworkProgram, Callable[[], None]]:
        """Let the first program bind that can."""
        while True:
            assert isinstance(program, CompiledProgram)  # of a network without open shapes all are
            try:
                return program, program.bind(sources, results)  # type: ignore[arg-type]  # all shapes are known
            except _FAILURES as error:
                program = self.program(program, error)

    def program(self, program: NetworkProgram, error: ArmpyError) -> NetworkProgram:
        """The program without the backend that has failed.

        Raises ArmpyError (the error itself, if it is not a backend's or no other backend takes the
        layers).
        """
        program_without = self.program_without()
        backend_id = backend_of(error)
        if program_without is None or not backend_id:
            raise error
        try:
            following = program_without(backend_id, error, self.key)
        except ArmpyError as refusal:
            _log.warning("no other backend can execute what %s failed to: %s", backend_id, refusal)
            raise error from error.__cause__
        # It would fail in the same way, for ever.
        if following is program:
            raise error
        return following
