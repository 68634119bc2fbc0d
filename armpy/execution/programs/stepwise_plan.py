"""Stepwise plan where shapes depend on values: as far as they are known, then on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from armpy.backend import Cancellation
from armpy.compiler import OptimizedNetwork, Placement
from armpy.compiler.assign import is_dynamic
from armpy.errors import UnimplementedError
from armpy.execution.arrays.conversion import check_output_array
from armpy.execution.programs.dynamic_plan import DynamicPlan
from armpy.execution.programs.held_memory import ExecutionMemory
from armpy.execution.programs.protocols import ProgramPlan
from armpy.execution.programs.static_plan import StaticPlan
from armpy.execution.steps.control_flow import Targets
from armpy.graph import Graph, Layer, Value
from armpy.ops.composite import Composite
from armpy.ops.operation import Array
from armpy.types import BackendId

LARGEST_KEY_ELEMENTS = 4096
"""An operand that decides on shapes is part of the plan's key; larger ones are refused."""


@dataclass(frozen=True, eq=False)
class GraphPart:
    """A part of a graph as a graph of its own.

    Parameters
    ----------
    graph : Graph
    sources, results : tuple of Value
        What each source and each output of `graph` is in the whole graph.
    """

    graph: Graph
    sources: tuple[Value, ...]
    results: tuple[Value, ...]


@dataclass(frozen=True, eq=False)
class Split:
    """A graph cut where shapes stop being known.

    Parameters
    ----------
    head : GraphPart
        The layers whose inputs and outputs are fully shaped. Its results are those of the
        whole graph that it makes, and the values that the other parts read.
    dynamic : GraphPart, optional
        Layers that read what the head gives and whose outputs' shapes only their workloads
        can tell.
    rest : GraphPart, optional
        The other layers. They read what head and dynamic layers give.
    decisive : tuple of bool
        Per source of `rest`, whether its elements decide on shapes.
    results : tuple of Value
        Those of the whole graph.
    """

    head: GraphPart
    dynamic: GraphPart | None
    rest: GraphPart | None
    decisive: tuple[bool, ...]
    results: tuple[Value, ...]


def is_shaped(graph: Graph) -> bool:
    """Whether all shapes and attributes in a graph are known."""
    return graph.is_fully_shaped and all(map(_is_shaped, graph.layers))


def split_at_unknown(graph: Graph) -> Split:
    """Cut a graph after the layers that are fully shaped.

    Raises
    ------
    UnimplementedError
        If nothing can be learnt by running the first part.
    """
    known = set(graph.sources)
    # A shaped layer behind an unshaped one has to wait for it.
    head = _ready([layer for layer in graph.layers if _is_shaped(layer)], known)
    known.update(value for layer in head for value in layer.outputs)
    behind = [layer for layer in graph.layers if layer not in set(head)]
    dynamic = [layer for layer in behind if is_dynamic(layer) and _reads_only(layer, known)]
    made = {value for layer in dynamic for value in layer.outputs}
    rest = [layer for layer in behind if layer not in set(dynamic)]
    crossing = _read(rest, known | made)
    decisive = tuple(_is_decisive(value, rest) for value in crossing)
    if not dynamic and not any(decisive):
        raise UnimplementedError(
            "the shapes of these outputs do not follow from the inputs",
            where=rest[0].where,
            fix="Give the inputs concrete shapes or a constant operand",
        )
    told = dict.fromkeys(v for v in graph.results if v in known or v.data is not None)
    told.update(dict.fromkeys(v for v in (*_read(dynamic, known), *crossing) if v in known))
    shown = dict.fromkeys(v for v in (*graph.results, *crossing) if v in made)
    left = [v for v in dict.fromkeys(graph.results) if v not in told and v not in made]
    return Split(
        _part(graph.sources, head, list(told)),
        _part(_read(dynamic, known), dynamic, list(shown)) if dynamic else None,
        _part(crossing, rest, left) if rest else None,
        decisive,
        graph.results,
    )


def _ready(layers: Sequence[Layer], sources: set[Value]) -> list[Layer]:
    """Those of some layers that read nothing but sources and each other."""
    known, ready = set(sources), []
    for layer in layers:
        if _reads_only(layer, known):
            ready.append(layer)
            known.update(layer.outputs)
    return ready


