"""Finding and loading backends."""

from typing import TYPE_CHECKING

from armpy.lazy import offer

if TYPE_CHECKING:
    from armpy.plugins.candidate import Candidate, CandidateKind, CandidateStatus
    from armpy.plugins.directories import SkippedPath
    from armpy.plugins.options import PluginOptions
    from armpy.plugins.probe import probe_candidates
    from armpy.plugins.probe_result import ProbeOutcome, ProbeResult
    from armpy.plugins.registry import BackendRegistry, preferred_backends
else:
    __getattr__, __dir__ = offer(
        __name__,
        {
            "BackendRegistry": "armpy.plugins.registry",
            "Candidate": "armpy.plugins.candidate",
            "CandidateKind": "armpy.plugins.candidate",
            "CandidateStatus": "armpy.plugins.candidate",
            "PluginOptions": "armpy.plugins.options",
            "ProbeOutcome": "armpy.plugins.probe_result",
            "ProbeResult": "armpy.plugins.probe_result",
            "SkippedPath": "armpy.plugins.directories",
            "preferred_backends": "armpy.plugins.registry",
            "probe_candidates": "armpy.plugins.probe",
        },
    )

__all__ = [
    "BackendRegistry",
    "Candidate",
    "CandidateKind",
    "CandidateStatus",
    "PluginOptions",
    "ProbeOutcome",
    "ProbeResult",
    "SkippedPath",
    "preferred_backends",
    "probe_candidates",
]
