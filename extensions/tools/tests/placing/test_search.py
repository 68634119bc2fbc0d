"""Decisions: the cheapest placement, and those that it was weighed against."""

from __future__ import annotations

from armpy.backend import IBackendInternal
from armpy.compiler.assign import SupportOracle
from armpy.execution.programs.placement_policy import choices_of
from armpy.graph import Graph, Layer, Value
from armpy.ops import ElementwiseBinary
from armpy.plugins.hooks import PlacementDecision, PlacementQuestion
from armpy.types import BackendId, Preference
from armpy_testing.backends.fake_backends import FakeBackend
from armpy_testing.models.networks import chain, diamond
from armpy_tools.placement.search import search


class Flat:
    """Every layer costs the same on a backend, every crossing 1."""

    def __init__(self, **costs: float) -> None:
        self._costs = costs

    def layer(self, layer: Layer, backend_id: BackendId) -> float:
        return self._costs[backend_id]

    def crossing(self, value: Value, source: BackendId, target: BackendId) -> float:
        return 1.0


def decided(graph: Graph, *backends: IBackendInternal, **costs: float) -> PlacementDecision:
    choices = choices_of(graph, SupportOracle(backends), {})
    return search(PlacementQuestion(graph, backends, choices, Preference.FASTEST), Flat(**costs))


def test_each_backend_is_weighed_with_all_it_takes_and_the_others_with_the_rest() -> None:
    backends = [FakeBackend("A"), FakeBackend("B", {ElementwiseBinary}), FakeBackend("C", ())]
    decision = decided(diamond(), *backends, A=5, B=4, C=1)
    assert [*decision.backends.values()] == ["A", "B", "B", "B"]
    lines = [(a.name, a.layers_by_backend, a.estimated_us) for a in decision.alternatives]
    assert lines == [("B", {"A": 1, "B": 3}, 20), ("A", {"A": 4}, 22)]  # C takes nothing
    assert [a.is_chosen for a in decision.alternatives] == [True, False]


def test_a_mixture_is_found_where_it_is_cheaper() -> None:
    class Halves(Flat):
        def layer(self, layer: Layer, backend_id: BackendId) -> float:
            return 10.0 if (layer.id < 2) is (backend_id == "B") else 1.0

    graph, backends = chain(4), (FakeBackend("A"), FakeBackend("B"))
    choices = choices_of(graph, SupportOracle(backends), {})
    decision = search(PlacementQuestion(graph, backends, choices, Preference.FASTEST), Halves())
    assert [*decision.backends.values()] == ["A", "A", "B", "B"]
    assert decision.alternatives[0].name == "mixed"


def test_of_equal_placements_the_one_of_the_more_preferred_backend_is_chosen() -> None:
    decision = decided(chain(), FakeBackend("A"), FakeBackend("B"), A=5, B=5)
    assert set(decision.backends.values()) == {"A"}
