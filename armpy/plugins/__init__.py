"""Finding and loading backends."""

from armpy.plugins.registry import (
    BackendRegistry,
    Candidate,
    CandidateStatus,
    preferred_backends,
)

__all__ = [
    "BackendRegistry",
    "Candidate",
    "CandidateStatus",
    "preferred_backends",
]
