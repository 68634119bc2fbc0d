from armpy.plugins import failures as failures
from armpy.plugins import libraries as libraries
from armpy.plugins import modules as modules
from armpy.plugins import probe as probe
from armpy.plugins.discovery.candidate import (
    Candidate as Candidate,
    CandidateKind as CandidateKind,
    CandidateStatus as CandidateStatus,
)
from armpy.plugins.discovery.directories import SkippedPath as SkippedPath
from armpy.plugins.extensions import (
    install_line as install_line,
    missing_extension as missing_extension,
    suggest_backend as suggest_backend,
    suggest_name as suggest_name,
)
from armpy.plugins.options import PluginOptions as PluginOptions
from armpy.plugins.probe import (
    ProbeOutcome as ProbeOutcome,
    ProbeResult as ProbeResult,
    probe_candidates as probe_candidates,
)
from armpy.plugins.proxy.guard import BackendProxy as BackendProxy
from armpy.plugins.registry import (
    BackendRegistry as BackendRegistry,
    backend_registry as backend_registry,
    preferred_backends as preferred_backends,
)

__all__: list[str]
