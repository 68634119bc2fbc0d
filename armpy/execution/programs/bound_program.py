"""Loaded networks prepared for certain input shapes: what they take, and how they are executed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:  # a model that was prepared ahead of time starts without all this
    from armpy.compiler import OptimizedNetwork, Placement
    from armpy.execution.arrays.slots import InputSlot, OutputSlot
    from armpy.execution.programs.held_memory import ExecutionMemory
    from armpy.execution.programs.program import Run
    from armpy.execution.steps.control_flow import Shapes, Targets
    from armpy.graph import Layer
    from armpy.ops.operation import Array
    from armpy.tensor import TensorInfo

PlanKey: TypeAlias = tuple[object, ...]
"""What tells a plan of a loaded network from its others: the input shapes, most of all."""


class Plan(Protocol):
    """Program of a network for some input shapes, or several that run one after the other.

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
            As for `Program.run`, inputs and outputs only.

        Returns
        -------
        callable
            Executes once, by one thread at a time; gives the results if some were made anew.
        """


class BoundProgram:
    """A loaded network prepared for some input shapes.

    Parameters
    ----------
    shapes : tuple of tuple of int
    plan : Plan
    run : callable
        Executes the plan, with whatever is to be done around that; takes inputs and outputs only.
    bind : callable
        Prepares many such executions, which the current cancellation stops.
    stops_in_place : bool
        Whether executions stop soon when they are told so.
    inputs : tuple of InputSlot
    outputs : tuple of OutputSlot

    Attributes
    ----------
    importing : dict of tuple to BoundProgram
        The same network with some inputs and outputs imported, by what these are.
    """

    __slots__ = (
        "bind",
        "importing",
        "inputs",
        "outputs",
        "plan",
        "run",
        "shapes",
        "stops_in_place",
    )

    def __init__(
        self,
        shapes: Shapes,
        plan: Plan,
        run: Run,
        bind: Bind,
        stops_in_place: bool,
        inputs: tuple[InputSlot, ...],
        outputs: tuple[OutputSlot, ...],
    ) -> None:
        self.shapes = shapes
        self.plan = plan
        self.run = run
        self.bind = bind
        self.stops_in_place = stops_in_place
        self.inputs = inputs
        self.outputs = outputs
        self.importing: dict[tuple[object, ...], BoundProgram] = {}
