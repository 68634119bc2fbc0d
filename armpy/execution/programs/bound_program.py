"""Loaded networks prepared for certain input shapes: what they take, and how they are executed."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:  # a model that was prepared ahead of time starts without all this
    from armpy.execution.arrays.slots import InputSlot, OutputSlot
    from armpy.execution.programs.protocols import Bind, ProgramPlan, Run
    from armpy.execution.steps.control_flow import Shapes

PlanKey: TypeAlias = tuple[object, ...]
"""What tells a plan of a loaded network from its others: the input shapes, most of all."""


class BoundProgram:
    """A loaded network prepared for some input shapes.

    Parameters
    ----------
    shapes : tuple of tuple of int
    plan : ProgramPlan
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
        plan: ProgramPlan,
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
