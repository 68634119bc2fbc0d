"""Candidate placements: each backend with all that it takes, and the cheapest mixtures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from armpy.backend import IBackendInternal
from armpy.core.dataclass import dataclass
from armpy.graph import Graph
from armpy.plugins.hooks import Alternative
from armpy.types import HOST, BackendId
from armpy_tools.placement.cost_table import CostTable
from armpy_tools.placement.partition import Choices, cost_of, partition

MIXED = "mixed"
"""Name of candidates that are not one backend's before all others."""


@dataclass(frozen=True, slots=True)
class PlacementCandidate:
    """A placement that is worth looking at."""

    name: str
    backends: Mapping[int, BackendId]  # by layer id
    cost: float  # by the devices' figures

    def alternative(
        self, *, measured_us: float | None = None, is_chosen: bool = False, failure: str = ""
    ) -> Alternative:
        """Its line of the placement report."""
        shares = dict(Counter(self.backends.values()))
        return Alternative(self.name, shares, self.cost, measured_us, is_chosen, failure)


class Candidates:
    """The placements of one graph that are worth measuring, by the known costs.

    Parameters
    ----------
    graph : Graph
        Fully shaped.
    choices : mapping of int to sequence of str
        By layer id; at least one each.
    backends : sequence of IBackendInternal
        Most preferred first.
    costs : CostTable
        By which candidates are compared.

    Notes
    -----
    No two candidates place all layers alike.
    """

    def __init__(
        self,
        graph: Graph,
        choices: Choices,
        backends: Sequence[IBackendInternal],
        costs: CostTable,
    ) -> None:
        self._graph = graph
        self._costs = costs
        self._choices = choices
        self._found: dict[tuple[BackendId, ...], PlacementCandidate] = {}
        # In the caller's order: of equal costs the first candidate wins.
        for backend in backends:
            self._add_first(backend.get_id())

    @property
    def all(self) -> tuple[PlacementCandidate, ...]:
        """Every candidate so far, in the order in which they were found."""
        return tuple(self._found.values())

    def cheapest(self) -> PlacementCandidate:
        """The one that costs least, of equal ones the first."""
        return min(self._found.values(), key=lambda candidate: candidate.cost)

    def add_mixtures(self, tables: Iterable[CostTable]) -> None:
        """Add the cheapest placement by each of some tables, unless it is there already."""
        for table in tables:
            self._add(MIXED, partition(self._graph, self._choices, table).backends)

    def _add_first(self, backend_id: BackendId) -> None:
        """Add the placement that gives a backend all that it takes."""
        self._add(
            backend_id,
            {
                layer_id: backend_id if backend_id in ids else ids[0]
                for layer_id, ids in self._choices.items()
            },
        )

    def _add(self, name: str, backends: Mapping[int, BackendId]) -> None:
        """Add a placement; backends that get nothing give it no name."""
        # In the order of the layers, so that equal placements are one candidate.
        key = tuple(backends.values())
        is_named = name == MIXED or name in key or set(key) <= {HOST}
        if key not in self._found and is_named:
            cost = cost_of(self._graph, backends, self._costs)
            self._found[key] = PlacementCandidate(name, dict(backends), cost)
