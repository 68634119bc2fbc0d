"""Turns of executions: who runs one, what it came to, and what it keeps for the next time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from armpy.backend import ExecutionTiming
from armpy.backend.timing import enter_timing, leave_timing
from armpy.core.vlog import is_on, vlog
from armpy.errors import (
    ArmpyError,
    ExecutionTimeoutError,
    InvalidArgumentError,
    NnapiError,
    ResultCode,
)
from armpy.execution.programs.loop_timeout import UNSET, Unset
from armpy.execution.scheduling.stop_signal import deadline_in
from armpy.nnapi.compile.compilation import Compilation
from armpy.nnapi.results import as_nnapi_error, bad_state
from armpy.nnapi.run.execution_results import ExecutionResults
from armpy.nnapi.run.execution_setup import ExecutionState
from armpy.ops.operation import Array

if TYPE_CHECKING:
    from armpy.execution import LoadedNetwork
    from armpy.execution.calls.execution import Execution as BoundExecution


class ExecutionTurns(ExecutionResults):
    """An execution that one thread at a time runs; parameters as for `Execution`."""

    def __init__(self, compilation: Compilation) -> None:
        super().__init__(compilation)
        # Whoever takes it out runs: to take from a list is one step, and the quickest lock.
        self._turn: list[None] = [None]
        # Of whoever takes it out, also when it has idled: nobody else can use or release it.
        self._prepared: list[BoundExecution] = []
        self._is_idle = False
        self._is_closed = False

    def close(self) -> None:
        """Compute no more, and give back what is prepared; BAD_STATE while it is under way."""
        try:
            self._turn.pop()
        except IndexError:
            if self._state is ExecutionState.STARTED:
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
            if self._is_timed:
                timing = ExecutionTiming()
                started_ns = time.perf_counter_ns()
                token = enter_timing(timing)
                try:
                    bound()
                finally:
                    leave_timing(token)
                self._measure = timing, started_ns, started_ns, time.perf_counter_ns()
            else:
                bound()
        except BaseException:
            bound.close()
            raise
        self._prepared.append(bound)

    def _begin(self, where: str, *, is_fenced: bool = False) -> None:
        """Start, unless something is missing: it can be set still, and computed then."""
        if self._state is ExecutionState.BUILDING:
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
        self._state = ExecutionState.STARTED

    def _check_free(self, where: str) -> None:
        """Check that it could start."""
        if not self._turn:
            raise self._not_free(where)

    def _not_free(self, where: str) -> NnapiError:
        """Why it cannot start."""
        if self._is_closed:
            return bad_state("the execution is closed", where=where)
        if self._is_reusable and self._state is ExecutionState.STARTED:
            return bad_state("the execution is under way", where=where, fix="Wait for its end")
        return bad_state(
            "the execution has been started",
            where=where,
            fix="Make another one for each run, or one that is reusable (set_reusable)",
        )

    def _end(self, result: ResultCode) -> None:
        """Note what it came to."""
        self._result = result
        if is_on.execution:
            vlog("execution", "an NNAPI execution came to %s", result.name)
        if self._memories is not None:
            is_right = result is ResultCode.NO_ERROR
            self._memories.end(self._shapes.noted if is_right else None)
        self._state = ExecutionState.FINISHED
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

    def _check_left_out(self, where: str) -> None:
        """Check that only optional outputs are left out."""
        for position, array in enumerate(self._outputs.arrays):
            if array is None and position in self._compilation.signature.needed_outputs:
                raise NnapiError(
                    f"output {position} has no buffer, and the operation cannot go without it",
                    code=ResultCode.OP_FAILED,
                    where=where,
                )

    def _network(self, arrays: Sequence[Array | None]) -> LoadedNetwork:
        """The network that is for these inputs."""
        # An operation without an optional operand is another layer, so there is a network for
        # each set of inputs that are left out; the others move up.
        return self._compilation.network([i for i, array in enumerate(arrays) if array is None])

    def _write(self, results: Sequence[Array], where: str) -> None:
        """Write results where they belong."""
        buffers: Sequence[Array | None] = self._outputs.arrays
        if self._memories is not None:
            results, buffers = self._memories.taken(results, buffers, where)
        self._shapes.write(buffers, results, where)

    def _loop_timeout_s(self) -> float | Unset:
        """How long a loop may take; what the runtime's options say, unless it was set."""
        return UNSET if self._loop_timeout_ns is None else self._loop_timeout_ns / 1e9

    def _deadline_s(self) -> float | None:
        """When it has to have come to its end if it starts now, by `time.perf_counter`."""
        return deadline_in(self._timeout_ns / 1e9) if self._timeout_ns else None


def left_s(deadline_s: float | None, where: str) -> float | None:
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
        raise too_late(where)
    return left_s


def too_late(where: str) -> NnapiError:
    """The error for what could not begin in time."""
    return NnapiError(
        "the deadline passed before the execution could begin",
        code=ResultCode.MISSED_DEADLINE_PERSISTENT,
        where=where,
    )
