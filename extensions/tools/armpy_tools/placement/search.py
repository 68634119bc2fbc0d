"""Search for the placement of a network: by the devices' figures, remembered, or by trial."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from armpy.plugins.hooks import PlacementDecision, PlacementQuestion
from armpy.types import Preference
from armpy_tools.devices.store import FiguresStore
from armpy_tools.placement.candidates import Candidates
from armpy_tools.placement.cost_table import CostTable, device_costs
from armpy_tools.placement.decisions import decision_from, decision_json, estimated
from armpy_tools.placement.placement_key import question_text
from armpy_tools.placement.trials import Load, Trials

_log = logging.getLogger("armpy_tools.placement")


def search(question: PlacementQuestion) -> PlacementDecision:
    """Search the cheapest assignment of a graph's layers.

    Notes
    -----
    Measurements are kept, for this machine, under all that they depend on: the graph, the
    backends that take each layer, versions and options of the backends, the number of processors.
    Asked again, it is not measured again.
    """
    costs = device_costs(question.backends, question.preference)
    candidates = Candidates(question.graph, question.choices, question.backends, costs)
    # With one candidate there is one way to place the layers.
    if question.preference is Preference.FASTEST and question.load and len(candidates.all) > 1:
        decision = _fastest(question, candidates, costs, question.load)
        if decision is not None:
            return decision
    candidates.add_mixtures([costs])
    return estimated(candidates.all)


def _fastest(
    question: PlacementQuestion, candidates: Candidates, costs: CostTable, load: Load
) -> PlacementDecision | None:
    """The answer that is kept, or a new one; None if nothing could be run."""
    store, key = FiguresStore(), question_text(question)
    if (answer := _recalled(store.recall_answer(key), question)) is not None:
        return answer
    decision = Trials(question.graph, candidates, costs, load).decide()
    if decision is not None:
        store.keep_answer(key, decision_json(decision))
    return decision


def _recalled(
    answer: Mapping[str, object] | None, question: PlacementQuestion
) -> PlacementDecision | None:
    """A decision that was kept, if it is one of these layers and backends."""
    if answer is None:
        return None
    try:
        decision = decision_from(answer)
    except ValueError as error:
        _log.warning("a placement that was kept is measured again: %s", error)
        return None
    is_possible = decision.backends.keys() == question.choices.keys() and all(
        name in question.choices[layer_id] for layer_id, name in decision.backends.items()
    )
    return decision if is_possible else None
