"""Archived network: a compiled file's program, which runs without what compiles networks."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from operator import index
from threading import RLock
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from armpy.execution.arrays.slots import InputSlot, OutputSlot
from armpy.execution.programs.program import BoundProgram
from armpy.tensor import format_shape

if TYPE_CHECKING:  # what is imported here is paid for at every start of a prepared model
    from armpy.compiler import Placement
    from armpy.execution.arrays.tensor_spec import TensorSpec
    from armpy.execution.calls.callee import Callee
    from armpy.execution.calls.invocation import Invocation
    from armpy.execution.programs.archived_program import ArchivedProgram
    from armpy.execution.steps.control_flow import Shapes
    from armpy.ops.operation import Array
    from armpy.tensor import TensorInfo

    class WholeNetwork(Callee, Protocol):
        """The loaded network that does what a compiled file's programs cannot."""

        def invoke(self, asked: Invocation) -> dict[str, Array]:
            """Execute once; as of `LoadedNetwork`."""


MOST_SHAPES = 8
"""That stay prepared, as many as in an ordinary network unless its runtime says otherwise."""


class ArchivedGraph(NamedTuple):
    """Graph of an archived network, as far as calls ask for it.

    Parameters
    ----------
    inputs, outputs : tuple of TensorSpec
        Dimensions may be unknown.
    default_shapes : tuple of (tuple of int or None)
        Of the inputs: those that are prepared, or what the model's file says.
    """

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    default_shapes: tuple[tuple[int, ...] | None, ...]

    @property
    def output_names(self) -> tuple[str, ...]:
        """Those of the outputs."""
        return tuple([value.name for value in self.outputs])

    @property
    def described_outputs(self) -> tuple[TensorInfo, ...]:
        """Infos of the outputs; see `armpy.graph.Graph.described_outputs`."""
        return tuple([value.info for value in self.outputs])


class ArchivedShapes(NamedTuple):
    """Program of an archived network for some input shapes.

    Parameters
    ----------
    shapes : tuple of tuple of int
        Of the inputs.
    results : tuple of TensorInfo
        Of the outputs, for these shapes.
    program : ArchivedProgram
    """

    shapes: Shapes
    results: tuple[TensorInfo, ...]
    program: ArchivedProgram


class ArchivedNetwork:
    """Network of `armpy.Model` as long as it only runs with shapes whose programs are archived.

    Parameters
    ----------
    graph : ArchivedGraph
    first : ArchivedShapes, optional
        What is prepared at once.
    load_whole : callable
        Makes the loaded network that can do everything, once, in place of this one.
    memory_limit_bytes : int
        The most that a converted input may take.
    read_placement : callable
        Returns the placement report of a program.
    find : callable, optional
        Finds the programs for other shapes; gives None where there are none.

    Notes
    -----
    It has what `armpy.execution.calls.run` asks of a `LoadedNetwork`.
    """

    def __init__(
        self,
        graph: ArchivedGraph,
        first: ArchivedShapes | None,
        load_whole: Callable[[], WholeNetwork],
        memory_limit_bytes: int,
        read_placement: Callable[[ArchivedProgram], Placement],
        find: Callable[[Shapes], ArchivedShapes | None] | None = None,
    ) -> None:
        self.graph = graph
        self._load_whole = load_whole
        self._limit_bytes = memory_limit_bytes
        self._read_placement = read_placement
        self._find = find
        # In the order of use; `_lock` keeps two threads from reading the same programs.
        self._prepared: OrderedDict[Shapes, BoundProgram] = OrderedDict()
        self._lock = RLock()  # a signal handler may call the model on the same thread
        self.latest = None if first is None else self._keep(first)
        if self.latest is None:
            self.inputs = self._slots([None] * len(graph.inputs))
        else:
            self.inputs = self.latest.inputs

    def _slots(self, shapes: Sequence[tuple[int, ...] | None]) -> tuple[InputSlot, ...]:
        """What each input takes."""
        pairs = zip(self.graph.inputs, shapes, strict=True)
        return tuple([InputSlot(v.name, v.info, shape, self._limit_bytes) for v, shape in pairs])

    def _keep(self, found: ArchivedShapes) -> BoundProgram:
        """Make programs ready for calls."""
        named = zip(self.graph.outputs, found.results, strict=True)
        outputs = tuple([OutputSlot(value.name, info) for value, info in named])
        plan: Any = found.program  # Any: nobody asks it for more than `run`
        inputs = self._slots(found.shapes)
        made = BoundProgram(found.shapes, plan, plan.run, _bind, True, inputs, outputs)
        self._prepared[found.shapes] = made
        if len(self._prepared) > MOST_SHAPES:
            self._prepared.popitem(last=False)
        return made

    def invoke(self, asked: Invocation) -> dict[str, Array]:
        """Execute once; as of `LoadedNetwork`, which is loaded for what takes more than arrays."""
        return asked.run(self) if asked.is_plain else self._load_whole().invoke(asked)

    def prepared_for(
        self, inputs: Sequence[Array], targets: Sequence[Array | None] = ()
    ) -> BoundProgram:
        """The network prepared for the shapes of some inputs; as of `LoadedNetwork`."""
        shapes = tuple([array.shape for array in inputs])
        latest = self.latest
        if latest is not None and latest.shapes == shapes:
            return latest
        with self._lock:
            prepared = self._found(shapes)
        if prepared is None:
            return self._load_whole().prepared_for(inputs, targets)
        self.latest = prepared
        return prepared

    def warm_up(self, named: Mapping[str, Sequence[int]]) -> bool:
        """Run once with zeros of some shapes, if they are archived; parameters as of `choose`."""
        prepared = self.choose(named)
        if prepared is None:
            return False
        pairs = zip(self.graph.inputs, prepared.shapes, strict=True)
        prepared.run([value.info.data_type.zeros(shape) for value, shape in pairs])
        return True

    def choose(self, named: Mapping[str, Sequence[int]]) -> BoundProgram | None:
        """Prepare for some shapes, if that takes no more than to read what is archived.

        Parameters
        ----------
        named : mapping of str to sequence of int
            Those that differ from the default, by the inputs' names.

        Returns
        -------
        BoundProgram or None
            None if it takes more; the whole network says what is wrong with shapes that cannot be.
        """
        chosen = {
            value.name: value.info.shape if value.info.is_fully_shaped else default
            for value, default in zip(self.graph.inputs, self.graph.default_shapes, strict=True)
        }
        if not named.keys() <= chosen.keys():
            return None
        try:
            every = [tuple(map(index, shape)) for shape in {**chosen, **named}.values()]  # type: ignore[arg-type]  # None is no shape
        except TypeError:
            return None
        shapes = tuple(every)
        with self._lock:
            prepared = self._found(shapes)
        self.latest = prepared or self.latest
        return prepared

    def _found(self, shapes: Shapes) -> BoundProgram | None:
        """What is prepared for some shapes, or is archived; None for shapes of neither kind."""
        prepared = self._prepared.get(shapes)
        if prepared is not None:
            self._prepared.move_to_end(shapes)
            return prepared
        found = None if self._find is None else self._find(shapes)
        return None if found is None else self._keep(found)

    @property
    def placement(self) -> Placement | None:
        """The placement report of the latest program; None before the first one."""
        latest = self.latest
        return None if latest is None else self._read_placement(latest.plan)

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
