"""Finds the backends that installed distributions announce."""

from __future__ import annotations

import logging
from importlib.metadata import EntryPoint, entry_points

from armpy.plugins.candidate import Candidate, CandidateKind

ENTRY_POINT_GROUP = "armpy.backends"
"""Distributions announce backends here: ``CpuRef = "armpy_reference:ReferenceBackend"``."""

_log = logging.getLogger("armpy.plugins")


def find_entry_points() -> list[Candidate]:
    """A candidate for each entry point, sorted by id and distribution; none is imported."""
    return sorted((_candidate(e) for e in entry_points(group=ENTRY_POINT_GROUP)), key=_order)


def load_entry_point(candidate: Candidate) -> object:
    """Import what an entry point refers to."""
    return EntryPoint(candidate.backend_id, candidate.name, ENTRY_POINT_GROUP).load()


def _candidate(entry: EntryPoint) -> Candidate:
    """What an entry point's metadata tells."""
    name, version = _distribution(entry)
    return Candidate(
        entry.name,
        f"{name} {version}" if name else entry.value,
        CandidateKind.ENTRY_POINT,
        name=entry.value,
        distribution=name,
        distribution_version=version,
    )


def _order(candidate: Candidate) -> tuple[str, ...]:
    """Sort key of candidates."""
    return (
        candidate.backend_id,
        candidate.distribution,
        candidate.distribution_version,
        candidate.name,
    )


def _distribution(entry: EntryPoint) -> tuple[str, str]:
    """Name and version of what an entry point comes from; empty if its metadata is damaged."""
    try:
        name = entry.dist.name if entry.dist else None
        return (name, str(entry.dist.version)) if entry.dist and name else ("", "")
    except Exception as error:  # noqa: BLE001 - plugin boundary: one damaged distribution
        _log.debug("the metadata of '%s' cannot be read: %s", entry.name, error)
        return "", ""
