from armpy.plugins.find import backend_registry as backend_registry
from armpy.plugins.discovery.candidate import (
    Candidate as Candidate,
    CandidateKind as CandidateKind,
    CandidateStatus as CandidateStatus,
)
from armpy.plugins.discovery.directories import SkippedPath as SkippedPath
from armpy.plugins.options import PluginOptions as PluginOptions
from armpy.plugins.probing.probe import probe_candidates as probe_candidates
from armpy.plugins.probing.result import ProbeOutcome as ProbeOutcome, ProbeResult as ProbeResult
from armpy.plugins.registry import (
    BackendRegistry as BackendRegistry,
    preferred_backends as preferred_backends,
)

__all__: list[str]
