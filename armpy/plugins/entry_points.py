"""Discovery of backends and plugins that installed distributions announce."""

from __future__ import annotations

import importlib.util
import logging
import os
from functools import cache
from importlib.machinery import ModuleSpec
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from armpy.plugins.candidate import Candidate, CandidateKind

ENTRY_POINT_GROUP = "armpy.backends"
"""Distributions announce backends here: ``CpuRef = "armpy_reference:ReferenceBackend"``."""

PLUGIN_GROUP = "armpy.plugins"
"""And modules or objects that implement hooks here: ``toy = "acme_toy"``."""

_OWN_DISTRIBUTION = "armpy"
_OWN_PACKAGES = ("armpy", "armpy_numba_acc", "armpy_reference")
_OWN_PLACES = ("", "backends/numba_acc", "backends/reference")
"""Where these are, seen from the folder that has armpy: installed, and in a checkout."""

_log = logging.getLogger("armpy.plugins")

_Distributions = dict[int, tuple[str, str]]
"""Names and versions of distributions whose metadata was read, by identity."""


def find_entry_points() -> tuple[list[Candidate], list[Candidate]]:
    """Candidates for backends and for plugins, one for each entry point; none is imported.

    Notes
    -----
    All distributions are looked through once. Sorted by id and distribution; armpy's own come
    first, so that none can take their ids.
    """
    found = entry_points()
    known: _Distributions = {}
    backends = found.select(group=ENTRY_POINT_GROUP)
    plugins = found.select(group=PLUGIN_GROUP)
    return (
        sorted((_candidate(entry, known, is_plugin=False) for entry in backends), key=_order),
        sorted((_candidate(entry, known, is_plugin=True) for entry in plugins), key=_order),
    )


def load_entry_point(candidate: Candidate) -> object:
    """Import what an entry point refers to."""
    group = PLUGIN_GROUP if candidate.is_plugin else ENTRY_POINT_GROUP
    return EntryPoint(candidate.backend_id, candidate.name, group).load()


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
    return spec is not None and os.path.realpath(spec.origin or "") in _own_files()


@cache
def _own_files() -> frozenset[str]:
    """Where the running armpy may have its packages."""
    root = Path(__file__).resolve().parents[2]
    return frozenset(
        str(root / place / name / "__init__.py") for place in _OWN_PLACES for name in _OWN_PACKAGES
    )


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


def _candidate(entry: EntryPoint, known: _Distributions, *, is_plugin: bool) -> Candidate:
    """What an entry point's metadata tells."""
    name, version = known.get(id(entry.dist)) or _distribution(entry)
    known[id(entry.dist)] = name, version  # to read it takes as long as to find it
    return Candidate(
        entry.name,
        f"{name} {version}" if name else entry.value,
        CandidateKind.ENTRY_POINT,
        name=entry.value,
        distribution=name,
        distribution_version=version,
        is_plugin=is_plugin,
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
        metadata = entry.dist.metadata if entry.dist else None
        name = metadata["Name"] if metadata else None
        return (name, str(metadata["Version"])) if metadata and name else ("", "")
    except Exception as error:  # noqa: BLE001 - plugin boundary: one damaged distribution
        _log.debug("the metadata of '%s' cannot be read: %s", entry.name, error)
        return "", ""
