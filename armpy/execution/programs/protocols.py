"""Protocols of programs: how one executes, what it is made of, what a plan of it tells.

Notes
-----
They are for types alone, and apart from what they describe: a compiled file starts without them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from armpy.backend import Cancellation
from armpy.compiler import OptimizedNetwork, Placement
from armpy.execution.programs.held_memory import ExecutionMemory
from armpy.execution.steps.control_flow import Targets
from armpy.graph import Layer
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy.types import BackendId

MemoryT_co = TypeVar("MemoryT_co", covariant=True)


class ProgramParts(Protocol[MemoryT_co]):
    """Parts of a program: its steps, and what their memory is made of."""

    def new_memory(self) -> MemoryT_co:
        """Make what one execution at a time needs."""

    def free_workloads(self) -> None:
        """Let workloads give back what they keep between executions."""

    def uses(self, backend_id: BackendId) -> bool:
        """Whether a backend has memory of it."""


class Run(Protocol):
    """Callable that executes once."""

    def __call__(
        self,
        sources: Sequence[Array],
        results: Targets | None = None,
        cancellation: Cancellation | None = None,
        /,
    ) -> list[Array]:
        """Execute once; parameters and result as for `StepProgram.run`."""


class ProgramPlan(Protocol):
    """StepProgram of a network for some input shapes, or several that run one after the other.

    Attributes
    ----------
    result_infos : tuple of TensorInfo
        Of the graph's results; dimensions that depend on values are not known.
    """

    result_infos: tuple[TensorInfo, ...]

    @property
    def run(self) -> Run:
        """Executes once."""

    @property
    def network(self) -> OptimizedNetwork:
        """The optimised network, as far as shapes are known beforehand."""

    @property
    def placement(self) -> Placement:
        """Which layer runs where and why."""

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Everything that runs."""

    def new_memory(self) -> ExecutionMemory:
        """Make memory for one execution at a time."""

    def make_ready(self) -> None:
        """Make memory for the first execution now."""

    def free_idle(self) -> object:
        """Give idle memory back."""


class Bind(Protocol):
    """Callable that prepares many executions with the same arrays."""

    def __call__(
        self, sources: Sequence[Array], results: Targets, /
    ) -> Callable[[], Sequence[Array] | None]:
        """Prepare executions.

        Parameters
        ----------
        sources, results : sequence of ndarray
            As for `StepProgram.run`, inputs and outputs only.

        Returns
        -------
        callable
            Executes once, by one thread at a time; gives the results if some were made anew.
        """