def _reads_only(layer: Layer, known: set[Value]) -> bool:
    """Whether a layer's inputs are all known or constant."""
    return all(v is None or v.data is not None or v in known for v in layer.inputs)


def _read(layers: Sequence[Layer], known: set[Value]) -> list[Value]:
    """Those of some values that layers read, each once."""
    read = (value for layer in layers for value in layer.inputs if value is not None)
    return [value for value in dict.fromkeys(read) if value in known]


def _part(sources: Sequence[Value], layers: Sequence[Layer], results: Sequence[Value]) -> GraphPart:
    """Some layers of a graph."""
    return GraphPart(_graph_of(sources, layers, results), tuple(sources), tuple(results))


def _graph_of(inputs: Sequence[Value], layers: Sequence[Layer], outputs: Sequence[Value]) -> Graph:
    """A part of a graph as a graph of its own, its inputs named apart by their ids."""
    fresh = {value: replace(value, name=f"{value.name}#{value.id}") for value in inputs}
    return Graph(
        tuple(fresh.values()),
        tuple(fresh.get(value, value) for value in outputs),
        tuple(str(value.id) for value in outputs),
        tuple(
            replace(layer, inputs=tuple(v and fresh.get(v, v) for v in layer.inputs))
            for layer in layers
        ),
    )


def _is_shaped(layer: Layer) -> bool:
    """Whether all of a layer's tensors are fully shaped and all its attributes known."""
    infos = [info for info in (*layer.input_infos, *layer.output_infos) if info is not None]
    waits = isinstance(layer.operation, Composite) or any(
        value is not None and layer.operation.decides(index)
        for index, value in enumerate(layer.inputs)
    )
    return not waits and all(info.is_fully_shaped for info in infos)


def _is_decisive(value: Value, layers: Sequence[Layer]) -> bool:
    """Whether some layer waits for a value to become an attribute."""
    return any(
        other is value and layer.operation.decides(index)
        for layer in layers
        for index, other in enumerate(layer.inputs)
    )


RestPlanner: TypeAlias = Callable[
    [tuple[object, ...], Graph, Sequence[tuple[int, ...]], Sequence[Array | None]],
    ProgramPlan,
]


