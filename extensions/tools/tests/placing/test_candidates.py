from __future__ import annotations

from collections.abc import Sequence

from armpy.backend import IBackendInternal
from armpy.compiler.assign import Exclusions, SupportOracle
from armpy.execution.programs.placement_policy import choices_of
from armpy.graph import Layer, Value
from armpy.ops import ElementwiseBinary
from armpy.types import BackendId
from armpy_testing.backends.fake_backends import FakeBackend
from armpy_testing.models.networks import chain, diamond
from armpy_tools.placement.candidates import Candidates
from armpy_tools.placement.decisions import decision_from, decision_json, estimated


class Flat:
    """Every layer costs the same on a backend, every crossing 1."""

    def __init__(self, **costs: float) -> None:
        self._costs = costs

    def layer(self, layer: Layer, backend_id: BackendId) -> float:
        return self._costs[backend_id]

    def crossing(self, value: Value, source: BackendId, target: BackendId) -> float:
        return 1.0


def choices(
    backends: Sequence[IBackendInternal], excluded: Exclusions | None = None
) -> dict[int, tuple[BackendId, ...]]:
    return choices_of(diamond(), SupportOracle(backends), excluded or {})


def test_each_backend_is_a_candidate_with_all_it_takes_and_the_others_with_the_rest() -> None:
    backends = [FakeBackend("A"), FakeBackend("B", {ElementwiseBinary}), FakeBackend("C", ())]
    graph = diamond()
    candidates = Candidates(graph, choices(backends), backends, Flat(A=5, B=4, C=1))
    assert [(candidate.name, [*candidate.backends.values()]) for candidate in candidates.all] == [
        ("A", ["A"] * 4),
        ("B", ["A", "B", "B", "B"]),  # and not C, which takes nothing
    ]
    assert [candidate.cost for candidate in candidates.all] == [22, 20]
    candidates.add_mixtures([Flat(A=5, B=4), Flat(A=5, B=40)])  # which are those two again
    assert len(candidates.all) == 2


def test_the_cheapest_candidate_is_chosen_and_all_others_are_reported() -> None:
    backends = [FakeBackend("A"), FakeBackend("B")]
    graph = chain()
    takers = choices_of(graph, SupportOracle(backends), {})
    candidates = Candidates(graph, takers, backends, Flat(A=5, B=4))
    decision = estimated(candidates.all)
    assert decision.backends == {0: "B", 1: "B", 2: "B"}
    assert [(a.name, a.estimated_us, a.is_chosen) for a in decision.alternatives] == [
        ("B", 14, True),
        ("A", 17, False),
    ]


def test_of_equal_candidates_the_one_of_the_more_preferred_backend_is_chosen() -> None:
    backends = [FakeBackend("A"), FakeBackend("B")]
    graph = chain()
    takers = choices_of(graph, SupportOracle(backends), {})
    candidates = Candidates(graph, takers, backends, Flat(A=5, B=5))
    assert set(estimated(candidates.all).backends.values()) == {"A"}


def test_a_decision_that_is_kept_is_the_same_when_it_is_read() -> None:
    backends = [FakeBackend("A"), FakeBackend("B")]
    graph = chain()
    takers = choices_of(graph, SupportOracle(backends), {})
    decision = estimated(Candidates(graph, takers, backends, Flat(A=5, B=4)).all)
    read = decision_from(decision_json(decision))
    assert (read.backends, read.alternatives) == (decision.backends, decision.alternatives)
    assert read.basis == "remembered"
