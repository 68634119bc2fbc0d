"""Finding and loading backends."""

from armpy.plugins.candidate import Candidate, CandidateKind, CandidateStatus
from armpy.plugins.directories import SkippedPath
from armpy.plugins.options import PluginOptions
from armpy.plugins.probe import probe_candidates
from armpy.plugins.probe_result import ProbeOutcome, ProbeResult
from armpy.plugins.registry import BackendRegistry, preferred_backends

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