class StepwisePlan:
    """Runs the head, then plans and runs the rest with what the head has shown.

    Parameters
    ----------
    split : Split
    head : StaticPlan
    dynamic : DynamicPlan, optional
        If the split has such layers.
    rest_planner : callable
        Gives the plan of the rest for a key, the sources' shapes, and the decisive values;
        keeps plans in a bounded cache.
    """

    def __init__(
        self,
        split: Split,
        head: StaticPlan,
        dynamic: DynamicPlan | None,
        rest_planner: RestPlanner,
    ) -> None:
        self._split = split
        self._head = head
        self._dynamic = dynamic
        self._rest_planner = rest_planner
        # Keys of the rest's plans begin with this, so that no other plan's are taken for them.
        self._identity = object()
        # The latest one, for reports alone: each execution looks up the one that it needs.
        self._rest: ProgramPlan | None = None
        self.result_infos = tuple(value.info for value in split.results)
        """Info of each result; dimensions that depend on values are not known."""

    @property
    def head(self) -> StaticPlan:
        """The layers whose shapes are known before anything has run."""
        return self._head

    @property
    def network(self) -> OptimizedNetwork:
        """The head's optimised network."""
        return self._head.network

    @property
    def placement(self) -> Placement:
        """The head's report, with that of the rest once it has run."""
        report = self._head.placement
        if self._dynamic is not None:
            report = report.followed_by(self._dynamic.placement)
        rest = self._rest
        return report if rest is None else report.followed_by(rest.placement)

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Everything that runs, as far as it has run."""
        parts = (self._head, self._dynamic, self._rest)
        return tuple(layer for part in parts if part is not None for layer in part.layers)

    def run(
        self,
        sources: Sequence[Array],
        results: Targets | None = None,
        cancellation: Cancellation | None = None,
    ) -> list[Array]:
        """Execute once; parameters and result as for `StaticPlan.run`."""
        made = self._head.run(sources, None, cancellation)
        return self.run_behind(made, results, cancellation)

    def new_memory(self) -> StepwiseMemory:
        """Make the head's working memory; errors as for `StaticPlan.new_memory`."""
        return StepwiseMemory(self, self._head.new_memory())

    def make_ready(self) -> None:
        """Make the head's memory for the first execution now; errors as for `new_memory`."""
        self._head.make_ready()

    def free_idle(self) -> None:
        """Give idle working memory back, as far as it is known where."""
        for part in (self._head, self._dynamic, self._rest):
            if part is not None:
                part.free_idle()

    def run_behind(
        self,
        made: Sequence[Array],
        results: Targets | None,
        cancellation: Cancellation | None = None,
    ) -> list[Array]:
        """Execute all but the head, which has made its results already."""
        split = self._split
        by_value: dict[Value, Array] = {}
        by_value.update(zip(split.head.results, made, strict=True))
        if split.dynamic is not None and self._dynamic is not None:
            given = [by_value[value] for value in split.dynamic.sources]
            made = self._dynamic.run(given, cancellation)
            by_value.update(zip(split.dynamic.results, made, strict=True))
        if split.rest is not None:
            given = [by_value[value] for value in split.rest.sources]
            made = self._run_rest(split.rest, given, cancellation)
            by_value.update(zip(split.rest.results, made, strict=True))
        return self._hand_over(by_value, results)

    def _run_rest(
        self, rest: GraphPart, arrays: Sequence[Array], cancellation: Cancellation | None
    ) -> list[Array]:
        """ProgramPlan the rest for what its sources have turned out to be, and run it."""
        pairs = zip(arrays, self._split.decisive, strict=True)
        values = [array if is_decisive else None for array, is_decisive in pairs]
        shapes = [array.shape for array in arrays]
        key = (self._identity, tuple(shapes), *map(self._key_part, values))
        plan = self._rest_planner(key, rest.graph, shapes, values)
        results = plan.run(arrays, None, cancellation)
        self._rest = plan
        return results

    def _key_part(self, array: Array | None) -> object:
        """What of a value belongs to the key of the rest's plan, apart from its shape."""
        if array is None:
            return None
        if array.size > LARGEST_KEY_ELEMENTS:
            raise UnimplementedError(
                "an operand that decides on shapes is too large",
                expected=f"at most {LARGEST_KEY_ELEMENTS} elements",
                actual=str(array.size),
            )
        if array.dtype.hasobject:  # whose bytes are addresses
            return tuple(array.reshape(-1).tolist())
        # All elements, and no digest: a plan for other values would give wrong answers.
        return array.tobytes()

    def _hand_over(
        self, by_value: dict[Value, Array], results: Sequence[Array | None] | None
    ) -> list[Array]:
        """Results in order, written to the caller's arrays where given."""
        found: list[Array] = []
        taken: set[int] = set()
        for index, value in enumerate(self._split.results):
            array = value.data if value.data is not None else by_value[value]
            given = results[index] if results is not None else None
            if given is not None:
                check_output_array(value.name, value.info.with_shape(array.shape), given)
                given[...] = array
                array = given
            # Callers may write to what they get: no array is handed out twice, and no constant.
            elif id(array) in taken or value.data is not None:
                array = array.copy()
            taken.add(id(array))
            found.append(array)
        return found


class StepwiseMemory:
    """Working memory of a stepwise plan's head; what lies behind it has its own when it runs.

    Parameters
    ----------
    plan : StepwisePlan
    head : ExecutionMemory
    """

    def __init__(self, plan: StepwisePlan, head: ExecutionMemory) -> None:
        self._plan = plan
        self._head = head

    @property
    def bytes_by_backend(self) -> Mapping[BackendId, int]:
        """What the head takes on each backend."""
        return self._head.bytes_by_backend

    def run(
        self,
        sources: Sequence[Array],
        results: Targets | None,
        cancellation: Cancellation | None = None,
    ) -> list[Array]:
        """Execute once; parameters and result as for `StaticPlan.run`."""
        made = self._head.run(sources, None, cancellation)
        return self._plan.run_behind(made, results, cancellation)

    def free(self) -> None:
        """Give everything back."""
        self._head.free()
