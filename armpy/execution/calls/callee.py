"""Networks as their calls see them: what a call asks of one, whichever kind it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from armpy.execution.arrays.imported_tensor import ImportedTensor
from armpy.execution.arrays.slots import InputSlot
from armpy.execution.programs.imports import ImportedTensors, ImportingNetwork
from armpy.execution.programs.program import BoundProgram
from armpy.execution.scheduling.executors import Executors
from armpy.execution.steps.control_flow import Shapes
from armpy.execution.wrappers.debugging import DebugWrapper
from armpy.graph import Graph
from armpy.ops.operation import Array


class NamedValue(Protocol):
    """Input of a network, as far as its name goes."""

    @property
    def name(self) -> str:
        """The name."""


class NamedGraph(Protocol):
    """Graph of a network, as far as names go."""

    @property
    def inputs(self) -> Sequence[NamedValue]:
        """The inputs, in order."""

    @property
    def output_names(self) -> Sequence[str]:
        """Names of the outputs, in order."""


class Callee(Protocol):
    """Network, or its working memory, or a network that is debugged, as a call sees it."""

    @property
    def graph(self) -> NamedGraph:
        """The names of its inputs and outputs."""

    @property
    def inputs(self) -> tuple[InputSlot, ...]:
        """Slots of the inputs, for whatever shapes."""

    @property
    def latest(self) -> BoundProgram | None:
        """The network prepared for the shapes of the last call; None before the first one."""

    @property
    def imported(self) -> Iterable[ImportedTensor]:
        """Its imported tensors."""

    def prepared_for(
        self, inputs: Sequence[Array], targets: Sequence[Array | None] = ()
    ) -> BoundProgram:
        """The network prepared for the shapes of some inputs; as of `LoadedNetwork`."""

    def describe_shapes(self) -> str:
        """Names and shapes of the inputs, for messages."""


class LoadedCallee(Callee, ImportingNetwork, Protocol):
    """Loaded network, as the code that starts, binds or debugs its executions sees it."""

    number: int
    executors: Executors

    @property
    def graph(self) -> Graph:
        """The graph."""

    @property
    def imported(self) -> ImportedTensors:
        """Its imported tensors."""

    @property
    def is_closed(self) -> bool:
        """Return whether it has been unloaded."""

    def find_prepared(self, inputs: Sequence[Array]) -> BoundProgram | None:
        """The network prepared for the shapes of some inputs, if it is already."""

    def prepared_to_debug(self, shapes: Shapes, debug: DebugWrapper) -> BoundProgram:
        """The network prepared for some input shapes, with a wrapper that reports every value."""
