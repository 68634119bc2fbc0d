"""Runs a network whose shapes depend on values: as far as they are known, then on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from armpy.errors import UnimplementedError
from armpy.graph import Graph, Layer, Value
from armpy.ops.operation import Array
from armpy.optimizer import OptimizedNetwork, Placement
from armpy.runtime.static_plan import StaticPlan
from armpy.runtime.tensors import check_output_array
from armpy.tensor import TensorInfo

LARGEST_KEY_ELEMENTS = 4096
"""An operand that decides on shapes is part of the plan's key; larger ones are refused."""


@dataclass(frozen=True, eq=False)
class Split:
    """A graph cut where shapes stop being known.

    Parameters
    ----------
    head : Graph
        The layers whose inputs and outputs are fully shaped. Its results are those of the
        whole graph that it makes, and the values that `rest` reads.
    rest : Graph
        The other layers. Its sources are results or sources of the head.
    head_results, rest_results : tuple of Value
        What each output of `head` and of `rest` is in the whole graph.
    rest_sources : tuple of Value
        What each input of `rest` is in the whole graph.
    decisive : tuple of bool
        Per input of `rest`, whether its elements decide on shapes.
    results : tuple of Value
        Those of the whole graph.
    """

    head: Graph
    rest: Graph
    head_results: tuple[Value, ...]
    rest_results: tuple[Value, ...]
    rest_sources: tuple[Value, ...]
    decisive: tuple[bool, ...]
    results: tuple[Value, ...]


def split_at_unknown(graph: Graph) -> Split:
    """Cut a graph after the layers that are fully shaped.

    Raises
    ------
    UnimplementedError
        If nothing can be learnt by running the first part.
    """
    head_layers = [layer for layer in graph.layers if _is_shaped(layer)]
    # A shaped layer behind an unshaped one has to wait for it.
    known = set(graph.sources)
    head: list[Layer] = []
    for layer in head_layers:
        if all(v is None or v.data is not None or v in known for v in layer.inputs):
            head.append(layer)
            known.update(layer.outputs)
    chosen = set(head)
    rest = [layer for layer in graph.layers if layer not in chosen]
    crossing = list(
        dict.fromkeys(
            value
            for layer in rest
            for value in layer.inputs
            if value is not None and value in known
        )
    )
    decisive = tuple(_is_decisive(value, rest) for value in crossing)
    if not any(decisive):
        raise UnimplementedError(
            "the shapes of these outputs do not follow from the inputs",
            where=rest[0].where,
            fix="Give the inputs concrete shapes or a constant operand",
        )
    made = {value for layer in rest for value in layer.outputs}
    head_results = dict.fromkeys([v for v in graph.results if v not in made] + crossing)
    rest_results = dict.fromkeys(v for v in graph.results if v in made)
    head_graph = _graph_of(graph.sources, head, list(head_results))
    rest_graph = _graph_of(crossing, rest, list(rest_results))
    return Split(
        head_graph,
        rest_graph,
        tuple(head_results),
        tuple(rest_results),
        tuple(crossing),
        decisive,
        graph.results,
    )


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
    waits = any(
        value is not None and layer.operation.input_operand(index).becomes
        for index, value in enumerate(layer.inputs)
    )
    return not waits and all(info.is_fully_shaped for info in infos)


def _is_decisive(value: Value, layers: Sequence[Layer]) -> bool:
    """Whether some layer waits for a value to become an attribute."""
    return any(
        other is value and bool(layer.operation.input_operand(index).becomes)
        for layer in layers
        for index, other in enumerate(layer.inputs)
    )


RestPlanner: TypeAlias = Callable[
    [tuple[object, ...], Graph, Sequence[Array | None]], "StaticPlan | StepwisePlan"
]


class StepwisePlan:
    """Runs the head, then plans and runs the rest with what the head has shown.

    Parameters
    ----------
    split : Split
    head : StaticPlan
    rest_planner : callable
        Gives the plan of the rest for a key and the decisive values; keeps plans in a
        bounded cache.
    """

    def __init__(self, split: Split, head: StaticPlan, rest_planner: RestPlanner) -> None:
        self._split = split
        self._head = head
        self._rest_planner = rest_planner
        # Keys of the rest's plans begin with this, so that no other plan's are taken for them.
        self._identity = object()
        self._rest_placement: Placement | None = None

    @property
    def network(self) -> OptimizedNetwork:
        """The head's optimised network."""
        return self._head.network

    @property
    def placement(self) -> Placement:
        """The head's report, with that of the rest once it has run."""
        head, rest = self._head.placement, self._rest_placement
        return head if rest is None else head.followed_by(rest)

    @property
    def result_infos(self) -> tuple[TensorInfo, ...]:
        """Info of each result; dimensions that depend on values are not known."""
        return tuple(value.info for value in self._split.results)

    def run(
        self, sources: Sequence[Array], results: Sequence[Array | None] | None = None
    ) -> list[Array]:
        """Execute once; parameters and result as for `StaticPlan.run`."""
        split = self._split
        head_results = self._head.run(sources)
        by_value: dict[Value, Array] = dict(zip(split.head_results, head_results, strict=True))
        arrays = [by_value[value] for value in split.rest_sources]
        values = [a if d else None for a, d in zip(arrays, split.decisive, strict=True)]
        key = (self._identity, *(self._key_part(v) for v in values))
        rest = self._rest_planner(key, split.rest, values)
        by_value.update(zip(split.rest_results, rest.run(arrays), strict=True))
        self._rest_placement = rest.placement
        return self._hand_over(by_value, results)

    def _key_part(self, array: Array | None) -> object:
        """What of a value belongs to the key of the rest's plan."""
        if array is None:
            return None
        if array.size > LARGEST_KEY_ELEMENTS:
            raise UnimplementedError(
                "an operand that decides on shapes is too large",
                expected=f"at most {LARGEST_KEY_ELEMENTS} elements",
                actual=str(array.size),
            )
        return (array.shape, array.tobytes())

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
            elif id(array) in taken or value.data is not None:
                array = array.copy()
            taken.add(id(array))
            found.append(array)
        return found
