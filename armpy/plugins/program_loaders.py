"""Loaders of programs from compiled models, without the backends that have made them."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from armpy.backend.programs import IPrograms
from armpy.errors import BackendUnavailableError
from armpy.plugins.discovery.entry_point_cache import (
    PLUGINS_GROUP,
    PROGRAMS_GROUP,
    InstalledEntryPoint,
    installed,
)

_programs: dict[str, IPrograms | None] = {}
"""By backend id, as every part of a compiled model asks. Failures are retried, not kept."""


def announced_programs(
    backend_id: str,
    # The installed plugins; discovered if left out.
    announced: Sequence[InstalledEntryPoint] | None = None,
) -> IPrograms | None:
    """Return the programs that a distribution announces for a backend; None if there are none.

    Raises BackendUnavailableError if it cannot be imported, or is something else.
    """
    if backend_id not in _programs:
        announced = installed().entry_points if announced is None else announced
        wanted = PROGRAMS_GROUP, backend_id
        value = next((e.value for e in announced if (e.group, e.name) == wanted), "")
        _programs[backend_id] = _loaded(backend_id, value) if value else None
    return _programs[backend_id]


def _loaded(backend_id: str, reference: str) -> IPrograms:
    try:
        module, _, name = reference.partition(":")
        loader = getattr(import_module(module), name)()
    except Exception as error:  # plugin boundary: whatever its import raises
        raise BackendUnavailableError(
            f"the loader of its programs cannot be imported: {error!r}", where=backend_id
        ) from error
    if not isinstance(loader, IPrograms):
        failed = "the loader of its programs is not an IPrograms"
        raise BackendUnavailableError(failed, where=backend_id)
    return loader


def has_plugins(announced: Sequence[InstalledEntryPoint]) -> bool:
    """Return whether there are plugins, which may have a say in how models are loaded."""
    # By the index alone: most processes have none, and need not import pluggy.
    return any(entry.group == PLUGINS_GROUP for entry in announced)
