"""Decisions: which placement is taken, and what the others would have cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from armpy.compiler.cost.candidates import PlacementCandidate
from armpy.compiler.optimized import OptimizedNetwork
from armpy.compiler.placement import Alternative
from armpy.types import BackendId, Preference

ESTIMATED, MEASURED, REMEMBERED = "estimated", "measured", "remembered"
"""What decisions are based on."""


@dataclass(frozen=True, slots=True)
class PlacementDecision:
    """A placement that was chosen.

    Parameters
    ----------
    backends : mapping of int to str
        By layer id.
    preference : Preference
    basis : str
    alternatives : tuple of Alternative
        The cheapest first, the chosen one among them.
    """

    backends: Mapping[int, BackendId]
    preference: Preference
    basis: str
    alternatives: tuple[Alternative, ...]

    def reported_by(self, network: OptimizedNetwork) -> OptimizedNetwork:
        """A network that was placed so, with a report that says it."""
        placement = replace(
            network.placement,
            preference=self.preference.value,
            basis=self.basis,
            alternatives=self.alternatives,
        )
        return replace(network, placement=placement)

    def to_json(self) -> dict[str, object]:
        """What is kept of a decision, as a JSON object."""
        return {
            # JSON has texts alone as keys.
            "backends": {str(key): name for key, name in self.backends.items()},
            "alternatives": [
                {name: getattr(one, name) for name in _FIELDS} for one in self.alternatives
            ],
        }

    @classmethod
    def from_json(cls, kept: Mapping[str, Any], preference: Preference) -> PlacementDecision:
        """A decision that was kept.

        Raises
        ------
        ValueError
            If it is none.
        """
        try:
            backends = {int(key): str(name) for key, name in kept["backends"].items()}
            alternatives = tuple(Alternative(**fields) for fields in kept["alternatives"])
        # The file can hold any JSON, and its checksum does not tell its form.
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"this is no decision: {error!r}") from error
        return cls(backends, preference, REMEMBERED, alternatives)


_FIELDS = tuple(Alternative.__dataclass_fields__)


def estimated(
    candidates: Sequence[PlacementCandidate], preference: Preference
) -> PlacementDecision:
    """The candidate that costs least by the figures of the devices, of equal ones the first."""
    chosen = min(candidates, key=lambda candidate: candidate.cost)
    ordered = sorted(candidates, key=lambda candidate: candidate.cost)
    lines = tuple(one.alternative(is_chosen=one is chosen) for one in ordered)
    return PlacementDecision(chosen.backends, preference, ESTIMATED, lines)
