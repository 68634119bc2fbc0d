"""Discovery: candidates for backends and plugins, none of which is imported for it."""

from __future__ import annotations

import os

from armpy.core.dataclass import dataclass
from armpy.plugins.discovery.candidate import Candidate, CandidateKind
from armpy.plugins.discovery.directories import SkippedPath
from armpy.plugins.discovery.entry_point_cache import (
    BACKENDS_GROUP,
    HOOK_OF_GROUP,
    LIBRARIES_GROUP,
    InstalledEntryPoint,
    InstalledEntryPoints,
    installed,
)
from armpy.plugins.discovery.references import find_top_module, is_own_file

_OWN_DISTRIBUTION = "armpy"


@dataclass(frozen=True, slots=True)
class Discovery:
    """Everything that can be found with some options, in the order in which it counts."""

    backends: tuple[Candidate, ...] = ()
    plugins: tuple[Candidate, ...] = ()
    skipped: tuple[SkippedPath, ...] = ()
    """Directories that cannot be looked into, what in them is nearly a module, and libraries of
    distributions that cannot be read.
    """


def find_entry_points(
    found: InstalledEntryPoints | None = None,  # discovered if left out
) -> tuple[list[Candidate], list[Candidate]]:
    """Candidates for backends and for plugins, one for each entry point.

    Sorted by id and distribution; armpy's own come first, so that none can take their ids.
    """
    entries = (installed() if found is None else found).entry_points
    backends = [_candidate(entry) for entry in entries if entry.group == BACKENDS_GROUP]
    plugins = [_candidate(entry) for entry in entries if entry.group in HOOK_OF_GROUP]
    # The order of `sys.path` would make the winner of two equal ids depend on the installation.
    return sorted(backends, key=_order), sorted(plugins, key=_order)


def find_distribution_libraries(
    found: InstalledEntryPoints,
) -> tuple[list[Candidate], list[SkippedPath]]:
    """Candidates for backends in libraries of distributions, and libraries that cannot be read."""
    openers = {e.name: e.value for e in found.entry_points if e.group == LIBRARIES_GROUP}
    candidates = [
        Candidate(
            "",
            f"{library.distribution} {library.version}",
            CandidateKind.LIBRARY,
            name=os.path.basename(library.path),
            opener=openers[library.function],
            distribution=library.distribution,
            distribution_version=library.version,
            path=library.path,
        )
        for library in found.libraries
        if library.function in openers
    ]
    unreadable = [SkippedPath(row.path, row.reason) for row in found.libraries if row.reason]
    return candidates, unreadable


def is_own(candidate: Candidate) -> bool:
    """Return whether a candidate is armpy's own: as trusted as the core, neither pinned nor probed.

    Any distribution can be called as armpy is. So the module has to be where the running
    armpy has its own.
    """
    if candidate.distribution != _OWN_DISTRIBUTION:
        return False
    spec = find_top_module(candidate.name)
    return spec is not None and is_own_file(spec.origin)


def _candidate(entry: InstalledEntryPoint) -> Candidate:
    return Candidate(
        entry.name,
        f"{entry.distribution} {entry.version}" if entry.distribution else entry.value,
        CandidateKind.ENTRY_POINT,
        name=entry.value,
        distribution=entry.distribution,
        distribution_version=entry.version,
        is_plugin=entry.group in HOOK_OF_GROUP,
        hook=HOOK_OF_GROUP.get(entry.group, ""),
    )


def _order(candidate: Candidate) -> tuple[object, ...]:
    return (
        candidate.backend_id,
        not is_own(candidate),
        candidate.distribution,
        candidate.distribution_version,
        candidate.name,
    )
