"""Decisions: the chosen placement, and the costs of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from armpy.plugins.hooks import Alternative, PlacementDecision
from armpy_tools.placement.candidates import PlacementCandidate

ESTIMATED, MEASURED, REMEMBERED = "estimated", "measured", "remembered"
"""What decisions are based on."""

_FIELDS = tuple(Alternative.__dataclass_fields__)


def decision_json(decision: PlacementDecision) -> dict[str, object]:
    """Return the kept part of a decision, as a JSON object."""
    alternatives = [
        {n: getattr(alternative, n) for n in _FIELDS} for alternative in decision.alternatives
    ]
    # JSON has texts alone as keys.
    backends = {str(key): name for key, name in decision.backends.items()}
    return {"backends": backends, "alternatives": alternatives}


def decision_from(kept: Mapping[str, Any]) -> PlacementDecision:  # Any: of JSON
    """The decision that `decision_json` made an object of.

    Raises
    ------
    ValueError
        If it is not such an object.
    """
    try:
        backends = {int(key): str(name) for key, name in kept["backends"].items()}
        alternatives = tuple(Alternative(**fields) for fields in kept["alternatives"])
    # The file can hold any JSON, and its checksum does not cover the structure.
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"this is not a decision: {error!r}") from error
    return PlacementDecision(backends, REMEMBERED, alternatives)


def estimated(candidates: Sequence[PlacementCandidate]) -> PlacementDecision:
    """The candidate that costs least by the figures of the devices, of equal ones the first."""
    ordered = sorted(candidates, key=lambda candidate: candidate.cost)
    lines = tuple(candidate.alternative(is_chosen=candidate is ordered[0]) for candidate in ordered)
    return PlacementDecision(ordered[0].backends, ESTIMATED, lines)
