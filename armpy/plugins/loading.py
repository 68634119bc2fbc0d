"""Loads candidates, and puts into words what goes wrong."""

from __future__ import annotations

import logging
import re
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from typing import TYPE_CHECKING, TypeVar

from armpy.core.dataclass import dataclass
from armpy.errors import ArmpyError
from armpy.plugins.checks import OpenedCandidate
from armpy.plugins.discovery.candidate import (
    Candidate,
    CandidateKind,
    CandidateStatus,
    Failure,
    RejectionError,
)
from armpy.plugins.discovery.directories import is_common
from armpy.plugins.discovery.module_files import Snapshot
from armpy.plugins.discovery.references import load_reference
from armpy.plugins.libraries import open_library
from armpy.plugins.modules import group_of, open_module
from armpy.plugins.proxy.guarded_call import let_user_interrupt
from armpy.plugins.trust.pinned_code import NOT_PINNED, PinnedCode, serve_distribution
from armpy.types import INVALID_BACKEND_IDS, BackendId

if TYPE_CHECKING:
    from armpy.plugins.probe import ProbeResult

_log = logging.getLogger("armpy.plugins")
# Systems' loaders name the library in their text only; no field has it.
_LIBRARY = re.compile(
    r"([^\s:'\"]+\.(?:so|dylib|dll)[.\d]*)(?=: cannot open|'? \(no such file|' \(or one)"
)


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


RecordT = TypeVar("RecordT", bound=CandidateRecord)


def probe_records(
    records: Iterable[RecordT],
    timeout_s: float,
    examine: str,
    note: Callable[[RecordT, ProbeResult], None],
) -> list[tuple[Candidate, ProbeResult]]:
    """Probe the candidates whose outcome is unknown, and note each result."""
    # Few processes probe, and it takes much of the standard library.
    from armpy.plugins.probe import probe_candidates  # noqa: PLC0415

    chosen = [record for record in records if record.can_be_probed]
    candidates = [record.candidate for record in chosen]
    results = probe_candidates(candidates, timeout_s=timeout_s, examine=examine)
    for record, result in zip(chosen, results, strict=True):
        record.has_passed_probe = result.passed
        note(record, result)
    return list(zip(candidates, results, strict=True))


def open_candidate(
    candidate: Candidate,  # an entry point, a directory's module, or one backend of a library
    private_name: str,  # for the latter; see `modules.private_name`
    pinned: PinnedCode = NOT_PINNED,  # code to import instead of the present one
) -> OpenedCandidate:
    """Import a candidate's code; raises RejectionError or what that code raises."""
    if candidate.kind is CandidateKind.DIRECTORY:
        return open_module(candidate, private_name, pinned)
    if candidate.kind is CandidateKind.LIBRARY:
        factories = open_library(candidate, pinned)
        if candidate.backend_id not in factories:
            listed = ", ".join(factories) or "no backend"
            raise RejectionError(f"it has {listed}, and had this one when it was probed")
        return OpenedCandidate(candidate.backend_id, "", factories[candidate.backend_id])
    if pinned.module is not None:
        # Before the import, which then finds the bytes that were hashed.
        serve_distribution(pinned.module, candidate)
    loaded = load_reference(candidate.name)
    # An entry point may also name a backend that is made already.
    factory = loaded if callable(loaded) else lambda: loaded
    return OpenedCandidate(candidate.backend_id, "", factory)


def check_invalid_id(backend_id: BackendId) -> None:
    """Raise RejectionError for an id that no backend may have."""
    if backend_id in INVALID_BACKEND_IDS:
        raise RejectionError(f"'{backend_id}' is not a valid backend id")


def attempt(
    step: Callable[[], None],
    # `private_name` and `name`: as for `describe_failure`.
    private_name: str = "",
    name: str = "",
) -> tuple[CandidateStatus, Failure] | None:
    """Do something with a candidate; return its outcome if that goes wrong, else None."""
    try:
        step()
    # Without a traceback: the text names the broken rule, and no code of the candidate failed.
    except RejectionError as error:
        return CandidateStatus.REJECTED, Failure(str(error), fix=error.fix)
    except BaseException as error:  # noqa: BLE001 - plugin boundary: recorded
        # SystemExit counts as a failure, but the user's Ctrl-C is not the candidate's.
        let_user_interrupt(error)
        return CandidateStatus.FAILED, describe_failure(error, private_name, name)
    return None


def leave_out(
    candidate: Candidate, status: CandidateStatus, failure: Failure, level: int = logging.WARNING
) -> None:
    """Record and log why a candidate is not used."""
    candidate.status = status
    candidate.reason, candidate.traceback = failure.reason, failure.traceback
    candidate.fix = failure.fix
    candidate.missing_module = failure.missing_module
    candidate.missing_library = failure.missing_library
    _log.log(
        level,
        "%s '%s' from %s is left out: %s; armpy doctor says what to do",
        "plugin" if candidate.is_plugin else "backend",
        candidate.label,
        candidate.source,
        candidate.reason.rstrip("."),
    )


def describe_failure(
    error: BaseException,
    # `private_name` and `name`: the private name of the module that raised it, and the one to read
    # instead.
    private_name: str = "",
    name: str = "",
) -> Failure:
    """Put an exception into words."""

    def public(text: str) -> str:
        if not private_name:
            return text
        # Private names mean nothing to people, and are others in each registry.
        return text.replace(private_name, name).replace(f"{group_of(private_name)}.", "")

    missing_module = missing_library = ""
    is_absolute = False
    for cause in _chain(error):
        if isinstance(cause, ModuleNotFoundError) and isinstance(cause.name, str):
            missing_module = public(cause.name)
            is_absolute = missing_module == cause.name
        if isinstance(cause, OSError | ImportError) and (match := _LIBRARY.search(_text(cause))):
            missing_library = match[1]
    reason = public(_text(error))
    common = missing_module.partition(".")[0]
    if is_absolute and is_common(common) and name.startswith(common.removesuffix("common")):
        reason += f". Import a vendor's common code relatively: from .{missing_module} import NAME"
    fix = "Report it to its author"
    if missing_library:
        fix = f"Install the package or driver that has the file {missing_library}"
    elif missing_module:
        fix = f"Install the package that brings the module {missing_module}"
    return Failure(
        reason,
        public("".join(traceback.format_exception(error))),
        missing_module,
        missing_library,
        fix,
    )


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    cause: BaseException | None = error
    # Causes are set by anybody's code, and may go round in a circle.
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__ or cause.__context__


def _text(error: BaseException) -> str:
    """Describe an exception in a line, even if its own text cannot be read."""
    kind = type(error).__name__
    try:
        text = str(error)
    except BaseException as second:  # noqa: BLE001 - plugin boundary: its exceptions are its own
        let_user_interrupt(second)
        return f"{kind}, whose text cannot be read: {type(second).__name__}"
    if isinstance(error, ArmpyError):
        return text
    return f"{kind}: {text}" if text else kind


def open_plugin(candidate: Candidate, snapshot: Snapshot | None) -> object:
    """Import what an entry point names, from a snapshot if it has a pin.

    Raises RejectionError if it was imported before its pin was checked; BaseException (whatever the
    plugin raises).
    """
    if snapshot is not None:
        serve_distribution(snapshot, candidate)
    return load_reference(candidate.name)
