"""Search for the cheapest placement of a network by the devices' figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from armpy.plugins.hooks import Alternative, PlacementDecision, PlacementQuestion
from armpy.types import HOST, BackendId
from armpy_tools.placement.cost_table import CostTable, device_costs
from armpy_tools.placement.partition import cost_of, partition

ESTIMATED = "estimated"
"""Basis of the decisions."""

MIXED = "mixed"
"""Name of an alternative that is not one backend's before all others."""


def search(question: PlacementQuestion, costs: CostTable | None = None) -> PlacementDecision:
    """Find the cheapest assignment of a graph's layers.

    Parameters
    ----------
    question : PlacementQuestion
    costs : CostTable, optional
        Costs by the devices' figures if left out.

    Notes
    -----
    Each backend with all the layers that it supports is an alternative, and the cheapest placement
    of all is one more unless it is one of these. Of equal costs, the first backend's wins.
    """
    costs = costs or device_costs(question.backends, question.preference)
    graph, choices = question.graph, question.choices
    found: dict[tuple[BackendId, ...], tuple[Alternative, Mapping[int, BackendId]]] = {}

    def add(name: str, backends: Mapping[int, BackendId]) -> None:
        """Add a placement; backends that get nothing give it no name."""
        key = tuple(backends.values())
        is_named = name == MIXED or name in key or set(key) <= {HOST}
        if key not in found and is_named:
            cost = cost_of(graph, backends, costs)
            found[key] = Alternative(name, dict(Counter(key)), cost), backends

    for backend in question.backends:
        name = backend.get_id()
        add(name, {key: name if name in ids else ids[0] for key, ids in choices.items()})
    # In the order of the layers, so that equal placements are one alternative.
    cheapest = partition(graph, choices, costs).backends
    add(MIXED, {key: cheapest[key] for key in choices})
    (best, backends), *others = sorted(found.values(), key=lambda item: item[0].estimated_us)
    alternatives = (replace(best, is_chosen=True), *(alternative for alternative, _ in others))
    return PlacementDecision(backends, ESTIMATED, alternatives)
