"""Partitioning: gives each layer of a graph to one of the backends that take it, cheaply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from armpy.core.dataclass import dataclass
from armpy.graph import Graph, Layer, Value
from armpy.types import HOST, BackendId
from armpy_tools.placement.cost_table import CostTable

Choices: TypeAlias = Mapping[int, Sequence[BackendId]]
"""By layer id, the backends that take the layer, most preferred first; at least one."""

WIDTH = 600
"""Ways to place the layers so far that are looked at side by side."""


@dataclass(frozen=True, slots=True)
class Partition:
    """A placement and its cost.

    Parameters
    ----------
    backends : dict of int to str
        By layer id.
    cost : float
        The sum of layers and crossings in the table's unit.
    is_cheapest : bool
        Whether it is known that no placement costs less.
    """

    backends: dict[int, BackendId]
    cost: float
    is_cheapest: bool


def cost_of(graph: Graph, backends: Mapping[int, BackendId], costs: CostTable) -> float:
    """Cost of a placement: its layers, and each tensor once for every backend it is handed to.

    Parameters
    ----------
    backends : mapping of int to str
        By layer id.
    """
    homes = dict.fromkeys(graph.sources, HOST)
    total = 0.0
    reached: set[tuple[Value, BackendId]] = set()
    for layer in graph.layers:
        backend_id = backends[layer.id]
        total += costs.layer(layer, backend_id)
        reached.update((v, backend_id) for v in layer.inputs if v is not None and v.data is None)
        homes.update(dict.fromkeys(layer.outputs, backend_id))
    reached.update((value, HOST) for value in graph.results if value in homes)
    crossed = (pair for pair in reached if homes[pair[0]] != pair[1])
    # In the graph's order: a sum of floats depends on it.
    ordered = sorted(crossed, key=lambda pair: (pair[0].id, pair[1]))
    return total + sum(costs.crossing(value, homes[value], reader) for value, reader in ordered)


def partition(graph: Graph, choices: Choices, costs: CostTable, width: int = WIDTH) -> Partition:
    """Place the layers of a graph where they cost least together.

    Parameters
    ----------
    graph : Graph
        Fully shaped.
    choices : mapping of int to sequence of str
    costs : CostTable
    width : int
        Most ways that are looked at side by side.

    Notes
    -----
    Dynamic programming over the layers in their order. The cost of the rest of a graph depends on
    the layers before it through the tensors that are still to be read alone: where each lies, and
    who has it already. Of all ways that agree in these the cheapest is kept. A way is given up
    if another is cheaper by more than all its tensors could cost to hand on. That is exact; only
    where more than `width` ways are left the most expensive of them go, which never happens in a
    chain, or a graph with few tensors alive at a time. Of placements that cost the same the one
    with the more preferred backends in the earlier layers is taken.
    """
    return _Partitioner(graph, choices, costs, width).run()


_Holders: TypeAlias = tuple[tuple[BackendId, frozenset[BackendId]], ...]
"""Of each tensor alive: where it lies, and who else has been handed it."""

_NOBODY: frozenset[BackendId] = frozenset()
_CALLER: frozenset[BackendId] = frozenset((HOST,))


@dataclass(eq=False, slots=True)
class _Way:
    """One way to place the layers so far; the last of them, and the way before it."""

    cost: float
    backend: BackendId
    # Linked and not copied: hundreds of ways have the same beginning.
    before: _Way | None


@dataclass(eq=False, slots=True)
class _Step:
    """A layer, the places of its inputs and of the tensors still alive, and its outputs."""

    layer: Layer
    reads: list[tuple[int, Value]]
    kept: list[int]
    made: list[Value]


class _Partitioner:
    """Walks the layers with all ways that are worth it."""

    def __init__(self, graph: Graph, choices: Choices, costs: CostTable, width: int) -> None:
        self._graph = graph
        self._choices = choices
        self._costs = costs
        self._width = width
        self._results = frozenset(graph.results)
        self._last_reads = {v: n for n, layer in enumerate(graph.layers) for v in layer.inputs if v}
        self._is_cheapest = True
        self._crossings: dict[tuple[Value, BackendId, BackendId], float] = {}
        self._worst = self._worst_crossings()

    def run(self) -> Partition:
        """The cheapest way, read from its end."""
        alive = [value for value in self._graph.sources if value in self._last_reads]
        ways: dict[_Holders, _Way] = {tuple((HOST, _NOBODY) for _ in alive): _Way(0.0, HOST, None)}
        for number, layer in enumerate(self._graph.layers):
            step = self._step(layer, number, alive)
            alive = [*(alive[place] for place in step.kept), *step.made]
            ways = self._thinned(self._extended(ways, step), alive)
        (way,) = ways.values()  # nothing is to be read any more, so that all ways agree
        chosen = []
        while way.before is not None:
            chosen.append(way.backend)
            way = way.before
        ids = [layer.id for layer in self._graph.layers]
        backends = dict(zip(ids, reversed(chosen), strict=True))
        # Added up anew in the order of all others, as placements are compared by exact sums.
        total = cost_of(self._graph, backends, self._costs)
        return Partition(backends, total, self._is_cheapest)

    def _step(self, layer: Layer, number: int, alive: Sequence[Value]) -> _Step:
        """Apply one layer to the tensors alive."""
        places = {value: place for place, value in enumerate(alive)}
        read = dict.fromkeys(v for v in layer.inputs if v is not None and v.data is None)
        return _Step(
            layer,
            [(places[value], value) for value in read],
            [place for value, place in places.items() if self._last_reads[value] > number],
            [value for value in layer.outputs if value in self._last_reads],
        )

    def _extended(self, ways: Mapping[_Holders, _Way], step: _Step) -> dict[_Holders, _Way]:
        """Every way with every choice for one more layer; of equal ones the cheapest."""
        ways_found: dict[_Holders, _Way] = {}
        results = [value for value in step.layer.outputs if value in self._results]
        for backend_id in self._choices[step.layer.id]:
            own = self._costs.layer(step.layer, backend_id)
            own += sum(self._crossing(value, backend_id, HOST) for value in results)
            ends = [(backend_id, _CALLER if v in self._results else _NOBODY) for v in step.made]
            for holders, way in ways.items():
                cost, reached = way.cost + own, list(holders)
                for place, value in step.reads:
                    home, others = holders[place]
                    if backend_id != home and backend_id not in others:
                        cost += self._crossing(value, home, backend_id)
                        reached[place] = home, others | {backend_id}
                # Ways that have the same tensors in the same places cost the same from here on, so
                # that the cheapest of them stands for all.
                key = (*(reached[place] for place in step.kept), *ends)
                known = ways_found.get(key)
                # Less, not equal: choices come in order of preference, and the first of equals
                # stays.
                if known is None or cost < known.cost:
                    ways_found[key] = _Way(cost, backend_id, way)
        return ways_found

    def _thinned(self, ways: dict[_Holders, _Way], alive: Sequence[Value]) -> dict[_Holders, _Way]:
        """Ways without those that cannot become the cheapest, and at most as many as allowed."""
        # The cheapest way can go on as any other does, for at most the price of handing on all
        # tensors alive: a way above that sum cannot win.
        limit = min(way.cost for way in ways.values()) + sum(self._worst[v] for v in alive)
        left = {holders: way for holders, way in ways.items() if way.cost <= limit}
        if len(left) <= self._width:
            return left
        # One of the dropped ways might have won.
        self._is_cheapest = False
        best = sorted(left.items(), key=lambda item: item[1].cost)
        return dict(best[: self._width])

    def _crossing(self, value: Value, source: BackendId, target: BackendId) -> float:
        """Return the table's answer, asked once."""
        if source == target:
            return 0.0
        key = value, source, target
        cost = self._crossings.get(key)
        if cost is None:
            cost = self._crossings[key] = self._costs.crossing(value, source, target)
        return cost

    def _worst_crossings(self) -> dict[Value, float]:
        """The most that each tensor can cost to be handed on, wherever it lies."""
        homes: dict[Value, Sequence[BackendId]] = dict.fromkeys(self._graph.sources, (HOST,))
        readers: dict[Value, dict[BackendId, None]] = {}
        for layer in self._graph.layers:
            choices = self._choices[layer.id]
            homes.update(dict.fromkeys(layer.outputs, choices))
            for value in layer.inputs:
                if value is not None and value.data is None:
                    readers.setdefault(value, {}).update(dict.fromkeys(choices))
        return {
            value: max(sum(self._crossing(value, home, r) for r in places) for home in homes[value])
            for value, places in readers.items()
        }
