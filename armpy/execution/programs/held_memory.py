"""Held memory: a plan's working memory that is kept for one execution at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from armpy.backend import Cancellation
from armpy.errors import InvalidArgumentError
from armpy.execution.steps.control_flow import Targets
from armpy.ops.operation import Array
from armpy.types import BackendId


class ExecutionMemory(Protocol):
    """Memory that one execution at a time runs in."""

    @property
    def bytes_by_backend(self) -> Mapping[BackendId, int]:
        """Bytes that it takes on each backend."""

    def run(
        self,
        sources: Sequence[Array],
        results: Targets | None,
        cancellation: Cancellation | None = None,
    ) -> list[Array]:
        """Execute once; parameters and result as for `PooledPlan.run`."""

    def free(self) -> None:
        """Give everything back."""


class MemoryOwner(Protocol):
    """Plan that makes memory for executions."""

    def new_memory(self) -> ExecutionMemory:
        """Make what one execution at a time needs."""


class HeldMemory:
    """A plan's working memory that one execution at a time has; errors as for `new_memory`.

    Parameters
    ----------
    plan : MemoryOwner
    """

    def __init__(self, plan: MemoryOwner) -> None:
        self._plan = plan
        self._why_closed = ""
        # At once: if there is none, who asks is told here, and not in an execution.
        memory = plan.new_memory()
        self.bytes_by_backend: Mapping[BackendId, int] = memory.bytes_by_backend
        self._memory: ExecutionMemory | None = memory  # None: still to be made
        # Whoever deletes it executes, as in `armpy.execution.calls.execution`.
        self._turn = [None]

    def run(
        self,
        sources: Sequence[Array],
        results: Targets | None = None,
        cancellation: Cancellation | None = None,
    ) -> list[Array]:
        """Execute once; parameters and result as for `StaticPlan.run`."""
        try:
            del self._turn[0]
        except IndexError:
            raise self._not_free() from None
        try:
            memory = self._memory
            if memory is None:
                memory = self._memory = self._plan.new_memory()
            return memory.run(sources, results, cancellation)
        except BaseException:
            self._forget()  # one whose execution failed is not used again
            raise
        finally:
            # In this order: who closes it meanwhile finds it taken, and leaves it to this thread.
            self._turn.append(None)
            self._free_if_closed()

    def close(self, why: str) -> None:
        """Give it back, or have it given back by the execution that is under way."""
        self._why_closed = self._why_closed or why
        self._free_if_closed()

    @property
    def is_closed(self) -> bool:
        """Whether it is not to be used any more."""
        return bool(self._why_closed)

    def _forget(self) -> None:
        """Give the memory back, if there is one."""
        memory, self._memory = self._memory, None
        if memory is not None:
            memory.free()

    def _free_if_closed(self) -> None:
        """Give it back if nobody is to have it and nobody has it."""
        while self._why_closed and self._turn:
            try:
                del self._turn[0]
            except IndexError:  # another thread has taken it since
                return
            self._forget()

    def _not_free(self) -> InvalidArgumentError:
        """Why it cannot be used now."""
        if self._why_closed:
            return InvalidArgumentError(self._why_closed, fix="Make another one")
        return InvalidArgumentError(
            "the working memory is in use by another thread", fix="Make one for each thread"
        )
