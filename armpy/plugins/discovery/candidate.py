"""Candidates: backends and plugins with hooks, as far as they are known."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import field
from typing import TypeVar

from armpy.core.dataclass import dataclass
from armpy.types import BackendId

BACKENDS = "backends"
"""Name among the details of a library's probe: why each backend cannot be used, by its id."""
MISSING_DEVICE = "missing_device"
"""Name among the details of a probe: why there is no device, empty if there is one."""


class CandidateKind(enum.Enum):
    """Origin of a candidate."""

    ENTRY_POINT = "entry point"
    DIRECTORY = "directory"
    LIBRARY = "library"
    CODE = "code"


class CandidateStatus(enum.Enum):
    """Status of a candidate.

    A rejected one breaks a rule, a failed one raised something, a duplicate has an id that
    was taken. Only a probe finds those that crash or hang.
    """

    FOUND = "found"
    REGISTERED = "registered"
    DUPLICATE = "duplicate"
    REJECTED = "rejected"
    FAILED = "failed"
    CRASHED = "crashed"
    HUNG = "hung"


@dataclass(slots=True)
class Candidate:
    """An announced backend or plugin with hooks, and its state."""

    backend_id: BackendId
    """Empty while it is not known: a directory's module has it when it is imported or probed, a
    library of a distribution when it was probed. A plugin's name.
    """
    source: str
    """Place where it was found: a distribution with its version, or a path."""
    kind: CandidateKind = CandidateKind.CODE
    name: str = ""
    """An entry point's object reference, the name of a directory's module or of a library."""
    opener: str = ""
    """Reference of the object that opens a library."""
    # What installed it; empty for other kinds and where the metadata is damaged.
    distribution: str = ""
    distribution_version: str = ""
    path: str = ""
    """Canonical path of a directory's file or package, or of a library."""
    # The directory in which that was found, as it was given, and its entry, maybe a link.
    directory: str = ""
    entry: str = ""
    common: str = ""
    """The entry with the vendor's common code in that directory; empty without it."""
    # The SHA-256 that the trust file says it has, and its common code; empty if it says none.
    pin: str = ""
    common_pin: str = ""
    # Empty until it is loaded or probed.
    api_version: str = ""
    device_type: str = ""
    status: CandidateStatus = CandidateStatus.FOUND
    reason: str = ""
    """Why it is not registered; of a registered one, its fault."""
    fix: str = ""
    """Remedy, where the reason does not name one."""
    traceback: str = ""
    """Traceback of the exception that loading raised, or the last output of the probe's process."""
    # The Python module or shared library for lack of which it cannot be imported.
    missing_module: str = ""
    missing_library: str = ""
    is_plugin: bool = False
    """Whether it implements hooks (`armpy.plugins.hooks`) rather than being a backend."""
    hook: str = ""
    """The one hook that a plugin implements; empty if it may implement any."""

    @property
    def label(self) -> str:
        """Its id, or its module's name while the id is not known."""
        return self.backend_id or self.name

    @property
    def is_unidentified_library(self) -> bool:
        """Whether it stands for all backends of a library, whose ids only a probe finds out."""
        return self.kind is CandidateKind.LIBRARY and not self.backend_id


RecordT = TypeVar("RecordT", bound="CandidateRecord")


@dataclass(slots=True, eq=False)
class CandidateRecord:
    """A candidate, and internal facts about it."""

    candidate: Candidate
    has_passed_probe: bool = field(default=False, kw_only=True)

    @property
    def is_open_question(self) -> bool:
        """Return whether it may still be registered."""
        return self.candidate.status is CandidateStatus.FOUND

    @property
    def can_be_probed(self) -> bool:
        """Return whether a probe can have a new result."""
        is_found = self.candidate.kind is not CandidateKind.CODE and self.is_open_question
        return is_found and not self.has_passed_probe


def reopen_duplicates(records: Iterable[RecordT], backend_id: BackendId) -> list[RecordT]:
    """Make the duplicates of an id open questions again, as what had the id is left out."""
    duplicates = [
        record
        for record in records
        if record.candidate.backend_id == backend_id
        and record.candidate.status is CandidateStatus.DUPLICATE
    ]
    for record in duplicates:
        record.candidate.status = CandidateStatus.FOUND
        record.candidate.reason = record.candidate.fix = ""
    return duplicates


@dataclass(frozen=True, slots=True)
class Failure:
    """Failure of loading: the exception in words."""

    reason: str
    traceback: str = ""
    # Empty unless one could not be found.
    missing_module: str = ""
    missing_library: str = ""
    fix: str = ""
    """Remedy, where the reason does not name one."""


class RejectionError(Exception):
    """A candidate breaks a rule; the text is its reason. Never leaves this package."""

    def __init__(self, reason: str, fix: str = "") -> None:
        super().__init__(reason)
        self.fix = fix
