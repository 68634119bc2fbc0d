"""Tells authors of backends what the next major version of the contract will not have."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

from armpy.backend import Capabilities, Capability, IBackendInternal
from armpy.types import BackendId

DEPRECATED_CAPABILITIES: Mapping[Capability, str] = {
    Capability.CONSTANT_TENSORS_AS_INPUTS: "constants are values of the subgraph like others",
    Capability.PRE_IMPORT_IO_TENSORS: "import_sources of its tensor handle factories say it",
    Capability.EXTERNALLY_MANAGED_MEMORY: "SingleAxisPacking and MultiAxisPacking say it",
    Capability.HAS_FP16: "its layer support says which data types it takes",
    Capability.ASYNC_EXECUTION: "every backend's executions may overlap",
}
"""Capabilities that the core does not ask about, and what takes their place."""


def warn_of_deprecated(
    backend_id: BackendId, backend: IBackendInternal, capabilities: Capabilities
) -> None:
    """Warn of the deprecated parts of the contract that a backend uses.

    Warns
    -----
    DeprecationWarning
        For each of them, with the backend's name and what takes its place.
    """
    for key in capabilities:
        # A name of its own for the same, which the core does not know, is not deprecated.
        if type(key) is Capability and key in DEPRECATED_CAPABILITIES:
            instead = DEPRECATED_CAPABILITIES[key]
            _warn(f"{backend_id}: the capability {key} is deprecated, as {instead}")
    if type(backend).get_performance is not IBackendInternal.get_performance:
        _warn(f"{backend_id}: get_performance is deprecated; get_device_figures takes its place")


def _warn(text: str) -> None:
    """Warn; the line that made the runtime is too far away to be of use."""
    warnings.warn(text, DeprecationWarning, stacklevel=3)
