"""Lists what says of itself that it is a backend."""

from __future__ import annotations

from dataclasses import dataclass

from armpy.errors import BackendUnavailableError
from armpy.plugins import BackendRegistry, Candidate, CandidateStatus


@dataclass(frozen=True, slots=True)
class BackendReport:
    """One candidate.

    Parameters
    ----------
    id, source, status : str
    device_type, api_version : str or None
        None for one that was not loaded.
    reason : str
        Why it cannot be used.
    """

    id: str
    source: str
    status: str
    device_type: str | None
    api_version: str | None
    reason: str


def list_backends(registry: BackendRegistry, *, load: bool = False) -> list[BackendReport]:
    """Describe every candidate of a registry.

    Parameters
    ----------
    registry : BackendRegistry
    load : bool
        Import each backend to see whether it can be used. Without it none is imported.
    """
    if load:
        for backend_id in registry.backend_ids:
            _try(registry, backend_id)
    return [_report(registry, candidate) for candidate in registry.candidates]


def _try(registry: BackendRegistry, backend_id: str) -> None:
    """Load one backend; its candidate keeps the reason of a failure."""
    try:
        registry.get(backend_id)
    except BackendUnavailableError:
        return


def _report(registry: BackendRegistry, candidate: Candidate) -> BackendReport:
    """Describe one candidate."""
    device_type = api_version = None
    if candidate.status is CandidateStatus.REGISTERED:
        backend = registry.get(candidate.backend_id)
        device_type, api_version = backend.device_type.name, backend.api_version
    return BackendReport(
        candidate.backend_id,
        candidate.source,
        candidate.status.value,
        device_type,
        api_version,
        candidate.reason,
    )
