"""Finds the backends that installed distributions announce."""

from __future__ import annotations

import importlib.util
import logging
import os
from importlib.machinery import ModuleSpec
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from armpy.plugins.candidate import Candidate, CandidateKind

ENTRY_POINT_GROUP = "armpy.backends"
"""Distributions announce backends here: ``CpuRef = "armpy_reference:ReferenceBackend"``."""

_OWN_DISTRIBUTION = "armpy"
_OWN_PACKAGES = ("armpy", "armpy_numba_acc", "armpy_reference")
_OWN_PLACES = ("", "backends/numba_acc", "backends/reference")
"""Where these are, seen from the folder that has armpy: installed, and in a checkout."""

_log = logging.getLogger("armpy.plugins")


def find_entry_points() -> list[Candidate]:
    """A candidate for each entry point; none is imported.

    Notes
    -----
    Sorted by id and distribution; armpy's own come first, so that none can take their ids.
    """
    return sorted((_candidate(e) for e in entry_points(group=ENTRY_POINT_GROUP)), key=_order)


def load_entry_point(candidate: Candidate) -> object:
    """Import what an entry point refers to."""
    return EntryPoint(candidate.backend_id, candidate.name, ENTRY_POINT_GROUP).load()


def is_own(candidate: Candidate) -> bool:
    """Whether a candidate is armpy's own: as trusted as the core, neither pinned nor probed.

    Notes
    -----
    Any distribution can be called as armpy is. So the module has to be where the running
    armpy has its own.
    """
    if candidate.distribution != _OWN_DISTRIBUTION:
        return False
    spec = find_top_module(candidate.name)
    root = Path(__file__).resolve().parents[2]
    own = {
        str(root / place / name / "__init__.py") for place in _OWN_PLACES for name in _OWN_PACKAGES
    }
    return spec is not None and os.path.realpath(spec.origin or "") in own


def top_module(reference: str) -> str:
    """The name of the outermost module or package of an object reference."""
    return reference.partition(":")[0].strip().partition(".")[0]


def find_top_module(reference: str) -> ModuleSpec | None:
    """Where that module would be imported from; None if it cannot be found."""
    name = top_module(reference)
    try:
        return importlib.util.find_spec(name)
    except Exception as error:  # noqa: BLE001 - finders are anybody's code
        _log.debug("module '%s' cannot be found: %s", name, error)
        return None


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


def _order(candidate: Candidate) -> tuple[object, ...]:
    """Sort key of candidates."""
    return (
        candidate.backend_id,
        not is_own(candidate),
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
