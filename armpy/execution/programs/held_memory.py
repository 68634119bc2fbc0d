"""Held memory: a program's working memory that is kept for one execution at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from armpy.backend import Cancellation
from armpy.errors import InvalidArgumentError
from armpy.execution.steps.control_flow import Targets
from armpy.ops.operation import Array
from armpy.types import BackendId

if TYPE_CHECKING:
    from armpy.execution.programs.memory import StepMemory
    from armpy.execution.programs.program import StepProgram


class HeldMemory:
    """A program's working memory that one execution at a time has; errors as for `new_memory`."""

    def __init__(
        self,
        program: StepProgram,
        bytes_by_backend: Mapping[BackendId, int],  # the memory of the program's parts included
        # Makes the results of the sources and the results in the memory, where more has to run.
        run_rest_after: Callable[
            [Sequence[Array], Sequence[Array], Targets | None, Cancellation | None], list[Array]
        ]
        | None = None,
    ) -> None:
        self._program = program
        self.bytes_by_backend = bytes_by_backend
        self._run_rest_after = run_rest_after
        self._why_closed = ""
        # At once: if there is none, the caller gets the error here, and not in an execution.
        self._memory: StepMemory | None = program.new_memory()  # None: still to be made
        # The caller that deletes it executes, as in `armpy.execution.calls.execution`.
        self._turn = [None]

    def run(
        self,
        sources: Sequence[Array],
        results: Targets | None = None,
        cancellation: Cancellation | None = None,
    ) -> list[Array]:
        """Execute once; parameters and result as for `StepProgram.run`."""
        try:
            del self._turn[0]
        except IndexError:
            text, fix = "the working memory is in use by another thread", "Make one for each thread"
            if self._why_closed:
                text, fix = self._why_closed, "Make another one"
            raise InvalidArgumentError(text, fix=fix) from None
        try:
            memory = self._memory
            if memory is None:
                memory = self._memory = self._program.new_memory()
            if self._run_rest_after is None:
                return memory.run(sources, results, cancellation)
            head_results = memory.run(sources, None, cancellation)
            return self._run_rest_after(sources, head_results, results, cancellation)
        except BaseException:
            self._forget()  # one whose execution failed is not used again
            raise
        finally:
            # In this order: another thread that closes it finds it taken, and leaves it here.
            self._turn.append(None)
            self._free_if_closed()

    def close(self, why: str) -> None:
        """Give it back, or have it given back by the execution that is under way."""
        self._why_closed = self._why_closed or why
        self._free_if_closed()

    @property
    def is_closed(self) -> bool:
        """Return whether it is not to be used any more."""
        return bool(self._why_closed)

    def _forget(self) -> None:
        """Give the memory back, if there is one."""
        memory, self._memory = self._memory, None
        if memory is not None:
            memory.free()

    def _free_if_closed(self) -> None:
        """Give it back if it is neither used nor wanted."""
        while self._why_closed and self._turn:
            try:
                del self._turn[0]
            except IndexError:  # another thread has taken it since
                return
            self._forget()
