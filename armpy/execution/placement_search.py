"""Search for the placement of a network: by the devices' figures, remembered, or by trial."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

from armpy.compiler import Evaluator
from armpy.compiler.assign import Exclusions, SupportOracle
from armpy.compiler.cost.candidates import Candidates, choices_of
from armpy.compiler.cost.costs import CostTable, device_costs
from armpy.compiler.cost.decision import PlacementDecision, estimated
from armpy.compiler.cost.placement_key import question_of
from armpy.compiler.devices import FiguresStore
from armpy.execution.placement_benchmark import LoadTrial, TrialNetwork, Trials
from armpy.execution.properties import NetworkProperties
from armpy.execution.settings import NetworkSettings
from armpy.graph import Graph
from armpy.plugins.proxy.guard import BackendProxy
from armpy.profiling import Profiler, phase
from armpy.types import BackendId, Preference

_log = logging.getLogger("armpy.execution")


def search(
    graph: Graph,
    backends: Sequence[BackendProxy],
    evaluator: Evaluator | None,
    settings: NetworkSettings,
    load: LoadTrial,
    excluded: Exclusions,
    *,
    measures: bool,
) -> PlacementDecision | None:
    """Search by costs; parameters and result as for `armpy.execution.placement_policy.decide`."""
    preference = settings.optimizer.preference
    with phase("decide placement"):
        given = settings.optimizer
        oracle = SupportOracle(backends, given)
        choices = choices_of(graph, oracle, excluded)
        # A layer that nobody takes is an error, which the usual way tells.
        if not all(choices.values()):
            return None
        costs = device_costs(backends, preference)
        candidates = Candidates(graph, choices, backends, costs)
        if (
            preference is Preference.FASTEST
            and measures
            and not (excluded or settings.protected_mode)
        ):
            trials = _Question(graph, choices, backends, evaluator, settings, load)
            decision = trials.answer(candidates, costs)
            if decision is not None:
                return decision
        candidates.add_mixtures([costs])
        return estimated(candidates.all, preference)


class _Question:
    """Search for the fastest placement of a graph: remembered, or found by trial."""

    def __init__(
        self,
        graph: Graph,
        choices: Mapping[int, Sequence[BackendId]],
        backends: Sequence[BackendProxy],
        evaluator: Evaluator | None,
        settings: NetworkSettings,
        load: LoadTrial,
    ) -> None:
        self._load_trial = load
        self._graph = graph
        self._choices = choices
        self._backends = backends
        self._evaluator = evaluator
        self._settings = settings

    def answer(self, candidates: Candidates, costs: CostTable) -> PlacementDecision | None:
        """The answer that is kept, or a new one; None if nothing could be run."""
        if len(candidates.all) < 2:
            return None  # there is but one way to place the layers
        store = FiguresStore()
        options = self._settings.optimizer
        about = f"{options.preference} {options.passes!r} {self._settings.environment}"
        question = question_of(
            self._graph, self._choices, self._backends, options.model_options, about
        )
        if (kept := self._recalled(store.recall_answer(question))) is not None:
            return kept
        decision = Trials(self._graph, candidates, costs, self._load).decide()
        if decision is not None:
            store.keep_answer(question, decision.to_json())
        return decision

    def _recalled(self, kept: Mapping[str, object] | None) -> PlacementDecision | None:
        """A decision that was kept, if it is one of these layers and backends."""
        if kept is None:
            return None
        try:
            decision = PlacementDecision.from_json(kept, Preference.FASTEST)
        except ValueError as error:
            _log.warning("a placement that was kept is measured again: %s", error)
            return None
        is_possible = decision.backends.keys() == self._choices.keys() and all(
            name in self._choices[layer_id] for layer_id, name in decision.backends.items()
        )
        return decision if is_possible else None

    def _load(self, wanted: Mapping[int, BackendId], profiler: Profiler | None) -> TrialNetwork:
        """The graph, loaded for a trial."""
        # What layers fall back to is measured, and nobody is told of trials or counts them.
        settings = replace(
            self._settings,
            optimizer=replace(self._settings.optimizer, on_fallback="allow"),
            profiler=profiler,
            after_run=None,
            properties=NetworkProperties(),
        )
        about = self._graph, self._backends, self._evaluator, settings
        return self._load_trial(*about, wanted=wanted)
