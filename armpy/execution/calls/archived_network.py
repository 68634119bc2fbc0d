"""Archived network: a compiled file's program, which runs without what compiles networks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from armpy.execution.arrays.slots import InputSlot, OutputSlot
from armpy.execution.programs.bound_program import BoundProgram
from armpy.tensor import format_shape

if TYPE_CHECKING:  # what is imported here is paid for at every start of a prepared model
    from armpy.execution.arrays.tensor_spec import TensorSpec
    from armpy.execution.calls.callee import Callee
    from armpy.execution.calls.invocation import Invocation
    from armpy.execution.programs.archived_program import ArchivedMemory
    from armpy.execution.programs.program import StepProgram
    from armpy.ops.operation import Array
    from armpy.tensor import TensorInfo

    class WholeNetwork(Callee, Protocol):
        """The loaded network that does what a compiled file's programs cannot."""

        def invoke(self, asked: Invocation) -> dict[str, Array]:
            """Execute once; as of `LoadedNetwork`."""


class ArchivedGraph(NamedTuple):
    """Graph of an archived network, as far as calls ask for it.

    Parameters
    ----------
    inputs, outputs : tuple of TensorSpec
        Dimensions may be unknown.
    shapes : tuple of tuple of int
        Of the inputs, what is prepared.
    results : tuple of TensorInfo
        Of the outputs, for these shapes.
    """

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    shapes: tuple[tuple[int, ...], ...]
    results: tuple[TensorInfo, ...]

    @property
    def default_shapes(self) -> tuple[tuple[int, ...], ...]:
        """Of the inputs: those that are prepared."""
        return self.shapes

    @property
    def output_names(self) -> tuple[str, ...]:
        """Those of the outputs."""
        return tuple([value.name for value in self.outputs])


class ArchivedNetwork:
    """Network of `armpy.Model` as long as it only runs with the prepared shapes.

    Parameters
    ----------
    graph : ArchivedGraph
    program : StepProgram
    load_whole : callable
        Makes the loaded network that can do everything, once, in place of this one.
    memory_limit_bytes : int
        The most that a converted input may take.

    Notes
    -----
    It has what `armpy.execution.calls.run` asks of a `LoadedNetwork`.
    """

    def __init__(
        self,
        graph: ArchivedGraph,
        program: StepProgram[ArchivedMemory],
        load_whole: Callable[[], WholeNetwork],
        memory_limit_bytes: int,
    ) -> None:
        self.graph = graph
        self._load_whole = load_whole
        pairs = zip(graph.inputs, graph.shapes, strict=True)
        limit = memory_limit_bytes
        self.inputs = tuple([InputSlot(v.name, v.info, shape, limit) for v, shape in pairs])
        named = zip(graph.outputs, graph.results, strict=True)
        outputs = tuple([OutputSlot(value.name, info) for value, info in named])
        prepared_plan: Any = program  # Any: nobody asks it for more than `run`
        self.latest = BoundProgram(
            graph.shapes, prepared_plan, program.run, _bind, True, self.inputs, outputs
        )

    def invoke(self, asked: Invocation) -> dict[str, Array]:
        """Execute once; as of `LoadedNetwork`, which is loaded for what takes more than arrays."""
        return asked.run(self) if asked.is_plain else self._load_whole().invoke(asked)

    def prepared_for(
        self, inputs: Sequence[Array], targets: Sequence[Array | None] = ()
    ) -> BoundProgram:
        """The network prepared for the shapes of some inputs; as of `LoadedNetwork`."""
        latest = self.latest
        if latest.shapes == tuple([array.shape for array in inputs]):
            return latest
        return self._load_whole().prepared_for(inputs, targets)

    @property
    def imported(self) -> tuple[()]:
        """Imported tensors: the whole network makes them."""
        return ()

    def describe_shapes(self) -> str:
        """Names and shapes of the inputs, for messages."""
        return ", ".join(f"{v.name}{format_shape(v.info.shape)}" for v in self.graph.inputs)


def _bind(*_: object) -> Callable[[], None]:
    """Nothing is bound here: `armpy.Model.bind` loads the whole network first."""
    raise NotImplementedError
