from __future__ import annotations

from collections.abc import Sequence

from armpy.backend import Capability, IBackendInternal
from armpy.compiler.assign import Exclusions, SupportOracle
from armpy.compiler.cost.candidates import Candidates, choices_of
from armpy.compiler.cost.decision import PlacementDecision, estimated
from armpy.graph import Layer, Value
from armpy.ops import Activation, ElementwiseBinary
from armpy.types import BackendId, Preference
from tests.support.fake_backends import FakeBackend
from tests.support.networks import chain, diamond
from tests.support.scripted_backend import ScriptedBackend, declaration


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


def test_choices_are_who_takes_each_layer_in_the_order_of_preference() -> None:
    backends = [FakeBackend("First", {Activation}), FakeBackend("Second")]
    both, second = ("First", "Second"), ("Second",)
    assert choices(backends) == {0: both, 1: second, 2: second, 3: second}


def test_a_backend_that_wants_all_layers_and_refuses_one_has_no_choice() -> None:
    declared = declaration(capabilities={Capability.ALL_OR_NOTHING: True})
    wants = ScriptedBackend("Wants", operations=[Activation], declared=declared)
    assert set(choices([wants, FakeBackend("Second")]).values()) == {("Second",)}


def test_each_backend_is_a_candidate_with_all_it_takes_and_the_others_with_the_rest() -> None:
    backends = [FakeBackend("A"), FakeBackend("B", {ElementwiseBinary}), FakeBackend("C", ())]
    graph = diamond()
    found = Candidates(graph, choices(backends), backends, Flat(A=5, B=4, C=1))
    assert [(one.name, [*one.backends.values()]) for one in found.all] == [
        ("A", ["A"] * 4),
        ("B", ["A", "B", "B", "B"]),  # and not C, which takes nothing
    ]
    assert [one.cost for one in found.all] == [22, 20]
    found.add_mixtures([Flat(A=5, B=4), Flat(A=5, B=40)])  # which are those two again
    assert len(found.all) == 2


def test_the_cheapest_candidate_is_chosen_and_all_others_are_told_of() -> None:
    backends = [FakeBackend("A"), FakeBackend("B")]
    graph = chain()
    taken = choices_of(graph, SupportOracle(backends), {})
    candidates = Candidates(graph, taken, backends, Flat(A=5, B=4))
    decision = estimated(candidates.all, Preference.LOW_POWER)
    assert decision.backends == {0: "B", 1: "B", 2: "B"}
    assert [(a.name, a.estimated_us, a.is_chosen) for a in decision.alternatives] == [
        ("B", 14, True),
        ("A", 17, False),
    ]


def test_of_equal_candidates_the_one_of_the_more_preferred_backend_is_chosen() -> None:
    backends = [FakeBackend("A"), FakeBackend("B")]
    graph = chain()
    taken = choices_of(graph, SupportOracle(backends), {})
    candidates = Candidates(graph, taken, backends, Flat(A=5, B=5))
    assert set(estimated(candidates.all, Preference.SUSTAINED).backends.values()) == {"A"}


def test_a_decision_that_is_kept_is_the_same_when_it_is_read() -> None:
    backends = [FakeBackend("A"), FakeBackend("B")]
    graph = chain()
    taken = choices_of(graph, SupportOracle(backends), {})
    made = estimated(Candidates(graph, taken, backends, Flat(A=5, B=4)).all, Preference.FASTEST)
    read = PlacementDecision.from_json(made.to_json(), Preference.FASTEST)
    assert (read.backends, read.alternatives) == (made.backends, made.alternatives)
    assert read.basis == "remembered"
