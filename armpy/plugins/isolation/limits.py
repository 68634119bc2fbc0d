"""Limits of workers, and the state of a backend's process."""

from __future__ import annotations

import os
from collections.abc import Mapping

from armpy.core.arguments import check_choice, check_positive, check_whole
from armpy.core.dataclass import dataclass
from armpy.types import BackendId

PROCESS = "process"
"""Isolation in a process of its own."""
NO_ISOLATION = "none"
"""In the application's process."""

Isolation = str | Mapping[BackendId, str] | None
"""How backends are isolated: all of them alike, or each by its id."""


@dataclass(frozen=True, slots=True)
class IsolationLimits:
    """Limits of an isolated backend's process, and times after which it is given up."""

    # Without a deadline, third-party code that hangs would hang the application.
    timeout_s: float = 60.0
    """Longest time of an execution without a deadline."""
    # A backend that stops by itself soon after its deadline keeps its process.
    grace_s: float = 1.0
    """Time after its deadline that an execution is waited for."""
    preparation_timeout_s: float = 600.0
    """Longest time to prepare one part, if the request has no deadline."""
    start_timeout_s: float = 60.0
    """How long the process may take to start and to load the backend, or to answer whether it
    supports a layer.
    """
    questions_timeout_s: float = 300.0
    """Time in all that a process without an answer about a network's layers is waited for."""
    memory_bytes: int | None = None
    """How much memory of its own the process may have; three quarters of the machine's if left
    out, 0 for no limit.
    """
    # A backend that dies of everything would keep the machine busy with starts.
    max_failures: int = 5
    """Failures within `failure_window_s` that put the backend into quarantine."""
    failure_window_s: float = 60.0
    quarantine_s: float = 60.0
    """Time in quarantine, in which the backend is not started."""
    keep_spare: bool = True
    """Whether a second process is held ready, which takes the place of one that fails."""
    confined: bool = True
    """Whether the process gives up rights that it has no need of, where the system lets it."""
    writable_paths: tuple[str | os.PathLike[str], ...] = ()
    """Directories that it may write to besides armpy's cache."""

    def __post_init__(self) -> None:
        failed = "the limit cannot be used"
        for name in _POSITIVE:
            check_positive(getattr(self, name), name, failed=failed)
        check_whole(self.max_failures, "max_failures", least=1, failed=failed)
        if self.memory_bytes is not None:
            check_whole(self.memory_bytes, "memory_bytes", failed=failed)


_POSITIVE = (
    "timeout_s",
    "grace_s",
    "preparation_timeout_s",
    "start_timeout_s",
    "questions_timeout_s",
    "failure_window_s",
    "quarantine_s",
)


@dataclass(frozen=True, slots=True)
class IsolationStatus:
    """State of a backend's process."""

    backend_id: BackendId
    pid: int | None
    """None while there is none."""
    has_spare: bool
    """Whether a second process is ready."""
    num_failures: int
    """Number of failed processes so far."""
    quarantine_left_s: float
    """Seconds until the backend may be started again; 0 if it is not in quarantine."""
    last_failure: str
    """Why the last process has ended that failed; empty if none has."""
    last_failure_s: float | None
    """Time of the last noticed failure, by `time.perf_counter`."""
    in_force: dict[str, str]
    """Rights that the process has given up, and limits, by name; those that the system lacks
    are marked.
    """


def check_isolation(isolation: object) -> None:
    """Check the option's value; raises InvalidArgumentError if it is none of the choices."""
    by_id = isolation if isinstance(isolation, Mapping) else {"": isolation}
    for backend_id, chosen in by_id.items():
        where = f"isolation['{backend_id}']" if backend_id else "isolation"
        check_choice(chosen, where, (PROCESS, NO_ISOLATION, None))


def is_isolated(isolation: Isolation, backend_id: BackendId) -> bool:
    """Return whether a backend is to have a process of its own."""
    if isinstance(isolation, Mapping):
        return isolation.get(backend_id) == PROCESS
    return isolation == PROCESS
