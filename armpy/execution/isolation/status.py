"""State of a backend's process."""

from __future__ import annotations

from dataclasses import dataclass

from armpy.types import BackendId


@dataclass(frozen=True, slots=True)
class IsolationStatus:
    """State of a backend's process."""

    backend_id: BackendId
    pid: int | None
    """None while there is none."""
    has_spare: bool
    """Whether a second process is ready."""
    num_failures: int
    """How often a process has failed so far."""
    quarantine_left_s: float
    """How long the backend will not be started again; 0 if it is not in quarantine."""
    last_failure: str
    """Why the last process has ended that failed; empty if none has."""
    last_failure_s: float | None
    """When it was noticed that the last one failed, by `time.perf_counter`."""
    in_force: dict[str, str]
    """Rights that the process has given up, and limits, by name; what the system does not have
    says so.
    """
