from armpy.plugins.discovery import backend_registry as backend_registry
from armpy.plugins.candidate import (
    Candidate as Candidate,
    CandidateKind as CandidateKind,
    CandidateStatus as CandidateStatus,
)
from armpy.plugins.directories import SkippedPath as SkippedPath
from armpy.plugins.options import PluginOptions as PluginOptions
from armpy.plugins.probe import probe_candidates as probe_candidates
from armpy.plugins.probe_result import ProbeOutcome as ProbeOutcome, ProbeResult as ProbeResult
from armpy.plugins.registry import (
    BackendRegistry as BackendRegistry,
    preferred_backends as preferred_backends,
)

__all__: list[str]
